/*
 * snapshot.h: what one look at the process saw, as plain data: the input of verdict.c and report.c. Whoever
 * looks (watch.c, notes.c, a test) fills it in; nothing here points into live records, and everything may be
 * nonsense, since what was looked at moves meanwhile: readers check every index and every count.
 *
 * Times are milliseconds before the look ("age"), -1 = not known. Indices are into the arrays of the
 * snapshot, -1 = none. Strings are terminated and as the application gave them: whoever prints them escapes
 * them.
 */
#ifndef RDGATE_SNAPSHOT_H
#define RDGATE_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

/* An address in words: the file it lies in, and the function, if its symbol table says so. */
struct place {
    uintptr_t address; /* 0: no place */
    char object[48];   /* base name of the file; empty: unknown */
    uintptr_t offset;  /* from where the file is loaded */
    char function[64]; /* empty: unknown */
};

enum seen_state {
    SEEN_WAITING,  /* at the gate */
    SEEN_INSIDE,   /* admitted: in librdkafka, or in a callback of it */
    SEEN_RETURNING /* its callback is over, and it waits for a borrower */
};

/* One call of a thread. */
struct seen_call {
    uint16_t call; /* enum call_id */
    uint8_t class; /* enum class */
    uint8_t state; /* enum seen_state */
    short consumer;
    uint8_t callback;     /* running in it: enum callback + 1, 0 = none */
    bool guard;           /* holds no gate */
    bool finite;          /* has a timeout of its own … */
    int64_t timeout_left; /* … which ends in so many ms; negative: is over */
    int64_t age;          /* since it was first seen in this call */
    int64_t waiting;      /* since it began to wait at the gate, -1: does not */
    int64_t callback_age; /* since the callback was first seen running */
    struct place caller;
};

enum sleep {
    SLEEP_UNKNOWN, /* nothing could be read */
    SLEEP_RUNNING, /* on a processor, or about to be */
    SLEEP_MUTEX,   /* in a pthread mutex; owner in mutex_owner, 0 = unknown */
    SLEEP_FUTEX,   /* in a futex that is no mutex we know: condition variable, join, lock of a runtime */
    SLEEP_POLL,    /* poll, epoll_wait, select */
    SLEEP_READ,    /* read, recv, accept: on a file descriptor */
    SLEEP_TIME,    /* nanosleep */
    SLEEP_WAIT,    /* waits for a child */
    SLEEP_DISK,    /* uninterruptible */
    SLEEP_STOPPED, /* by a signal or a debugger */
    SLEEP_GONE     /* the thread has ended */
};

enum stack_from {
    STACK_NONE,
    STACK_BY_ITSELF, /* taken by the thread as its wait began */
    STACK_ASKED,     /* asked of it by a signal just now */
    STACK_SILENT     /* asked, did not answer */
};

#define SEEN_CALLS  8
#define SEEN_FRAMES 24

struct seen_thread {
    int tid;
    char name[16];
    uint8_t sleep; /* enum sleep */
    long syscall;  /* number, -1: none */
    uintptr_t futex;
    int mutex_owner; /* tid; of another process if mutex_elsewhere */
    bool mutex_elsewhere;
    bool timed;     /* the system call has a limit of its own, so this sleep ends */
    bool gil;       /* what it sleeps for is Python's interpreter lock; futex is where that lies */
    int64_t asleep; /* how long it was seen standing in this very sleep */
    uint8_t calls;
    struct seen_call call[SEEN_CALLS]; /* the outermost first */
    uint8_t stack_from;
    uint8_t frames;
    struct place *frame; /* the innermost first; NULL: none */
};

/* Who waits for whom, as far as it is known and not guessed. */
enum edge_kind {
    EDGE_GATE,     /* at the gate, for a call that is inside */
    EDGE_BORROWER, /* its callback is over, for the borrower of the gate */
    EDGE_GUARD,    /* a destroy, for a call that holds no gate */
    EDGE_MUTEX,    /* for the owner of a pthread mutex */
    EDGE_ANSWER    /* inside librdkafka, which waits for the answer to a rebalance that this thread's callback
                      owes */
};

struct edge {
    uint8_t kind;
    short from, to; /* threads */
    short consumer; /* the gate, or whose rebalance */
    uintptr_t mutex;
};

enum debt_kind { DEBT_MESSAGE, DEBT_EVENT, DEBT_LIST, DEBT_TOPIC, DEBT_QUEUE, DEBTS };

/* What the application got and has not given back. */
struct debt {
    int count;
    bool more; /* there may be more of them than we could write down */
    /* of the oldest: */
    uint16_t call;
    int tid;
    char thread[16];
    int64_t age;
};

struct seen_rebalance {
    int code;       /* __ASSIGN_PARTITIONS, __REVOKE_PARTITIONS; 0: there was none yet */
    int partitions; /* -1: not known */
    bool by_event;  /* else by callback */
    bool returned;  /* the callback has returned, or the event was destroyed */
    int tid;        /* who got it */
    char thread[16];
    int64_t age;
    bool answered;
    uint16_t answer; /* the call */
    int answer_list; /* its list: number of partitions, -1: NULL */
    int answer_code; /* what it returned */
    int answer_tid;
    char answer_thread[16];
    int64_t answer_age;
};

struct seen_consumer {
    char name[64], group[64];
    int version; /* of its librdkafka, RD_KAFKA_VERSION >> 8; 0: unknown */
    char version_text[16];
    uint8_t life; /* enum life */
    bool forked;
    int guards;
    struct seen_rebalance rebalance;
    struct debt debt[DEBTS];
    int64_t last_poll; /* 0 while a poll is inside; -1: never polled */
    int poll_tid;      /* who polled last */
    char poll_thread[16];
    int max_poll_ms;
    bool subscribed;
    bool cooperative; /* its assignment strategy */
    int64_t last_commit;
    const char *ended_call; /* name of the call that closed or destroyed it, NULL: none */
    int ended_tid;
    char ended_thread[16];
    int64_t ended_age;
    int made_tid;
    int64_t made_age;
    int made_pid; /* 0: not known */
};

struct snapshot {
    int pid;
    char program[64];
    int64_t time; /* wall clock, ms since 1970 */
    int consumers, threads, edges;
    const struct seen_consumer *consumer;
    const struct seen_thread *thread;
    const struct edge *edge;
};

/* A count beyond this is nonsense, and read as none. */
#define SNAPSHOT_MOST 65536

static inline int seen_count(int count, const void *array)
{
    return array && count > 0 && count <= SNAPSHOT_MOST ? count : 0;
}

/* The thread, consumer, edge or call with this index; NULL if there is none. */
static inline const struct seen_thread *thread_at(const struct snapshot *s, int i)
{
    return i >= 0 && i < seen_count(s->threads, s->thread) ? &s->thread[i] : 0;
}

static inline const struct seen_consumer *consumer_at(const struct snapshot *s, int i)
{
    return i >= 0 && i < seen_count(s->consumers, s->consumer) ? &s->consumer[i] : 0;
}

static inline const struct edge *edge_at(const struct snapshot *s, int i)
{
    return i >= 0 && i < seen_count(s->edges, s->edge) ? &s->edge[i] : 0;
}

static inline int calls_of(const struct seen_thread *t)
{
    return t->calls < SEEN_CALLS ? t->calls : SEEN_CALLS;
}

static inline const struct seen_call *innermost(const struct seen_thread *t)
{
    return calls_of(t) > 0 ? &t->call[calls_of(t) - 1] : 0;
}

#endif
