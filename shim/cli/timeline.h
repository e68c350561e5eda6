/*
 * timeline.h: from the events of a flight file to what a picture needs: spans of threads and marks. Pure: no
 * files, no clock; the events may be anything, since whoever wrote the file is not trusted.
 */
#ifndef RDGATE_CLI_TIMELINE_H
#define RDGATE_CLI_TIMELINE_H

#include "../flight_layout.h"

#include <stdbool.h>

enum span_kind {
    SPAN_POLL,
    SPAN_CALL,
    SPAN_END, /* close, destroy */
    SPAN_GUARD,
    SPAN_CALLBACK, /* of the application */
    SPAN_WAIT,     /* at the gate */
    SPAN_OWED,     /* a rebalance that is not answered; no thread */
    SPAN_KINDS
};

enum span_flag {
    SPAN_BEFORE = 1,   /* began earlier than that: when was not recorded, or is overwritten */
    SPAN_OPEN = 2,     /* still there at the end */
    SPAN_BORROWED = 4, /* let in while another's callback ran */
    SPAN_REFUSED = 8,  /* told no */
    SPAN_NESTED = 16,  /* inside another call on the same gate */
};

#define SPAN_DEPTH 16

struct span {
    int64_t begin, end; /* ns, CLOCK_MONOTONIC of the process */
    int thread;         /* index, -1: none */
    int consumer;       /* index */
    int other;          /* WAIT: the thread it waits for, -1 */
    uint16_t what;      /* enum call_id; CALLBACK: enum callback */
    uint16_t other_call;
    uint8_t kind, flags;
    uint8_t depth; /* how many spans of the thread are round it */
};

struct mark {
    int64_t at;
    int thread, consumer;             /* -1: none */
    const struct flight_event *event; /* what it is */
};

struct timeline_thread {
    int tid;
    char name[16]; /* terminated; empty: not known */
};

/* A consumer is a row of the file, in one of its lives. */
struct timeline_consumer {
    int row;
    uint32_t generation;
};

struct timeline {
    int64_t begin, end; /* of everything; begin <= end */
    struct span *span;  /* by begin, the outer first */
    struct mark *mark;  /* by time */
    struct timeline_thread *thread;
    struct timeline_consumer *consumer;
    size_t spans, marks;
    int threads, consumers;
};

/* From events in any order, and the threads that were in a call when the watchdog looked last (NULL: not
 * known). `end` is the time of the reading, 0: the last that is known. The marks point to the events. false:
 * no memory. */
bool timeline_make(struct timeline *t, const struct flight_event *const *events, size_t count,
                   const struct flight_thread *threads, size_t thread_count, int64_t looked, int64_t end);
void timeline_free(struct timeline *t);

#endif
