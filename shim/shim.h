/*
 * shim.h: what the wrappers share: the way in and out of a call, and the state of the process.
 */
#ifndef RDGATE_SHIM_H
#define RDGATE_SHIM_H

#include "flight.h"
#include "handle.h"
#include "ledger.h"
#include "options.h"
#include "real.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

extern struct options rdg_options;

/* Called by the first call that comes through: the process uses librdkafka, so options count from now on. */
void shim_awake(void);
extern _Atomic int rdg_awake;

/* One passage of a wrapper. */
struct entry {
    const struct library *lib; /* whose function to call */
    struct visit *visit;       /* NULL: straight on, nothing to leave */
    struct consumer *consumer;
    struct self *self;
    int code;     /* the error to give, if we say no */
    int error;    /* errno when the call came: an interrupted poll leaves no trace in it */
    int outcome;  /* for the flight file: the error that the real call gave, 0: none, or not known */
    int idle;     /* a poll of a closed handle: what its timeout was */
    bool empty;   /* the poll brought nothing */
    bool refused; /* false: the function does not exist in this library */
};

struct question {
    uint16_t call;
    uint8_t kind;   /* enum kind, 0: no handle */
    uint8_t traits; /* besides the row's */
    const void *key;
    const void *caller; /* return address */
    uintptr_t frame;
    int *timeout_ms; /* NULL: none. Changed to what the real call shall get */
    rd_kafka_topic_t *topic;
    int32_t partition;
};

/* true: call entry->lib, then rdg_again (polls) and rdg_out if there is a visit. false: say no with ->code.
 */
bool rdg_in(struct entry *e, const struct question *q);
bool rdg_again(struct entry *e, bool empty, int *timeout_ms);
void rdg_out(struct entry *e);

/* ------------------------------------------------------------------ the lonely call
 * The way in and out for a thread that is in no other call and meets nobody: the same as rdg_in and rdg_out,
 * for rows keyed by HANDLE, in as few instructions as can be. Anything unusual returns false and changes
 * nothing. */

#define FAST ((uintptr_t)1) /* gate.c, THE WORD */

static inline bool lonely_in(struct entry *e, uint16_t call, uint8_t class, uint8_t traits,
                             const void *handle, const void *caller, uintptr_t frame, const int *timeout_ms)
{
    struct self *s = rdg_self;
    uintptr_t key = (uintptr_t)handle | HANDLE_KIND;
    struct object *o = atomic_load_explicit(&bucket_of(key)->first, memory_order_acquire);
    if (!s || s->top || s->unusual || !o || atomic_load_explicit(&o->key, memory_order_relaxed) != key)
        return false;
    struct consumer *c = atomic_load_explicit(&o->consumer, memory_order_relaxed);
    const struct library *lib = c->lib;
    int timeout = timeout_ms ? *timeout_ms : -1;
    if (!c->plain || library_owns(lib, caller) || !lib->calls[call] || (timeout > 0 && timeout % 32 == 0) ||
        (class == POLL && !lib->rd_kafka_queue_yield) || (traits & MAIN_QUEUE && !c->main_forwarded))
        return false;
    struct visit *v = &s->visits[0];
    memset(&v->lane, 0, offsetof(struct visit, end) - offsetof(struct visit, lane));
    visit_begins(v);
    v->call = call;
    v->class = class;
    v->traits = traits;
    v->consumer = c;
    v->self = s;
    v->outer = NULL;
    v->lib = lib;
    v->frame = frame;
    v->caller = caller;
    v->timed = timeout == -1 || timeout > 0;
    v->deadline = timeout == -1 ? FOREVER : timeout > 0 ? timeout * 1000000LL + coarse_ns() : 0;
    atomic_store_explicit(&v->state, INSIDE, memory_order_relaxed);
    uintptr_t nobody = 0;
    if (!atomic_compare_exchange_strong(&c->word, &nobody, (uintptr_t)v | FAST))
        return false;
    s->top = v;
    s->used = 1;
    counted(lib, 0);
    if (class != POLL)
        flight_call_begins(v);
    e->lib = lib;
    e->visit = v;
    e->consumer = c;
    e->self = s;
    e->outcome = 0;
    e->idle = 0;
    e->empty = e->refused = false;
    if (__builtin_expect(c->rk != handle, 0)) { /* the record has got a new handle meanwhile */
        rdg_out(e);
        return false;
    }
    if (class == POLL) {
        ledger_polled(c, s);
        if (v->timed)
            e->error = errno;
    }
    return true;
}

/* true: left. Nobody came, so there is nothing to go on for and nothing to tell. */
static inline bool lonely_out(struct entry *e, uint8_t class)
{
    struct visit *v = e->visit;
    uintptr_t mine = (uintptr_t)v | FAST;
    if (v->guard || v->cut || e->idle || (class == POLL && !flight_dull(v, e->outcome)) ||
        atomic_load_explicit(&e->consumer->app_yield, memory_order_relaxed))
        return false;
    if (!atomic_compare_exchange_strong(&e->consumer->word, &mine, 0))
        return false;
    if (class != POLL)
        flight_call_ends(v, e->outcome);
    self_pop(e->self, v);
    return true;
}

/* The error that an error object stands for. */
int rdg_code(const struct entry *e, const void *error);
/* How to say no. */
rd_kafka_error_t *rdg_error(const struct entry *e);
/* Makes rd_kafka_last_error() and errno say what a real refusal would. */
void rdg_last_error(const struct entry *e);
void *rdg_nobody(const struct entry *e);

/* The unwinder passes through our frames by exception, pthread_cancel and pthread_exit; visits must not stay
 * behind. No landing pads and no libgcc: the frame names its personality, which does it (wrap.c). */
#define UNWOUND __asm__ volatile(".cfi_personality 0x1b, rdg_personality")
#define FRAME   ((uintptr_t)__builtin_frame_address(0))
#define CALLER  __builtin_return_address(0)
#define PUBLIC  __attribute__((visibility("default")))

#endif
