/*
 * opening.c: modules that keep a librdkafka to themselves, when the application opens them: the second half
 * of patch.h. The module is opened as the application is about to, and the application's own call, which
 * follows, finds it open: what that returns, and what it leaves for dlerror(), is its own. No lock is held
 * while the loader opens.
 *
 * An object that was there before is left alone: threads may be in it. So may those that its constructors
 * have started; then it is left alone, too. Of several threads that open one file, whoever comes out of the
 * loader first redirects it, and the others wait for that. What comes in by another way than dlopen of a path
 * is not seen here.
 */
#include "copy.h"
#include "image.h"
#include "lock.h"
#include "lookup.h"
#include "options.h"
#include "patch.h"
#include "raw.h"
#include "real.h"
#include "shim.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* ------------------------------------------------------------------ threads */

#define THREADS 16384

struct threads {
    int count;
    int tid[THREADS];
};

struct listed {
    uint64_t inode, offset;
    uint16_t size;
    uint8_t type;
    char name[];
};

/* All of this process; false: they cannot be seen, or are too many. */
static bool list(struct threads *t)
{
    char bytes[4096] __attribute__((aligned(8)));
    int fd = (int)raw(SYS_openat, AT_FDCWD, (long)"/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    long n = fd;
    t->count = 0;
    while (fd >= 0 && (n = raw(SYS_getdents64, fd, (long)bytes, sizeof(bytes), 0)) > 0) {
        for (long at = 0; at < n;) {
            const struct listed *e = (const struct listed *)(bytes + at);
            int tid = 0;
            for (const char *p = e->name; *p >= '0' && *p <= '9'; p++)
                tid = tid * 10 + (*p - '0');
            if (tid && t->count == THREADS)
                n = -1;
            else if (tid)
                t->tid[t->count++] = tid;
            at += e->size;
            if (n < 0)
                break;
        }
        if (n < 0)
            break;
    }
    if (fd >= 0)
        raw_close(fd);
    return fd >= 0 && n == 0;
}

/* Have there come any? */
static bool more(const struct threads *before, const struct threads *after)
{
    for (int i = 0, k = 0; i < after->count; i++) {
        int n = before->count;
        /* The kernel lists them in their order: those that stay are found at once. */
        while (n && before->tid[k % before->count] != after->tid[i])
            k++, n--;
        if (!n)
            return true;
        k++;
    }
    return false;
}

/* More than the compiler's own. */
static bool has_constructors(const struct link_map *map)
{
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_INIT_ARRAYSZ)
            return d->d_un.d_val > sizeof(void *);
    return false;
}

/* ------------------------------------------------------------------ what is being opened */

#define OPENING 16

static struct opening {
    uint64_t file; /* 0: free */
    int threads;   /* that open it */
    enum { UNKNOWN, ABSENT, DONE } state;
    struct threads *before; /* who ran before it was there */
} opening[OPENING];
/* Held while a module is redirected, never while one is opened. */
static struct lock lock;

/* NULL: too many at once, or none of our business. */
static struct opening *begins(uint64_t file)
{
    struct opening *mine = NULL;
    lock_take(&lock);
    for (int i = 0; i < OPENING; i++) {
        if (opening[i].file == file) {
            mine = &opening[i];
            break;
        }
        if (!opening[i].file && !mine)
            mine = &opening[i];
    }
    if (mine && mine->threads++ == 0) {
        mine->file = file;
        mine->state = UNKNOWN;
    }
    lock_drop(&lock);
    return mine;
}

static void ends(struct opening *mine)
{
    struct threads *unused = NULL;
    lock_take(&lock);
    if (--mine->threads == 0) {
        unused = mine->before;
        mine->before = NULL;
        mine->file = 0;
    }
    lock_drop(&lock);
    if (unused)
        munmap(unused, sizeof(*unused));
}

/* Whoever asks first has the answer: the others may see what that one has opened meanwhile. */
static bool is_absent(struct opening *mine, const char *file)
{
    struct threads *t =
        mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool there = t == MAP_FAILED || real_is_open(file);
    if (t != MAP_FAILED && !list(t))
        t->count = 0; /* then every thread is a new one */
    lock_take(&lock);
    if (mine->state == UNKNOWN) {
        mine->state = there ? DONE : ABSENT;
        if (!there) {
            mine->before = t;
            t = MAP_FAILED;
        }
    }
    bool absent = mine->state == ABSENT;
    lock_drop(&lock);
    if (t != MAP_FAILED)
        munmap(t, sizeof(*t));
    return absent;
}

static bool alone(const struct link_map *map, const struct threads *before)
{
    if (!has_constructors(map))
        return true;
    struct threads *t =
        mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (t == MAP_FAILED)
        return false;
    bool yes = list(t) && !more(before, t);
    munmap(t, sizeof(*t));
    return yes;
}

static void open_it(struct opening *mine, const char *file, int flags)
{
    const struct link_map *map = real_open(file, flags);
    lock_take(&lock);
    if (map && mine->state == ABSENT) {
        mine->state = DONE;
        if (!library_known(map))
            patch_object(map, false,
                         alone(map, mine->before)
                             ? NULL
                             : "threads were started while it was opened, and may be in it");
    }
    lock_drop(&lock);
}

void patch_module(const char *file, int flags)
{
    if (rdg_options.mode == OFF || rdg_options.patch != PATCH_AUTO)
        return;
    int saved = errno;
    struct elf_file f;
    struct stat st;
    bool hidden = stat(file, &st) == 0 && image_map_file(&f, file);
    if (hidden) {
        hidden = copy_is_hidden(&f);
        image_unmap_file(&f);
    }
    struct opening *mine = hidden ? begins(st.st_ino * 65599 + st.st_dev + 1) : NULL;
    if (mine) {
        if (is_absent(mine, file))
            open_it(mine, file, flags);
        ends(mine);
    }
    errno = saved;
}

void patch_after_fork(void)
{
    lock.word = 0;
    memset(opening, 0, sizeof(opening));
}
