/*
 * flight_layout.h: the flight file, byte for byte: what a process under the shim leaves in memory that
 * outlives it. Written by flight.c, read by cli/flight.c, and known to nobody else. Fixed widths and fixed
 * places only: there is no offset in the file that a reader would have to trust. Whoever changes anything
 * here, or what a number in it means, raises FLIGHT_VERSION.
 *
 * TIMES are CLOCK_MONOTONIC in nanoseconds, 0 = not known, unless they end in _ms: those are ages, in the
 * terms of snapshot.h. The header has one instant by both clocks.
 *
 * WHO WRITES WHAT, and how a reader knows that it is whole:
 *   header, row.born … row.group   once, before the row's state says that it is there
 *   row.count, row.waits …         any thread, relaxed additions: each number is right, together they may not
 * be row.now, threads               the watchdog at each look, between two increments of header.look (odd:
 * now) ring                           any thread; an event has its number and a sum over all of it, both of
 * which a reader checks: what is torn or was overtaken fails one of them snapshot[2]                    the
 * watchdog, in turns; header.snapshot says which is whole (+1, 0 = none), its own `sequence` is odd while it
 * is being written findings                       any thread; its number is written last, 0 = being written
 *   places                         the watchdog; the address is written last and never changes
 */
#ifndef RDGATE_FLIGHT_LAYOUT_H
#define RDGATE_FLIGHT_LAYOUT_H

#include "call.h"
#include "snapshot.h"

#include <stddef.h>
#include <stdint.h>

#define FLIGHT_MAGIC   "RDGATE\x1a\n"
#define FLIGHT_VERSION 1

#define FLIGHT_INSTANCES 16
#define FLIGHT_CONSUMERS 256
#define FLIGHT_THREADS   128
#define FLIGHT_RINGS     32 /* consumers with more than that many before them share one: row % FLIGHT_RINGS */
#define FLIGHT_EVENTS    256 /* in each ring */
#define FLIGHT_BUCKETS                                                                                       \
    24 /* of a histogram: bucket i counts waits of less than 2^i microseconds, the last the rest */
#define FLIGHT_FINDINGS 8
#define FLIGHT_CODES    32 /* room for as many kinds of findings */
#define FLIGHT_PLACES   128
#define FLIGHT_NEST     8

/* Of the snapshot. */
#define FLIGHT_SEEN_CONSUMERS 32
#define FLIGHT_SEEN_THREADS   64
#define FLIGHT_SEEN_EDGES     128

enum flight_state { FLIGHT_MAKING, FLIGHT_LIVE, FLIGHT_ENDED /* cleanly, and kept */ };
enum flight_cover { FLIGHT_BY_LINKING = 1, FLIGHT_BY_DLSYM, FLIGHT_BY_PATCHING };

/* One loaded librdkafka. */
struct flight_instance {
    uint32_t version; /* RD_KAFKA_VERSION >> 8 */
    uint32_t cover;   /* enum flight_cover */
    uint64_t from, to;
    char text[16]; /* its version in words */
    char path[128];
};

struct flight_header {
    char magic[8];
    uint32_t version; /* FLIGHT_VERSION */
    uint32_t size;    /* of the whole file */
    uint64_t words;   /* flight_words(): the tables of calls and findings that the numbers here mean */
    uint32_t state;   /* enum flight_state */
    int32_t pid;
    uint64_t start;     /* of the process, as /proc/PID/stat has it: clock ticks since boot */
    uint64_t namespace; /* inode of /proc/self/ns/pid */
    int32_t parent;     /* the process whose consumers this one inherited by fork, 0: none */
    uint32_t uid;
    int64_t mono_ns, wall_ns; /* one instant */
    char program[64];
    char shim[16];
    uint32_t mode; /* enum mode */
    uint32_t instances;
    int64_t stuck_ms, max_wait_ms, close_ms;
    int64_t looked;          /* when the watchdog looked last */
    uint64_t looks;          /* how often it did */
    uint32_t look;           /* odd: it writes row.now and threads */
    uint32_t snapshot;       /* which of the two + 1 */
    uint64_t findings;       /* how many there were */
    uint32_t consumers_lost; /* had no row any more */
    uint32_t threads_lost;   /* the same at the last look */
    uint32_t rows;           /* rows that were ever used */
    uint32_t reserved[1];
    struct flight_instance instance[FLIGHT_INSTANCES];
    uint32_t found[FLIGHT_CODES]; /* how often each enum finding was found, written or only counted */
    char rest[1176 - 4 * FLIGHT_CODES];
};

