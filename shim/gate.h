/*
 * gate.h: the gate in front of one consumer handle. The protocol is argued at the top of gate.c.
 */
#ifndef RDGATE_GATE_H
#define RDGATE_GATE_H

#include "self.h"

/* The queue was destroyed (handle.c). */
bool object_dead(const struct object *o);
/* One poll on it less; returns how many are left. */
int object_left(struct object *o);

struct line {
    struct visit *first, *last;
};

#define STALE      16
#define POLLERS    8
#define COLLISIONS 24

/* The latest rebalance that was handed to the application (ledger.c). */
struct rebalance {
    _Atomic uint32_t number; /* how many there were */
    int code, partitions;
    const void *event; /* NULL: by callback */
    bool returned, answered;
    bool noted; /* said that it is unanswered */
    int tid, answer_tid;
    int64_t at, answer_at; /* ms of now_ns() */
    uint16_t answer;
    int answer_list, answer_code;
    char thread[16], answer_thread[16];
};

/* What we know of one rd_kafka_t. */
struct consumer {
    /* The gate. word: 0 = free, visit|FAST = one visit inside that nobody else cares about, SLOW = the truth
     * is in the fields below, under mu. */
    _Alignas(64) _Atomic uintptr_t word;
    _Atomic int guards;
    _Atomic int life;
    struct lock mu;
    _Atomic uint32_t guards_left; /* DEATH sleeps on it */
    struct visit *inside;         /* occupants, the latest first */
    struct line waiting[3];       /* DEATH and CLOSE, CALL, POLL */
    int yielding;                 /* yields being sent: nobody is admitted meanwhile */
    uint64_t stale_lane[STALE];   /* lanes (+1) whose yield flag may still be set */
    int stale;
    bool forked;
    bool main_forwarded;    /* the main queue is forwarded to the consumer queue */
    _Atomic bool app_yield; /* the application yielded the consumer queue itself */
    _Atomic int unanswered; /* a rebalance (its error code) was delivered and not answered */
    int close_result;
    bool closed_by_us;
    bool closed_by_queue;
    bool close_failed;   /* close_queue said no: closed() must become 1 all the same */
    bool given_up;       /* RDGATE_CLOSE_MS: the close was, the group goes on ending (close.c) */
    int64_t close_until; /* when it will be */
    _Atomic uint32_t close_clock;
    _Atomic uint32_t reported;       /* findings that are said once per consumer */
    uint32_t collisions[COLLISIONS]; /* pairs of calls whose collision was said */
    struct self *deferred;           /* the thread that called destroy inside a callback */
    int deferred_flags;
    int killer_tid; /* who closed or destroyed it, and when */
    int64_t killed_at;
    const char *killer_call;

    /* The handle. */
    rd_kafka_t *rk;
    const struct library *lib;
    bool is_consumer;
    bool plain;                       /* a consumer, in a mode where a lonely call need not be looked at */
    bool expected;                    /* rd_kafka_new is running */
    const rd_kafka_conf_t *conf;      /* rd_kafka_conf(rk) */
    rd_kafka_queue_t *consumer_queue; /* our own reference, safe beyond destroy; NULL without a group */
    rd_kafka_queue_t *private_queue;  /* for keeping the membership alive while parked */
    int max_poll_ms;
    char name[64], group[64];

    /* The ledger (ledger.c). */
    _Atomic uint32_t polls; /* how many */
    uint32_t poller;        /* self->id of who polled last */
    int poller_tid;
    uint32_t pollers[POLLERS]; /* everybody who ever did, as far as there is room */
    bool pollers_lost;
    bool subscribed;
    _Atomic bool told_by_event; /* the application has asked to be told when there is something to poll */
    bool cooperative;           /* its assignment strategy */
    struct rebalance rebalance;
    _Atomic int64_t committed; /* rdg_tick of the last commit, 0: none */
    int made_tid;
    uint32_t made_by; /* self->id */
    int64_t made_at;
    /* What the watchdog remembers between two looks. */
    uint32_t polls_seen;
    int64_t polls_since; /* ms */
    long polling_at;     /* the look that saw a poll inside */
    bool polling;        /* it was the last one */
    int desk;            /* index in the snapshot, -1: not in it */
    void *callbacks[CB_COUNT];
    struct flight_consumer *flight; /* its row in the flight file, NULL: none (flight.c) */
    uint32_t flight_generation;
    struct object *objects;
    struct consumer *younger, *next_free, *made_before;
};

enum admission {
    ADMITTED,
    OUT_OF_TIME, /* the call's own timeout ran out at the gate */
    REFUSED_IT,  /* v->code says why */
};

/* Enters. v is filled in by the caller (wrap.c). On ADMITTED the visit is inside and gate_leave is owed;
 * after anything else it is not. */
enum admission gate_enter(struct consumer *c, struct visit *v);
/* A poll came back. true: go on with the real call, *timeout_ms is the rest of the time; false: leave with
 * what there is. After false gate_leave is owed as ever. `empty`: it brought nothing. */
bool gate_again(struct visit *v, bool empty, int *timeout_ms);
void gate_leave(struct visit *v);
/* The application's callback begins and ends in this visit. */
void gate_window_begins(struct visit *v, enum callback which);
void gate_window_ends(struct visit *v);
/* The visit's thread re-enters from its own callback: does not wait, but for borrowers in the one case where
 * they would be harmed. */
enum admission gate_nest(struct consumer *c, struct visit *v);

/* Who waits for whom at this gate, without an end of its own: at most `most` edges; returns how many. */
struct gate_edge {
    const struct self *from, *to;
    int kind; /* enum edge_kind */
};
int gate_edges(struct consumer *c, struct gate_edge *edges, int most);
/* This visit of the thread, if it is the one with this sequence number and a destroy that waits, waits no
 * longer: the handle is leaked. */
void gate_let_go(const struct self *s, int level, uint32_t sequence);

/* GUARD: counted in and out. false: the handle is being destroyed. */
bool guard_enter(struct consumer *c);
void guard_leave(struct consumer *c);
/* The same for a visit, which may poll a queue that somebody waits to destroy. */
void guard_out(struct visit *v);

/* After the real close returned: what has become of the handle. */
void gate_closed(struct visit *v, int result, bool closed, bool queue_given);
/* close_queue: has the group terminated meanwhile? Cheap; called by those who care. */
bool gate_is_closed(struct consumer *c);
/* After the real destroy returned, or was given up. */
void gate_destroyed(struct consumer *c, int call);
/* The handle shall die when this thread's outermost call on it returns. */
void gate_put_off(struct consumer *c, int flags);
/* Lets min(timeout, 1 s) pass, for polls of handles that can bring nothing any more. */
void gate_idle_poll(int timeout_ms);

/* pthread_cancel of a thread that polls: wake the poll first. true: it will cancel itself outside librdkafka.
 */
bool gate_cancel_poll(struct self *s);
/* Every visit of this thread whose wrapper frame lies below this address has been left without returning. */
void gate_abandon(struct self *s, uintptr_t frame, int finding);
void gate_thread_ends(struct self *s);

void gate_reset(struct consumer *c);
bool gate_is_idle(struct consumer *c);
void gate_after_fork(struct consumer *c);

/* The monotonic clock, a tick late at most, cheaply. */
int64_t coarse_ns(void);
/* When a wait that began then has lasted long enough (RDGATE_MAX_WAIT_MS); FOREVER if there is no limit. */
int64_t wait_limit(int64_t from);
/* Milliseconds of the call's own timeout that are left; 0 if none. */
int rest_ms(const struct visit *v);

#endif
