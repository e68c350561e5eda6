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
#define SLOTS 8192
#define PROBE 4
extern struct slot *rdg_slots;

static inline struct slot *ledger_slots_of(const void *thing)
{
    /* Messages are some 300 bytes each and made in a row: neighbours stay neighbours, which the cache likes.
     */
    return &rdg_slots[((uintptr_t)thing >> 8 ^ (uintptr_t)thing >> 4) & (SLOTS - 1)];
}

/* The application got this event or list. A slot may be lost to another thread at the same instant: then the
 * thing is not written down, which makes the ledger say too little, never too much. */
void ledger_out(struct consumer *c, enum debt_kind kind, const void *thing, uint16_t call);
/* A message. Most are given back by the thread that got them, before it gets the next: those never leave its
 * own record, whose memory is at hand. */
void ledger_spill(struct self *s);
static inline void ledger_message(struct consumer *c, const void *message, uint16_t call)
{
    struct self *s = rdg_self;
    if (!s)
        return;
    if (atomic_load_explicit(&s->held, memory_order_relaxed))
        ledger_spill(s);
    atomic_store_explicit(&s->held_of, c, memory_order_relaxed);
    s->held_since = atomic_load_explicit(&rdg_tick, memory_order_relaxed);
    s->held_call = call;
    atomic_store_explicit(&s->held, (uintptr_t)message, memory_order_release);
}

/* The application gave it back. Returns its consumer, NULL if it was not written down. */
struct consumer *ledger_take_back(const void *thing);
static inline struct consumer *ledger_back(const void *thing)
{
    struct self *s = rdg_self;
    if (s && thing && atomic_load_explicit(&s->held, memory_order_relaxed) == (uintptr_t)thing) {
        struct consumer *c = atomic_load_explicit(&s->held_of, memory_order_relaxed);
        atomic_store_explicit(&s->held, 0, memory_order_relaxed);
        return c;
    }
    return ledger_take_back(thing);
}
/* The same for events and lists. */
struct consumer *ledger_back_other(enum debt_kind kind, const void *thing);
/* The same, only looking; not for messages. */
struct consumer *ledger_owner(const void *thing);

/* A list that librdkafka has put references to partitions into. Called for the same list again and again. */
void ledger_list(struct consumer *c, const void *list, uint16_t call);

/* All that is out, oldest first in each kind; queues and topics come from handle.c. `clock` is now in ms. */
void ledger_debts(struct consumer *c, struct debt debts[DEBTS], int64_t clock);
/* Calls f for each message, event and list that is out. */
void ledger_each(void (*f)(const struct consumer *c, enum debt_kind kind, void *with), void *with);
/* The handle is gone, and with it whatever was out. */
void ledger_close(struct consumer *c);

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