enum flight_row_state { FLIGHT_FREE, FLIGHT_OPEN, FLIGHT_GONE };

/* Counters of a consumer, in the order of FLIGHT_COUNTERS. */
#define FLIGHT_COUNTERS(X)                                                                                   \
    X(calls)       /* that are no polls and no guards */                                                     \
    X(collisions)  /* calls that met another thread's */                                                     \
    X(waits)       /* … and waited for it */                                                               \
    X(preemptions) /* polls that were woken for a call */                                                    \
    X(loans)       /* calls let in while a callback ran */                                                   \
    X(passed)      /* let through at the wait limit */                                                       \
    X(refused)     /* told no */                                                                             \
    X(callbacks)                                                                                             \
    X(rebalances)                                                                                            \
    X(findings)

enum flight_counter {
#define X(name) FLIGHT_COUNT_##name,
    FLIGHT_COUNTERS(X)
#undef X
        FLIGHT_COUNTS
};

/* What the watchdog saw of a consumer at its last look. */
struct flight_now {
    uint32_t life; /* enum life */
    int32_t owner; /* tid of a thread that is admitted, 0: nobody */
    uint16_t owner_call;
    uint8_t owner_callback; /* enum callback + 1 */
    uint8_t unanswered;     /* a rebalance was handed out and not answered */
    uint32_t inside;        /* how many are admitted */
    uint32_t waiting;       /* … and wait at the gate */
    uint32_t guards;
    int64_t owner_since, waiting_since, callback_since; /* of whoever waits longest */
    int64_t polled; /* when a poll was inside last, or began, exact to a look; 0: never */
    int64_t longest_gap_ns;
    uint64_t polls;
    int64_t committed;
    int32_t debt[DEBTS];
    int32_t poller; /* tid of who polled last */
};

struct flight_consumer {
    uint32_t state; /* enum flight_row_state */
    uint32_t generation;
    int32_t made_tid;
    uint16_t instance; /* in the header */
    uint16_t flags;    /* FLIGHT_SUBSCRIBED … */
    int64_t born, gone;
    char name[64], group[64];
    int64_t max_poll_ms;
    uint64_t count[FLIGHT_COUNTS];
    int64_t longest_wait_ns;
    uint32_t waits[FLIGHT_BUCKETS];
    struct flight_now now;
    uint64_t waited_ns; /* the sum of all waits, of which `waits` is the histogram */
    char rest[48];
};

enum { FLIGHT_SUBSCRIBED = 1, FLIGHT_COOPERATIVE = 2 };

/* A thread that was in a call at the last look. */
struct flight_thread {
    int32_t tid;      /* 0: none */
    int16_t consumer; /* row, of the innermost call; -1 */
    uint8_t calls;    /* used of nest */
    uint8_t state;    /* enum seen_state, of the innermost */
    char name[16];
    struct flight_nest {
        uint16_t call;
        uint8_t callback; /* running in it, enum callback + 1 */
        uint8_t guard;
    } nest[FLIGHT_NEST];                          /* the outermost first */
    int64_t since, callback_since, waiting_since; /* of the innermost */
    int64_t deadline;                             /* of its timeout; 0: has none, or 0 */
    uint64_t caller;
    int32_t waits_for; /* tid; 0: for nobody that we know */
    uint32_t generation;
    int16_t row[FLIGHT_NEST]; /* the consumers of nest, -1 */
    char rest[8];
};

