/*
 * flight.h: writes the flight file (flight_layout.h): what is to be known of this process after it was
 * killed. Nothing here waits, allocates or says anything, and any of it may be called with the lock of a gate
 * held; the few that make or look through files say so. Without a file (c->flight is NULL) a call is one load
 * and one branch.
 */
#ifndef RDGATE_FLIGHT_H
#define RDGATE_FLIGHT_H

#include "flight_layout.h"
#include "gate.h"

#include <stddef.h>

struct verdict;

/* A consumer was born (call: by which; CALL_COUNT: it was inherited by fork) and gets its row; the first one
 * makes the file. Not with a lock held. */
void flight_born(struct consumer *c, uint16_t call);
/* Its handle is gone, or given up. The row stays until it is needed. */
void flight_gone(struct consumer *c, uint16_t call);

/* Writes down an event: its time, thread, number, consumer and sum are filled in here. */
void flight_note(struct consumer *c, struct flight_event e);

/* Counts; any thread. */
static inline void flight_count(const struct consumer *c, enum flight_counter which)
{
    if (c->flight)
        __atomic_fetch_add(&c->flight->count[which], 1, __ATOMIC_RELAXED);
}

/* A call that is no poll and no guard begins (before it waits) and ends. */
void flight_begins(const struct visit *v);
void flight_ends(const struct visit *v, int code);
static inline void flight_call_begins(const struct visit *v)
{
    if (v->consumer->flight)
        flight_begins(v);
}
static inline void flight_call_ends(const struct visit *v, int code)
{
    if (v->consumer->flight)
        flight_ends(v, code);
}
/* A poll ends: written down only if anything happened in it. */
void flight_poll(const struct visit *v, int code);
static inline bool flight_dull(const struct visit *v, int code)
{
    return !v->callback & !code & !v->since & !v->marks;
}

/* The visit waits at the gate for `who` (NULL: for nobody that we can name), and has waited. */
void flight_waits(const struct visit *v, const struct visit *who);
void flight_waited(const struct visit *v, enum admission a);
/* The poll o is woken for this thread's call. With mu held. */
void flight_preempts(struct consumer *c, struct visit *o);
/* A callback of the application begins or ends in the visit. */
void flight_window(const struct visit *v, enum flight_event_kind kind);
/* Is let in while a callback runs. */
void flight_loan(const struct visit *v);
/* Meets o and does not wait for it. */
void flight_met(const struct visit *v, const struct visit *o);
void flight_rebalance(struct consumer *c, int code, int partitions, bool by_event);
void flight_answer(struct consumer *c, uint16_t call, int partitions, int code);
void flight_closed(struct consumer *c, uint16_t call, int code);
/* The visit was left without returning. */
void flight_abandoned(struct consumer *c, const struct visit *v, int finding);
/* A finding: its report as text, and the number that it was reported with (0: was only counted). */
void flight_finding(struct consumer *c, const struct verdict *v, long reported, const char *text,
                    size_t size);

/* ------------------------------------------------------------------ for the watchdog alone */

/* Removes what dead processes of this user have left, but for the newest. Reads files. */
void flight_clean(void);
/* One look: begin, every thread, every consumer (registry lock held), end. `now` in ms, ages in the watched.
 */
void flight_look(int64_t now_ms);
void flight_look_thread(struct self *s);
void flight_look_consumer(struct consumer *c, int64_t now_ms);
void flight_looked(void);
/* What stood still at this look; without threads and consumers: nothing did. `deadlock`: for how many looks
 * in a row the same loop has stood. May read files, for the names of places. */
void flight_snapshot(const struct snapshot *s, struct consumer *const *of, unsigned deadlock);

/* ------------------------------------------------------------------ the process */

/* Where it lies; NULL: there is none. */
const char *flight_path(void);
/* The process ends as it should: the file goes, unless it is to be kept. */
void flight_end(void);
/* In a forked child: what is mapped is the parent's. */
void flight_after_fork(void);

#endif
