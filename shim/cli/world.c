/*
 * world.c: see world.h. It never asks the real loader, which would run code of the libraries, nor trusts its
 * cache (ld.so.cache) to be one.
 */
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_openat2
#    define SYS_openat2 437
#endif

#if defined(__x86_64__)
#    define TRIPLET     "x86_64-linux-gnu"
#    define CACHE_FLAGS 0x0303 /* libc6, x86-64 */
#else
#    define TRIPLET     "aarch64-linux-gnu"
#    define CACHE_FLAGS 0x0a03
#endif

#define ELEMENTS_MOST 256 /* of a list of directories: a file may make it as long as it likes */

static int open_path(const struct world *w, const char *path)
{
    struct {
        uint64_t flags, mode, resolve;
    } how = {O_PATH | O_CLOEXEC, 0, 0x10 /* RESOLVE_IN_ROOT */};
    if (w->root < 0)
        return open(path, O_PATH | O_CLOEXEC);
    long fd = syscall(SYS_openat2, w->root, path, &how, sizeof(how));
    if (fd < 0 && errno == ENOSYS) /* before Linux 5.6: absolute links lead to our own files */
        fd = openat(w->root, path + strspn(path, "/"), O_PATH | O_CLOEXEC);
    return (int)fd;
}

int world_open(const struct world *w, const char *path)
{
    struct stat st;
    char self[40];
    int fd = open_path(w, path);
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
        return fd;
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    int readable = open(self, O_RDONLY | O_CLOEXEC);
    int e = errno;
    close(fd);
    errno = e;
    return readable;
}

/* ------------------------------------------------------------------ one directory, one file */

static bool try_file(const struct world *w, const char *path, struct loaded *l)
{
    int fd = world_open(w, path);
    if (fd < 0)
        return false;
    const char *why = binary_open(&l->b, fd);
    close(fd);
    if (why)
        return false;
    if (l->b.kind != MODULE && l->b.kind != PROGRAM) { /* ld.so goes on past what is for other machines */
        binary_close(&l->b);
        return false;
    }
    snprintf(l->path, sizeof(l->path), "%s", path);
    return true;
}

/* Replaces $NAME or ${NAME} at p by what it stands for; returns how much it took, 0: it is none. */
static size_t token(const char *p, const char *name, const char *text, char *to, size_t *used, size_t size)
{
    size_t n = strlen(name);
    size_t took = strncmp(p, "${", 2) == 0 && strncmp(p + 2, name, n) == 0 && p[2 + n] == '}' ? n + 3
                  : *p == '$' && strncmp(p + 1, name, n) == 0                                 ? n + 1
                                                                                              : 0;
    if (took)
        *used += (size_t)snprintf(to + *used, size - *used, "%s", text);
    return took;
}

/* One element of a path list with $ORIGIN and $LIB put in; empty if it does not fit. */
static void expand(const char *from, size_t n, const char *origin, const char *lib, char *to, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < n && used < size;) {
        size_t took = token(from + i, "ORIGIN", origin, to, &used, size);
        if (!took)
            took = token(from + i, "LIB", lib, to, &used, size);
        if (!took && used < size - 1)
            to[used++] = from[i];
        i += took ? took : 1;
    }
    to[used < size ? used : 0] = 0;
}

static bool try_list(const struct world *w, const char *list, const char *separators, const char *of,
                     const char *name, struct loaded *l)
{
    static const char *const libs[] = {("lib/" TRIPLET), "lib64", "lib"};
    char origin[PATH_MAX], directory[PATH_MAX], path[PATH_MAX + 256];
    snprintf(origin, sizeof(origin), "%s", of);
    char *slash = strrchr(origin, '/');
    if (slash)
        slash[slash == origin] = 0;
    int elements = 0;
    for (const char *p = list; p && elements < ELEMENTS_MOST; p = *p ? p + 1 : NULL, elements++) {
        size_t n = strcspn(p, separators);
        for (size_t i = 0; i < sizeof(libs) / sizeof(*libs); i++) {
            expand(p, n, origin, libs[i], directory, sizeof(directory));
            if (n && !directory[0])
                break;
            int length = snprintf(path, sizeof(path), "%s/%s", directory[0] ? directory : ".", name);
            if (length < PATH_MAX && try_file(w, path, l))
                return true;
            if (!memmem(p, n, "LIB", 3))
                break;
        }
        p += n;
    }
    return false;
}

/* ------------------------------------------------------------------ /etc/ld.so.cache */

/* glibc sysdeps/generic/dl-cache.h, the format that all have since 2.2 and most alone since 2.32. */
#define CACHE_MAGIC "glibc-ld.so.cache1.1"
#define CACHE_HEAD  48

struct cache_row {
    int32_t flags;
    uint32_t key, value, osversion;
    uint64_t hwcap;
};

static bool try_cache(const struct world *w, const char *name, struct loaded *l)
{
    struct stat st;
    bool found = false;
    int fd = world_open(w, "/etc/ld.so.cache");
    if (fd < 0)
        return false;
    const char *p = MAP_FAILED;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= CACHE_HEAD && st.st_size < 64 << 20)
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (p == MAP_FAILED)
        return false;
    const char *c = memmem(p, (size_t)st.st_size, CACHE_MAGIC, sizeof(CACHE_MAGIC) - 1);
    size_t size = c ? (size_t)(p + st.st_size - c) : 0;
    uint32_t rows = 0;
    if (size >= CACHE_HEAD)
        memcpy(&rows, c + 20, sizeof(rows));
    for (uint32_t i = 0; i < rows && !found; i++) {
        struct cache_row row;
        size_t at = CACHE_HEAD + (size_t)i * sizeof(row);
        if (at + sizeof(row) > size)
            break;
        memcpy(&row, c + at, sizeof(row));
        if (row.flags != CACHE_FLAGS || row.hwcap || row.key >= size || row.value >= size ||
            !memchr(c + row.key, 0, size - row.key) || !memchr(c + row.value, 0, size - row.value))
            continue;
        found = strcmp(c + row.key, name) == 0 && try_file(w, c + row.value, l);
    }
    munmap((void *)p, (size_t)st.st_size);
    return found;
}

/* ------------------------------------------------------------------ the search */

bool world_load(const struct world *w, const struct loaded *by, const char *name, struct loaded *l)
{
    static const char defaults[] = "/lib/" TRIPLET ":/usr/lib/" TRIPLET ":/lib64:/usr/lib64:/lib:/usr/lib";
    l->by = by;
    if (strchr(name, '/'))
        return try_file(w, name, l);
    if (!by->b.runpath)
        for (const struct loaded *o = by; o; o = o->by)
            if (o->b.rpath && !o->b.runpath && try_list(w, o->b.rpath, ":", o->path, name, l))
                return true;
    /* The program's own $ORIGIN. */
    const struct loaded *first = by;
    while (first->by)
        first = first->by;
    if (w->library_path && *w->library_path && try_list(w, w->library_path, ":;", first->path, name, l))
        return true;
    if (by->b.runpath && try_list(w, by->b.runpath, ":", by->path, name, l))
        return true;
    if (by->b.no_default)
        return false;
    return try_cache(w, name, l) || try_list(w, defaults, ":", "/", name, l);
}