enum flight_event_kind {
    FLIGHT_NOTHING,
    FLIGHT_BORN,            /* call: that made it */
    FLIGHT_CALL_BEGINS,     /* call, caller */
    FLIGHT_CALL_ENDS,       /* call, code: what it returned */
    FLIGHT_POLL,            /* the end of a poll that mattered: flags say why; code: of the message */
    FLIGHT_WAIT_BEGINS,     /* call; other: the thread it waits for, other_call: in which call */
    FLIGHT_WAIT_ENDS,       /* call; value: ns that it lasted, flags: FLIGHT_REFUSED … */
    FLIGHT_PREEMPTS,        /* other: the thread whose poll was woken */
    FLIGHT_CALLBACK_BEGINS, /* call, callback */
    FLIGHT_CALLBACK_ENDS,
    FLIGHT_LOAN,      /* call, of a thread (tid) that was let in while another's callback ran */
    FLIGHT_REBALANCE, /* code; value: partitions, -1 = not known; flags: FLIGHT_BY_EVENT */
    FLIGHT_ANSWER,    /* call, code: what it returned; value: partitions, -1 = NULL */
    FLIGHT_COLLISION, /* call; other, other_call: whom it met */
    FLIGHT_FINDING,   /* call; code: enum finding; value: its number */
    FLIGHT_CLOSED,    /* call, code: what the close returned */
    FLIGHT_DESTROYED, /* call */
    FLIGHT_ABANDONED, /* a call was left without returning; code: enum finding */
    FLIGHT_KINDS
};

enum flight_flag {
    FLIGHT_WAITED = 1,    /* POLL: at the gate */
    FLIGHT_PREEMPTED = 2, /* POLL: was woken for a call */
    FLIGHT_CALLED = 4,    /* POLL: ran a callback */
    FLIGHT_FAILED = 8,    /* POLL: brought an error */
    FLIGHT_BY_EVENT = 16,
    FLIGHT_REFUSED = 32, /* told no */
    FLIGHT_TIMED_OUT = 64,
    FLIGHT_LET_PAST = 128, /* at the wait limit */
    FLIGHT_CUT_SHORT = 256 /* POLL: returned empty before its time because the consumer closes */
};

struct flight_event {
    uint64_t number; /* 1 for the first of this ring; the event lies in slot (number - 1) % FLIGHT_EVENTS */
    int64_t time;
    uint16_t consumer; /* row */
    uint8_t kind;      /* enum flight_event_kind */
    uint8_t callback;  /* enum callback + 1 */
    uint16_t call, flags;
    int32_t tid, other; /* threads */
    int32_t code;
    uint16_t other_call, level; /* level: how many calls of this thread are round it */
    int64_t value;
    uint64_t caller;     /* return address */
    uint32_t generation; /* of the row */
    uint32_t sum;        /* flight_sum() */
};

struct flight_ring {
    uint64_t head; /* how many events were begun */
    char rest[56];
    struct flight_event event[FLIGHT_EVENTS];
};

/* An address in words. */
struct flight_place {
    uint64_t address, offset;
    char object[48], function[64];
};

struct flight_finding {
    uint64_t number; /* 1 for the first; it lies in slot (number - 1) % FLIGHT_FINDINGS; 0: being written */
    int64_t time;
    uint32_t finding, severity; /* enum finding, enum severity */
    int32_t consumer;           /* row, -1: none */
    uint32_t length;            /* of text */
    uint64_t reported;          /* the number that the report had, 0: was only counted */
    char summary[216];          /* one line */
    char text[7936];            /* the report, as it was written or would have been */
};

/* ------------------------------------------------------------------ the snapshot: snapshot.h in fixed width
 * Each list makes the struct here and both copies (flight_pack.h), so no field is forgotten in one of them.
 */

/* clang-format off */
#define FLIGHT_DEBT(N, S, P) \
    N(int32_t, count) N(uint16_t, call) N(uint8_t, more) P(uint8_t, pad) N(int32_t, tid) P(int32_t, pad2) \
    N(int64_t, age) S(thread, 16)
