/*
 * notes.h: where findings are said: on stderr or RDGATE_LOG, within the budget RDGATE_REPORTS. What an
 * application's thread meets is said on the spot by that thread; what the watchdog finds, by the watchdog.
 * May be called with any lock held but the registry's: nothing here waits for anybody in this process.
 */
#ifndef RDGATE_NOTES_H
#define RDGATE_NOTES_H

#include "verdict.h"

struct consumer;
struct library;
struct visit;

/* This thread's call met something worth saying. `other`: the second party, or NULL. `ms`: how long, or -1.
 */
void report(enum finding f, struct consumer *c, int call, const struct visit *other, int64_t ms);
/* The same in one of the finding's variants. */
void report_variant(enum finding f, enum note note, struct consumer *c, int call, const struct visit *other,
                    int64_t ms);
/* Is it the first time for this consumer? */
bool report_first(enum finding f, struct consumer *c);
/* As report, but only the first time for this consumer. */
void report_once(enum finding f, struct consumer *c, int call, const struct visit *other, int64_t ms);
/* There is librdkafka in this process that does not come through us; where, is not known. */
void report_not_covered(void);

/* For the watchdog: says it and returns its number; 0 if it was only counted. */
long notes_report(const struct snapshot *s, const struct verdict *v, struct consumer *c);
void notes_moving(const struct snapshot *s, const struct verdict *v, long of, int64_t lasted);

/* RDGATE_VERBOSE: the lines that prove that we are in. */
void report_library(const struct library *lib);
/* With RDGATE_VERBOSE: the application asks dlsym for this one's functions. */
void report_reached(const struct library *lib);
void report_exit(void);
/* Where the flight file is; NULL: there is none, as of this error. */
void report_flight(const char *path, int error);
/* There is one inside this file, which cannot be gated (COVER_STATIC, COVER_HIDDEN), and why: see verdict.h.
 */
void report_uncovered(enum note note, const char *where, const char *why);
/* A sentence about the options. */
void report_option(const char *sentence);
/* Chooses where lines go; the options are parsed. */
void report_start(void);

#endif
