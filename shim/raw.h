/*
 * raw.h: the system calls that peek.c, elf.c and stack.c read files and memory with. Straight to the kernel:
 * libc's open and read are points of cancellation, and other preloads put themselves, and their locks, in
 * front of them. They leave errno alone and return -errno.
 */
#ifndef RDGATE_RAW_H
#define RDGATE_RAW_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static inline long raw(long number, long a, long b, long c, long d)
{
    int saved = errno;
    long result = syscall(number, a, b, c, d, 0L, 0L);
    if (result < 0)
        result = -errno;
    errno = saved;
    return result;
}

/* Not blocking: in place of the file there may be a FIFO by now. */
static inline int raw_open(const char *path)
{
    return (int)raw(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
}

static inline void raw_close(int fd)
{
    raw(SYS_close, fd, 0, 0, 0);
}

static inline long raw_read(int fd, void *to, size_t size)
{
    return raw(SYS_read, fd, (long)to, (long)size, 0);
}

static inline long raw_read_at(int fd, void *to, size_t size, uint64_t at)
{
    return raw(SYS_pread64, fd, (long)to, (long)size, (long)at);
}

static inline int raw_pid(void)
{
    return (int)raw(SYS_getpid, 0, 0, 0, 0);
}

static inline int raw_tid(void)
{
    return (int)raw(SYS_gettid, 0, 0, 0, 0);
}

#endif