#define FLIGHT_REBALANCED(N, S, P) \
    N(int32_t, code) N(int32_t, partitions) N(uint8_t, by_event) N(uint8_t, returned) N(uint8_t, answered) \
    P(uint8_t, pad) N(int32_t, tid) N(int64_t, age) N(uint16_t, answer) P(uint16_t, pad2) \
    N(int32_t, answer_list) N(int32_t, answer_code) N(int32_t, answer_tid) N(int64_t, answer_age) \
    S(thread, 16) S(answer_thread, 16)
#define FLIGHT_SEEN_CALL(N, S, P) \
    N(uint16_t, call) N(uint8_t, class) N(uint8_t, state) N(int16_t, consumer) N(uint8_t, callback) \
    N(uint8_t, guard) N(uint8_t, finite) P(uint8_t, pad) P(uint16_t, pad2) P(uint32_t, pad3) \
    N(int64_t, timeout_left) N(int64_t, age) N(int64_t, waiting) N(int64_t, callback_age)
#define FLIGHT_SEEN_THREAD(N, S, P) \
    N(int32_t, tid) N(uint8_t, sleep) N(uint8_t, mutex_elsewhere) N(uint8_t, timed) N(uint8_t, gil) \
    N(int64_t, syscall) N(uint64_t, futex) N(int32_t, mutex_owner) N(uint8_t, calls) P(uint8_t, pad) \
    P(uint16_t, pad2) N(int64_t, asleep) S(name, 16)
#define FLIGHT_SEEN_CONSUMER(N, S, P) \
    N(int32_t, version) N(uint8_t, life) N(uint8_t, forked) N(uint8_t, subscribed) N(uint8_t, cooperative) \
    N(int32_t, guards) N(int32_t, poll_tid) N(int64_t, last_poll) N(int32_t, max_poll_ms) \
    N(int32_t, ended_tid) N(int64_t, last_commit) N(int64_t, ended_age) N(int64_t, made_age) \
    N(int32_t, made_tid) N(int32_t, made_pid) S(name, 64) S(group, 64) S(version_text, 16) \
    S(poll_thread, 16) S(ended_thread, 16)
#define FLIGHT_EDGE(N, S, P) \
    N(uint8_t, kind) P(uint8_t, pad) N(int16_t, from) N(int16_t, to) N(int16_t, consumer) N(uint64_t, mutex)
/* clang-format on */

#define FLIGHT_NUMBER(type, name) type name;
#define FLIGHT_STRING(name, size) char name[size];
struct flight_debt {
    FLIGHT_DEBT(FLIGHT_NUMBER, FLIGHT_STRING, FLIGHT_NUMBER)
};
struct flight_rebalance {
    FLIGHT_REBALANCED(FLIGHT_NUMBER, FLIGHT_STRING, FLIGHT_NUMBER)
};
struct flight_seen_call {
    FLIGHT_SEEN_CALL(FLIGHT_NUMBER, FLIGHT_STRING, FLIGHT_NUMBER)
    uint64_t caller;
};
struct flight_seen_thread {
    FLIGHT_SEEN_THREAD(FLIGHT_NUMBER, FLIGHT_STRING, FLIGHT_NUMBER)
    struct flight_seen_call call[SEEN_CALLS];
};
struct flight_seen_consumer {
    FLIGHT_SEEN_CONSUMER(FLIGHT_NUMBER, FLIGHT_STRING, FLIGHT_NUMBER)
    int32_t row; /* in the table of consumers, -1: has none */
    uint32_t generation;
    uint16_t ended_call; /* enum call_id + 1, 0: it has not ended */
    uint16_t pad[3];
    struct flight_rebalance rebalance;
    struct flight_debt debt[DEBTS];
};
struct flight_edge {
    FLIGHT_EDGE(FLIGHT_NUMBER, FLIGHT_STRING, FLIGHT_NUMBER)
};

struct flight_snapshot {
    uint32_t sequence; /* odd: being written */
    uint32_t consumers, threads, edges;
    int64_t time_ms; /* wall clock, since 1970 */
    int64_t time;
    uint64_t look;     /* header.looks of it */
    uint32_t deadlock; /* for how many looks in a row the same loop stood; a deadlock is believed from 2 on */
    uint32_t pad;
    struct flight_seen_consumer consumer[FLIGHT_SEEN_CONSUMERS];
    struct flight_seen_thread thread[FLIGHT_SEEN_THREADS];
    struct flight_edge edge[FLIGHT_SEEN_EDGES];
    char rest[16];
};

