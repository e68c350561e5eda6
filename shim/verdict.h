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

/* One finding about a snapshot: what report.c needs besides the snapshot itself. */
struct verdict {
    enum finding finding;
    short consumer;
    short parties;        /* threads that matter, T1 first; for a deadlock the loop in order */
    short party[PARTIES]; /* indices into the snapshot's threads */
    short edges;          /* DEADLOCK: the loop; edge[i] leads from party[i] to party[i + 1] */
    short edge[PARTIES];
    uint16_t call; /* the call that it is about */
    short level;   /* of party[0]: which of its calls */
    int64_t age;   /* how long, -1: does not matter */
    int64_t limit; /* the limit that was reached, in ms */
    int note;      /* which of the finding's variants (verdict.c) */
    int hint;      /* known defect of librdkafka + 1, 0: none (defects.def) */
};

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
