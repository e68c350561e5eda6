/*
 * verdict.h: from a snapshot to findings. Pure: no threads, no clock, no files, no memory of earlier looks.
 */
#ifndef RDGATE_VERDICT_H
#define RDGATE_VERDICT_H

#include "snapshot.h"

enum severity { SEVERITY_INFO, SEVERITY_WARNING, SEVERITY_ERROR };

/* The table of DESIGN 4 in its order; findings.def has their codes and texts. */
enum finding {
#define FINDING(NAME, ...) NAME,
#include "findings.def"
    FINDINGS
};

#define PARTIES 8

/* Variants of findings; each has its row of words in findings.def. */
enum note {
    NOTE_NONE,
    /* DEADLOCK */
    LOOP_MUTEX,  /* a mutex and a gate, or mutexes */
    LOOP_GATES,  /* gates alone */
    LOOP_ANSWER, /* a close and the callback that owes the answer */
    LOOP_SELF,   /* one thread and its own mutex */
    /* STUCK_CALL */
    STUCK_INSIDE,    /* in librdkafka, or past its timeout */
    STUCK_CALLBACK,  /* a callback runs */
    STUCK_NESTED,    /* a call inside a callback */
    STUCK_AT_GATE,   /* waits at the gate */
    STUCK_RETURNING, /* its callback is over, a borrower is not */
    /* CLOSE_STUCK, DESTROY_STUCK; the last three CLOSE_DEBT as well */
    END_CALLBACK, /* in a callback that does not return */
    END_NO_REPLY, /* in a callback that has answered the rebalance, and the answer does not return */
    OWES_ANSWER,
    OWES_OBJECTS,
    OWES_NOTHING,
    END_BESIDE,         /* another thread's call is inside: nobody kept them apart (observe) */
    END_TWICE,          /* CLOSE_STUCK: another close has ended meanwhile */
    CLOSE_GIVEN_UP,     /* RDGATE_CLOSE_MS */
    DESTROY_LEFT_ALONE, /* the same, for the destroy after it */
    /* REBALANCE_UNANSWERED */
    ANSWER_RETURNED,   /* now: the callback returned */
    ANSWER_EVENT,      /* now: the event was destroyed */
    ANSWER_LATE,       /* stuck_ms after the callback returned */
    ANSWER_LATE_EVENT, /* stuck_ms after the event was delivered and destroyed */
    ANSWER_LATE_HELD,  /* stuck_ms after the event was delivered; the application still has it */
    ANSWER_CLOSE_BEGINS,
    /* REBALANCE_MISANSWERED */
    MISANSWERED_NULL,     /* an assignment, answered with NULL */
    MISANSWERED_LIST,     /* a revocation, answered with partitions */
    MISANSWERED_PROTOCOL, /* refused: answer_code says how */
    /* POLL_GAP, POLL_EXCEEDED: the thread that polls */
    POLLER_OUTSIDE, /* is in no call of librdkafka */
    POLLER_INSIDE,  /* is in another call */
    POLLER_AT_GATE, /* wants to poll and waits at the gate */
    POLLER_GONE,    /* is not there any more */
    /* COLLISION: what came of it; NOTE_NONE: nothing was changed */
    COLLISION_REFUSED,
    /* NOT_COVERED; NOTE_NONE: why is not known */
    COVER_STATIC, /* librdkafka is linked into the executable */
    COVER_HIDDEN, /* into a library that binds its own copy */
    NOTES
};

enum { CODE_ASSIGN = -175, CODE_REVOKE = -174 }; /* RD_KAFKA_RESP_ERR__…_PARTITIONS */

/* One finding about a snapshot: what report.c needs besides the snapshot itself. */
struct verdict {
    enum finding finding;
    short consumer;
    short parties;        /* threads that matter, T1 first; for a deadlock the loop in order */
    short party[PARTIES]; /* indices into the snapshot's threads */
    short edges;          /* DEADLOCK: the loop; edge[i] leads from party[i] to party[i + 1] */
    short edge[PARTIES];  /* -1: EDGE_ANSWER, found by verdict.c and not in the snapshot */
    uint16_t call;        /* the call that it is about */
    short level;          /* of party[0]: which of its calls */
    int64_t age;          /* how long, -1: does not matter */
    int64_t limit;        /* the limit that was reached, in ms */
    int note;             /* enum note */
    int hint;             /* known defect of librdkafka + 1, 0: none (defects.def) */
    const char *about;    /* NOT_COVERED: the file that librdkafka is in; else NULL */
    const char *reason;   /* the same: why, and behind "; " what helps; NULL: not known */
};

/* Calls that end a consumer: not the destroy of a mere queue or topic. */
bool call_closes(int call);
bool call_destroys(int call);
/* Does the end of the group wait for the answer to this consumer's rebalance? An assignment is forgiven to an
 * eager group, and to any that was told by event (seen on 2.0.2 and 2.15, tests/ledger.bats). */
bool verdict_unanswered(const struct seen_consumer *c);
/* What the ledger says against a close or destroy of consumer c: OWES_*. Also for CLOSE_DEBT. */
enum note verdict_owes(const struct seen_consumer *c, bool destroy);

struct limits {
    int64_t stuck_ms;
};

/* Fills in at most `most` verdicts, the most telling first; returns how many. A snapshot that contradicts
 * itself gives fewer or none, never a crash. A deadlock is only a closed loop of the snapshot's edges; that
 * it was seen twice is the caller's business. */
int verdicts(const struct snapshot *s, const struct limits *l, struct verdict *out, int most);

/* The same thing seen again? (same finding, consumer, threads and calls; ages may differ) */
bool verdict_same(const struct snapshot *sa, const struct verdict *a, const struct snapshot *sb,
                  const struct verdict *b);

#endif
