/*
 * self.h: this thread's record: who it is and which calls it is in. Records live in memory that is never
 * given back, so that another thread may look at one whose owner is gone.
 */
#ifndef RDGATE_SELF_H
#define RDGATE_SELF_H

#include "call.h"
#include "lock.h"
#include "real.h"

#include <pthread.h>
#include <stdbool.h>

struct consumer;
struct object;

enum visit_state {
    OUTSIDE,  /* not in the gate's lists */
    WAITING,  /* in a waiting line; the word slept on */
    INSIDE,   /* admitted */
    REFUSED,  /* taken out of the line with `code` */
    RETURNING /* its callback window is over, a borrower is still in */
};

/* One call of one thread on one consumer. Aligned so that the gate's word has room for its flags. */
struct visit {
    _Alignas(64) _Atomic uint32_t state;
    uint16_t call;
    uint8_t class;
    uint8_t traits;
    struct consumer *consumer;
    struct self *self;
    struct visit *outer; /* the call that this thread was in when it began this one */
    const struct library *lib;
    uintptr_t frame;           /* address of the wrapper's frame */
    const void *caller;        /* return address */
    _Atomic uint32_t sequence; /* one more for each call that had this place: the watchdog's only clock */
    _Atomic uint32_t windows;  /* one more for each callback */
    int64_t deadline;          /* own timeout, FOREVER if none */
    bool timed;                /* has a timeout other than 0: worth a yield */
    struct visit *next, *prev; /* in the gate's list of occupants, or in a waiting line */
    int code;                  /* REFUSED: the error to give */
    int32_t partition;
    /* From here on zero at the start of each visit. */
    uint64_t lane;         /* POLL: which queue */
    int64_t since;         /* when it began to wait */
    void *topic;           /* PARTITION: what to yield */
    struct object *object; /* the queue polled or destroyed, if that is how the consumer was named */
    int overtaken;         /* waiting POLL: how many calls went before it */
    uint16_t marks;        /* POLL: enum flight_flag, why it is worth an event */
    _Atomic int window;    /* depth of application callbacks running in it */
    uint8_t callback;      /* the latest of them: enum callback + 1 */
    bool draining;         /* a destroy that waits for the guards */
    _Atomic bool let_go;   /* a destroy that is known to wait for ever: it gives up now */
    bool alien;            /* polls a queue that carries no consumer queue: a GUARD that can be woken */
    bool guard;            /* counted among the guards */
    bool yielded;          /* a yield was sent to it since it entered the library */
    bool free_return;      /* the application asked for the early return: do not go on */
    bool passed;           /* was let through at the wait limit */
    bool cut;              /* the timeout passed on is shorter than what was asked for */
    bool sent_home; /* its callback ended beside a close: it returns without looking at the queue again */
    bool suspect;   /* its thread was seen asleep above its frame */
    bool cancel;    /* woken because its thread is being cancelled */
    char end[];
};

#define VISITS      8
#define WAIT_FRAMES 24

/* What the watchdog remembers of a visit between two looks (watch.c only). */
struct watched {
    uint32_t sequence, windows;
    int64_t since, callback_since;
};

struct self {
    struct visit visits[VISITS];
    struct visit *top;
    int used;
    int tid;
    bool librdkafka; /* a thread of the library itself */
    bool unusual;    /* librdkafka or last_set: no call of this thread is lonely */
    bool live;
    pthread_t thread;
    uintptr_t stack_from, stack_to; /* the stack asked about last */
    _Atomic bool cancel_wanted;
    rd_kafka_resp_err_t last_error; /* what we want rd_kafka_last_error() to say … */
    rd_kafka_resp_err_t last_real;  /* … while the real one still says this */
    bool last_set;
    struct self *next_free;
    /* The message that this thread got last and has not given back (ledger.h). */
    _Atomic uintptr_t held;
    struct consumer *_Atomic held_of;
    int64_t held_since;
    uint16_t held_call;
    uint32_t id; /* never given twice: records are reused, threads are not */
    /* The stack that the thread took of itself as its last wait at a gate began; whole if the number is even.
     */
    _Atomic uint32_t stack_number;
    int stack_frames;
    uintptr_t stack[WAIT_FRAMES];
    struct watched watched[VISITS];
};

extern __thread struct self *rdg_self;

/* This thread's record, made on first use; NULL if there is no memory: the call then goes straight on. */
struct self *self_make(void);
static inline struct self *self_get(void)
{
    struct self *s = rdg_self;
    return s ? s : self_make();
}
/* Of this thread alone, so no locked instruction. */
static inline void visit_begins(struct visit *v)
{
    atomic_store_explicit(&v->sequence, atomic_load_explicit(&v->sequence, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* Pushes a visit; NULL if this thread is nested too deep to keep a record of it. */
static inline struct visit *self_push(struct self *s)
{
    if (s->used == VISITS)
        return NULL;
    struct visit *v = &s->visits[s->used++];
    v->outer = s->top;
    visit_begins(v);
    s->top = v;
    return v;
}

static inline void self_pop(struct self *s, struct visit *v)
{
    s->used = (int)(v - s->visits);
    s->top = v->outer;
}

static inline void self_forget_error(struct self *s)
{
    s->last_set = false;
    s->unusual = s->librdkafka;
}

/* Do both addresses lie in one stack? The last answer is kept. For the thread itself only. */
bool self_same_stack(struct self *s, uintptr_t a, uintptr_t b);
/* Starts a thread of our own: the application's signals are not for it, and its stack has room for our frames
 * only. false: it cannot be made. */
bool self_thread(pthread_t *thread, void *(*body)(void *), void *arg);
/* Calls f for every live thread record, this thread's included; no lock is held. */
void self_each(void (*f)(struct self *s, void *with), void *with);
/* In a forked child: only this thread is left. */
void self_after_fork(void);
/* Around fork: no record is half made in the child. */
void self_hold(bool hold);

#endif