/* ------------------------------------------------------------------ the whole */

struct flight_file {
    struct flight_header header;
    struct flight_consumer consumer[FLIGHT_CONSUMERS];
    struct flight_thread thread[FLIGHT_THREADS];
    struct flight_place place[FLIGHT_PLACES];
    struct flight_finding finding[FLIGHT_FINDINGS];
    struct flight_snapshot snapshot[2];
    struct flight_ring ring[FLIGHT_RINGS];
};

#define FLIGHT_IS(type, field, at) _Static_assert(offsetof(struct type, field) == (at), #type "." #field)
_Static_assert(sizeof(struct flight_instance) == 168, "flight_instance");
FLIGHT_IS(flight_header, version, 8);
FLIGHT_IS(flight_header, size, 12);
FLIGHT_IS(flight_header, pid, 28);
FLIGHT_IS(flight_header, start, 32);
FLIGHT_IS(flight_header, mono_ns, 56);
FLIGHT_IS(flight_header, program, 72);
FLIGHT_IS(flight_header, stuck_ms, 160);
FLIGHT_IS(flight_header, instance, 232);
_Static_assert(sizeof(struct flight_header) == 4096, "flight_header");
FLIGHT_IS(flight_consumer, count, 168);
FLIGHT_IS(flight_consumer, now, 352);
_Static_assert(sizeof(struct flight_now) == 104, "flight_now");
_Static_assert(sizeof(struct flight_consumer) == 512, "flight_consumer");
_Static_assert(sizeof(struct flight_thread) == 128, "flight_thread");
_Static_assert(sizeof(struct flight_event) == 64, "flight_event");
_Static_assert(sizeof(struct flight_ring) == 64 + 64 * FLIGHT_EVENTS, "flight_ring");
_Static_assert(sizeof(struct flight_place) == 128, "flight_place");
_Static_assert(sizeof(struct flight_finding) == 8192, "flight_finding");
_Static_assert(sizeof(struct flight_debt) == 40, "flight_debt");
_Static_assert(sizeof(struct flight_rebalance) == 80, "flight_rebalance");
_Static_assert(sizeof(struct flight_seen_call) == 56, "flight_seen_call");
_Static_assert(sizeof(struct flight_seen_thread) == 56 + 8 * 56, "flight_seen_thread");
_Static_assert(sizeof(struct flight_seen_consumer) == 536, "flight_seen_consumer");
_Static_assert(sizeof(struct flight_edge) == 16, "flight_edge");
_Static_assert(sizeof(struct flight_file) <= 1024 * 1024, "flight_file");
_Static_assert(sizeof(struct flight_file) % 64 == 0, "flight_file");
_Static_assert(DEBTS == 5 && SEEN_CALLS == 8, "snapshot.h");

/* Over everything in an event but the sum itself. */
static inline uint32_t flight_sum(const uint64_t words[8])
{
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 7; i++)
        h = (h ^ words[i]) * 0xff51afd7ed558ccdu;
    h = (h ^ (uint32_t)words[7]) * 0xff51afd7ed558ccdu; /* the generation; the sum is the upper half */
    return (uint32_t)(h >> 32);
}

/* What the numbers of calls, callbacks and findings mean: a file made with other tables cannot be read. */
static inline uint64_t flight_words(void)
{
    static const char words[] =
#define CALL(kind, result, name, ...) #name " "
#include "calls.def"
#define FINDING(NAME, code, severity) code " "
#include "findings.def"
#define X(name) #name " "
        FOR_CALLBACKS(X)
#undef X
            "";
    uint64_t h = 1469598103934665603u;
    for (const char *p = words; *p; p++)
        h = (h ^ (unsigned char)*p) * 1099511628211u;
    return h;
}

#endif
