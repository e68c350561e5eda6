/*
 * flight.h: reads flight files (flight_layout.h). What is given out is a copy in which nothing needs to be
 * checked any more: every string ends, every number that names something is in its table, every time is 0 or
 * sane, torn events have the number 0. The file itself is never mapped, so nobody can take it away from under
 * a reader.
 */
#ifndef RDGATE_CLI_FLIGHT_H
#define RDGATE_CLI_FLIGHT_H

#include "../flight_layout.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define FLIGHT_WHY 512

enum flight_fate {
    FLIGHT_RUNS,  /* the process is there */
    FLIGHT_DIED,  /* it ended without cleaning up: killed, crashed, _exit */
    FLIGHT_CLEAN, /* it ended and kept the file (RDGATE_FLIGHT_KEEP) */
    FLIGHT_ASLEEP /* it is there, and its watchdog has not looked for long: stopped, or no consumer is left */
};

struct flight {
    struct flight_file *file; /* the copy */
    int fd;
    int pid;       /* as seen from here; 0: not known */
    int64_t now;   /* by the file's clock: now, or when it was last written by a process that is dead */
    bool torn;     /* row.now and threads are of two looks */
    bool captured; /* the file of a process in another pid namespace: fate is a guess */
    enum flight_fate fate;
    char path[PATH_MAX];
};

/* Opens the flight file of a process (what is a number) or a file and reads it. false: why has one line,
 * without a newline, that says what is wrong and what to do. */
bool flight_open(struct flight *f, const char *what, char why[FLIGHT_WHY]);
bool flight_open_file(struct flight *f, const char *path, char why[FLIGHT_WHY]);
/* Reads it anew. */
bool flight_again(struct flight *f, char why[FLIGHT_WHY]);
void flight_shut(struct flight *f);
/* Calls each for every flight file in the places where they lie (RDGATE_FLIGHT, XDG_RUNTIME_DIR, /dev/shm;
 * for root everybody's). Returns how many there were. */
int flight_list(void (*each)(const char *path, void *with), void *with);

/* Milliseconds since 1970 of a time in the file. */
int64_t flight_wall_ms(const struct flight *f, int64_t time);
/* How long ago, in ms; -1: not known. */
int64_t flight_age_ms(const struct flight *f, int64_t time);
/* The name of an address, NULL: not known. */
const struct flight_place *flight_place(const struct flight *f, uint64_t address);

/* The events that are whole, oldest first, of one consumer (row, in its present generation) or of all (row
 * -1). * lost: how many events of these rings are not there any more, or torn. Returns how many pointers it
 * filled in. */
size_t flight_events(const struct flight *f, int row, const struct flight_event **events, size_t most,
                     uint64_t *lost);
#define FLIGHT_MOST_EVENTS ((size_t)FLIGHT_RINGS * FLIGHT_EVENTS)

/* The watchdog's last look at what stood still, as verdict.c and report.c take it. */
struct flight_seen {
    struct snapshot snapshot;
    struct seen_consumer consumer[FLIGHT_SEEN_CONSUMERS];
    int row[FLIGHT_SEEN_CONSUMERS]; /* of each consumer, -1: none */
    struct seen_thread thread[FLIGHT_SEEN_THREADS];
    struct edge edge[FLIGHT_SEEN_EDGES];
    int64_t time;
    unsigned deadlock; /* for how many looks the same loop stood */
};
/* false: nothing stood still. */
bool flight_seen(const struct flight *f, struct flight_seen *to);

/* Findings, oldest first. */
int flight_findings(const struct flight *f, const struct flight_finding *out[FLIGHT_FINDINGS]);

#endif
