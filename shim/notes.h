/*
 * notes.h: findings said on the spot by the thread that meets them. Each goes to stderr (or RDGATE_LOG) at
 * once, within the budget RDGATE_REPORTS. May be called with any lock held: one write(2), nothing that waits
 * for anybody in this process.
 */
#ifndef RDGATE_NOTES_H
#define RDGATE_NOTES_H

#include "say.h"
#include "verdict.h"

struct consumer;
struct library;
struct visit;

/* The call met something worth saying. `other`: the second party, or NULL. `ms`: how long, or -1. */
void report(enum finding f, struct consumer *c, int call, const struct visit *other, int64_t ms);
/* As report, but only the first time for this consumer. */
void report_once(enum finding f, struct consumer *c, int call, const struct visit *other, int64_t ms);
/* RDGATE_VERBOSE: the lines that prove that we are in. */
void report_library(const struct library *lib);
void report_exit(void);
/* A librdkafka that cannot be gated, and why. */
void report_uncovered(const char *where, const char *why);
/* A sentence about the options. */
void report_option(const char *sentence);
/* Chooses where lines go; the options are parsed. */
void report_start(void);

#endif
