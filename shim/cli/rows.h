/*
 * rows.h: what `rdgate top` shows: one row for each consumer, worked out from flight files. No terminal here.
 */
#ifndef RDGATE_CLI_ROWS_H
#define RDGATE_CLI_ROWS_H

#include "flight.h"

enum row_flag {
    ROW_HELD = 1,      /* H: somebody has been inside, or has waited, too long */
    ROW_DEADLOCK = 2,  /* D */
    ROW_POLL = 4,      /* P: 80 % of max.poll.interval.ms are over */
    ROW_REBALANCE = 8, /* R: not answered */
    ROW_CLOSING = 16,  /* C: closing, closed, or being destroyed */
    ROW_FORKED = 32,   /* F: inherited by fork */
};
#define ROW_FLAGS "HDPRCF"

struct row {
    int pid;
    uint64_t elsewhere; /* the pid namespace that the pid belongs to, if that is not ours; else 0 */
    char program[64], path[PATH_MAX];
    uint64_t start; /* of the process, with the pid and what follows: which consumer this is */
    int gate;       /* its number, from 1 */
    uint32_t generation;
    char name[64], group[64];
    unsigned flags;
    uint32_t life;
    int owner; /* tid, 0: nobody */
    char owner_name[16];
    uint16_t call;
    uint8_t callback; /* enum callback + 1 */
    uint32_t inside, waiting;
    int64_t held, waits, longest;    /* ns; -1: nobody does, or not known */
    int64_t gap, longest_gap, limit; /* of polls; -1: does not count */
    uint64_t calls, polls, count[FLIGHT_COUNTS];
    uint32_t histogram[FLIGHT_BUCKETS];
    uint64_t waited_ns;
    int32_t debt[DEBTS];
    char version[16]; /* of its librdkafka */
    int64_t looked;
    double rate; /* calls and polls a second; below 0: not known yet */
    double trouble;
};

struct row_process {
    int pid;
    uint64_t elsewhere;
    char program[64], shim[16];
    uint32_t mode;
    int64_t began_ms, looked_ms; /* wall clock; the recording began, the watchdog looked last */
    uint32_t found[FLIGHT_CODES], consumers_lost;
    uint64_t events_lost;
};

struct rows {
    struct row *row;
    struct row_process *process;
    int count, room;
    int processes, unreadable;
    char why[FLIGHT_WHY]; /* of the first that could not be read */
    bool failed;          /* out of memory */
};

/* Adds the consumers of an open flight file. */
void rows_add(struct rows *r, const struct flight *f);
/* Adds those of every process that runs. */
void rows_add_all(struct rows *r);
/* Rates, from what was there before. */
void rows_rate(struct rows *r, const struct rows *before);
enum row_order { BY_TROUBLE, BY_NAME, BY_RATE, ROW_ORDERS };
void rows_sort(struct rows *r, enum row_order order);
void rows_free(struct rows *r);

/* The columns of the table, the most important ones first to stay when there is little room. */
#define COLUMNS 13
struct table {
    int columns, column[COLUMNS], width[COLUMNS];
};
/* Which columns fit into so many terminal columns, and how wide they are; wide 0: all. */
void table_fit(struct table *t, const struct rows *r, int wide);
void table_head(const struct table *t, char *line, size_t size);
void table_row(const struct table *t, const struct row *row, char *line, size_t size);
/* What the flags that are set somewhere mean. */
void table_legend(const struct rows *r, char *line, size_t size);
void rows_tsv(const struct rows *r);
const char *life_name(uint32_t life);

#endif
