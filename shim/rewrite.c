/*
 * rewrite.c: see rewrite.h. Three ways to write into code, in this order: /proc/self/mem, which leaves the
 * mapping what it is; a page of a memfd in its place; mprotect, but only after a trial, because under
 * MemoryDenyWriteExecute the first half of it succeeds and the second does not.
 */
#include "rewrite.h"
#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u

/* What a new area is mapped from. Never run here. */
__asm__(".pushsection .text.area,\"ax\",@progbits\n"
        "\t.balign 4096\n"
        "\t.globl rdg_area\n\t.hidden rdg_area\n\t.type rdg_area,@function\n"
        "rdg_area:\n\t.fill 32768, 1, 0xcc\n"
        "\t.size rdg_area, .-rdg_area\n"
        "\t.popsection");
extern const uint8_t rdg_area[] __attribute__((visibility("hidden")));

static bool by_mem(const struct rewriter *w, uint64_t address, const void *bytes, size_t size)
{
    return pwrite(w->fd, bytes, size, (off_t)address) == (ssize_t)size;
}

static bool by_memfd(struct rewriter *w, uint64_t address, const uint8_t *bytes, size_t size)
{
    while (size) {
        uint64_t page = address & ~(uint64_t)(PAGE - 1);
        size_t off = address - page, n = size < PAGE - off ? size : PAGE - off;
        if (pwrite(w->fd, (const void *)page, PAGE, w->used) != PAGE ||
            pwrite(w->fd, bytes, n, w->used + (off_t)off) != (ssize_t)n ||
            mmap((void *)page, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, w->fd, w->used) ==
                MAP_FAILED)
            return false;
        w->used += PAGE;
        address += n;
        bytes += n;
        size -= n;
    }
    return true;
}

static bool by_mprotect(uint64_t address, const void *bytes, size_t size)
{
    uint64_t from = address & ~(uint64_t)(PAGE - 1), to = (address + size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    if (mprotect((void *)from, to - from, PROT_READ | PROT_WRITE))
        return false;
    memcpy((void *)address, bytes, size);
    return mprotect((void *)from, to - from, PROT_READ | PROT_EXEC) == 0;
}

bool rewrite(struct rewriter *w, uint64_t address, const void *bytes, size_t size)
{
    bool done = false;
    switch (w->way) {
    case BY_MEM: done = by_mem(w, address, bytes, size); break;
    case BY_MEMFD: done = by_memfd(w, address, bytes, size); break;
    case BY_MPROTECT: done = by_mprotect(address, bytes, size); break;
    case NO_WAY: break;
    }
    return done && memcmp((const void *)address, bytes, size) == 0;
}

/* The file that our own area lies in, and where. */
static int own_file(off_t *offset)
{
    struct mapping m;
    if (!maps_find((uintptr_t)rdg_area, &m) || m.path[0] != '/')
        return -1;
    *offset = (off_t)(m.offset + ((uintptr_t)rdg_area - m.from));
    return open(m.path, O_RDONLY | O_CLOEXEC);
}

static void *map_file(uint64_t address, size_t size, int fixed)
{
    off_t offset = 0;
    int fd = size <= REWRITE_AREA ? own_file(&offset) : -1;
    void *p = MAP_FAILED;
    if (fd >= 0) {
        p = mmap((void *)address, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | fixed, fd, offset);
        close(fd);
        if (p != MAP_FAILED && memcmp(p, rdg_area, size) != 0) { /* the file is another one by now */
            munmap(p, size);
            p = MAP_FAILED;
        }
    }
    return p;
}

/* Of nothing, where that may be executed (SELinux calls it execmem), otherwise of our own file, which may.
 * Not the file first: perf takes the area for the library itself, and finds no stack through either. */
static void *map_area(uint64_t address, size_t size, int fixed)
{
    void *p = mmap((void *)address, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
    if (p == MAP_FAILED && (errno == EACCES || errno == EPERM))
        p = map_file(address, size, fixed);
    if (p != MAP_FAILED && fixed && p != (void *)address) { /* before Linux 4.17 the flag is only a hint */
        munmap(p, size);
        p = MAP_FAILED;
    }
    return p == MAP_FAILED ? NULL : p;
}

void *rewrite_area(uint64_t below, size_t size, uint64_t reach)
{
    size = (size + PAGE - 1) & ~(size_t)(PAGE - 1);
    below &= ~(uint64_t)(PAGE - 1);
    uint64_t at = below > size ? below - size : 0;
    for (int tries = 0; tries < 4096 && at >= 65536 && below - at <= reach; tries++) {
        void *p = map_area(at, size, MAP_FIXED_NOREPLACE);
        if (p)
            return p;
        if (errno != EEXIST && errno != ENOMEM)
            return NULL;
        struct mapping m;
        uint64_t next = at - PAGE;
        for (uint64_t a = at; a < at + size; a += PAGE) { /* whose mapping is in the way? below that, then */
            if (maps_find(a, &m)) {
                next = m.from - size;
                break;
            }
        }
        if (next >= at)
            return NULL;
        at = next;
    }
    return NULL;
}

static bool trial(struct rewriter *w)
{
    void *p = map_area(0, PAGE, 0);
    if (!p)
        return false;
    bool good = rewrite(w, (uint64_t)(uintptr_t)p, "\xc3", 1);
    int saved = errno;
    munmap(p, PAGE);
    errno = saved;
    return good;
}

bool rewrite_begin(struct rewriter *w)
{
    memset(w, 0, sizeof(*w));
    for (w->way = BY_MEM; w->way <= BY_MPROTECT; w->way++) {
        errno = 0;
        w->used = 0;
        w->fd = w->way == BY_MEM     ? open("/proc/self/mem", O_RDWR | O_CLOEXEC)
                : w->way == BY_MEMFD ? memfd_create("rdgate", MFD_CLOEXEC)
                                     : -1;
        if ((w->fd >= 0 || w->way == BY_MPROTECT) && trial(w))
            return true;
        w->errors[w->way - BY_MEM] = errno;
        if (w->fd >= 0)
            close(w->fd);
    }
    w->fd = -1;
    w->way = NO_WAY;
    return false;
}

void rewrite_end(struct rewriter *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}
