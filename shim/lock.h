/*
 * lock.h: the two things of the kernel that the gate waits with: a small mutex and a futex word. Raw system
 * calls, so that nothing here is a cancellation point by surprise, touches errno, or can be interposed.
 */
#ifndef RDGATE_LOCK_H
#define RDGATE_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

#define FOREVER INT64_MAX

/* CLOCK_MONOTONIC in nanoseconds. */
int64_t now_ns(void);
/* Sleeps while *word == seen, until the time `until` (now_ns clock; FOREVER). May return early; the caller
 * looks again. `cancellable`: a pending pthread_cancel ends the thread here, as it would end a blocked poll.
 */
void futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t until, int cancellable);
void futex_wake(_Atomic uint32_t *word, int how_many);

/* 0 free, 1 held, 2 held and somebody sleeps (Drepper, "Futexes are tricky", mutex 2). Never held while
 * calling librdkafka, the application or the loader. */
struct lock {
    _Atomic uint32_t word;
};

void lock_slow(struct lock *l);

static inline void lock_take(struct lock *l)
{
    uint32_t free = 0;
    if (!atomic_compare_exchange_strong_explicit(&l->word, &free, 1, memory_order_acquire,
                                                 memory_order_relaxed))
        lock_slow(l);
}

static inline void lock_drop(struct lock *l)
{
    if (atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2)
        futex_wake(&l->word, 1);
}

#endif
