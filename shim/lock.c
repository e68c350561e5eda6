/*
 * lock.c: see lock.h. Must not use anything of libc that could wait, allocate or set errno.
 */
#include "lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t until, int cancellable)
{
    struct timespec t = {until / 1000000000, until % 1000000000};
    int saved = errno;
    int type = 0;
    /* What glibc does around its own cancellable waits (nptl/cancellation.c, before 2.41). The type is
     * asynchronous only while nothing but the system call can be interrupted. */
    if (cancellable)
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    /* BITSET: an absolute time on the monotonic clock, so that a signal or an early wake does not prolong it.
     */
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen, until == FOREVER ? NULL : &t, NULL,
            FUTEX_BITSET_MATCH_ANY);
    if (cancellable)
        pthread_setcanceltype(type, NULL);
    errno = saved;
}

void futex_wake(_Atomic uint32_t *word, int how_many)
{
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, how_many, NULL, NULL, 0);
    errno = saved;
}

void lock_slow(struct lock *l)
{
    while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
        futex_wait(&l->word, 2, FOREVER, 0);
}
