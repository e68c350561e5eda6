/*
 * ledger.h: what the application owes a consumer: messages, events and lists that it got and has not given
 * back, rebalances that it has not answered, polls that it has not made. Written on every call, so cheap: no
 * lock, no clock, no memory to be had. Nothing here decides anything.
 */
#ifndef RDGATE_LEDGER_H
#define RDGATE_LEDGER_H

#include "gate.h"
#include "snapshot.h"

/* The watchdog's clock: ms of now_ns(), as of its last look. For ages that need not be exact. */
extern _Atomic int64_t rdg_tick;

/* Before the first consumer; again is nothing. Without memory nothing is written down. */
void ledger_start(void);

/* The consumer was polled, by this thread. */
void ledger_new_poller(struct consumer *c, const struct self *s);
static inline void ledger_polled(struct consumer *c, const struct self *s)
{
    /* Only the owner of the gate writes it, but for a few modes in which a lost count does no harm. */
    atomic_store_explicit(&c->polls, atomic_load_explicit(&c->polls, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    if (__builtin_expect(c->poller != s->id, 0))
        ledger_new_poller(c, s);
}
bool ledger_has_polled(const struct consumer *c, const struct self *s);

struct slot {
    _Atomic uintptr_t thing; /* 0: free */
    struct consumer *_Atomic consumer;
    int64_t since;
    int32_t tid;
    uint16_t call;
    uint8_t kind;
};
#define SLOTS 16384
#define PROBE 4
extern struct slot *rdg_slots;

void ledger_lost(void);
static inline struct slot *ledger_slots_of(const void *thing)
{
    /* Messages are some 300 bytes each and made in a row: neighbours stay neighbours, which the cache likes.
     */
    return &rdg_slots[((uintptr_t)thing >> 8 ^ (uintptr_t)thing >> 4) & (SLOTS - 1)];
}

/* The application got this. A slot may be lost to another thread at the same instant: then the thing is not
 * written down, which makes the ledger say too little, never too much. */
static inline void ledger_out(struct consumer *c, enum debt_kind kind, const void *thing, uint16_t call)
{
    if (!rdg_slots)
        return;
    struct slot *s = ledger_slots_of(thing);
    for (int i = 0; i < PROBE; i++, s++) {
        if (atomic_load_explicit(&s->thing, memory_order_relaxed))
            continue;
        atomic_store_explicit(&s->consumer, c, memory_order_relaxed);
        s->since = atomic_load_explicit(&rdg_tick, memory_order_relaxed);
        s->tid = rdg_self ? rdg_self->tid : 0;
        s->call = call;
        s->kind = (uint8_t)kind;
        atomic_store_explicit(&s->thing, (uintptr_t)thing, memory_order_release);
        return;
    }
    ledger_lost();
}

/* The application gave it back. Returns its consumer, NULL if it was not written down. */
struct consumer *ledger_unknown(void);
static inline struct consumer *ledger_back(const void *thing)
{
    if (!rdg_slots || !thing)
        return NULL;
    struct slot *s = ledger_slots_of(thing);
    for (int i = 0; i < PROBE; i++, s++) {
        if (atomic_load_explicit(&s->thing, memory_order_relaxed) != (uintptr_t)thing)
            continue;
        struct consumer *c = atomic_load_explicit(&s->consumer, memory_order_relaxed);
        atomic_store_explicit(&s->thing, 0, memory_order_release);
        return c;
    }
    return ledger_unknown();
}
/* The same, only looking. */
struct consumer *ledger_owner(const void *thing);

/* A list that librdkafka has put references to partitions into. Called for the same list again and again. */
void ledger_list(struct consumer *c, const void *list, uint16_t call);

/* All that is out, oldest first in each kind; queues and topics come from handle.c. `clock` is now in ms. */
void ledger_debts(struct consumer *c, struct debt debts[DEBTS], int64_t clock);
/* The handle is gone, and with it whatever was out. */
void ledger_close(const struct consumer *c);
/* In a forked child: what the parent's other threads hold is not the child's. */
void ledger_after_fork(void);

/* ------------------------------------------------------------------ rebalances */

/* Handed to the application, by a callback or (event not NULL) by an event of this thread. */
void ledger_rebalance(struct consumer *c, int code, int partitions, const void *event);
/* Its callback has returned, or its event was destroyed. */
void ledger_rebalance_returned(struct consumer *c, const void *event);
/* The application called `call` with a list of so many partitions (-1: NULL), which returned `code`. */
void ledger_answer(struct consumer *c, uint16_t call, int partitions, int code);
/* As data; false: there was none yet. */
bool ledger_rebalance_seen(const struct consumer *c, struct seen_rebalance *r, int64_t clock);

#endif
