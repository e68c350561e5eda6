/*
 * see.c: from live records to plain data (see.h). What is read here may change meanwhile; nothing is followed
 * that could go away: records of consumers and threads are never unmapped, libraries stay loaded.
 */
#include "see.h"
#include "ledger.h"
#include "peek.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern char *program_invocation_short_name;

void see_process(struct snapshot *s)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    s->pid = getpid();
    s->time = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    memset(s->program, 0, sizeof(s->program));
    if (program_invocation_short_name)
        strncat(s->program, program_invocation_short_name, sizeof(s->program) - 1);
}

void see_consumer(struct consumer *c, struct seen_consumer *s, int64_t clock)
{
    memset(s, 0, sizeof(*s));
    memcpy(s->name, c->name, sizeof(s->name));
    memcpy(s->group, c->group, sizeof(s->group));
    if (c->lib) {
        s->version = c->lib->version;
        memcpy(s->version_text, c->lib->text, sizeof(s->version_text));
    }
    s->life = (uint8_t)atomic_load(&c->life);
    s->forked = c->forked;
    s->guards = atomic_load(&c->guards);
    ledger_rebalance_seen(c, &s->rebalance, clock);
    ledger_debts(c, s->debt, clock);
    /* Exact to one look. */
    int64_t since = clock - c->polls_since;
    bool polling = c->polling && s->life == OPEN;
    s->last_poll = !atomic_load_explicit(&c->polls, memory_order_relaxed) ? -1
                   : polling                                              ? 0
                   : since > 0                                            ? since
                                                                          : 1;
    s->subscribed = c->subscribed;
    s->cooperative = c->cooperative;
    if (s->subscribed && s->last_poll < 0)
        s->last_poll = since; /* never polled: since it subscribed */
    s->poll_tid = c->poller_tid;
    if (s->poll_tid)
        peek_name(s->poll_tid, s->poll_thread);
    s->max_poll_ms = c->max_poll_ms;
    int64_t committed = atomic_load_explicit(&c->committed, memory_order_relaxed);
    s->last_commit = committed ? clock - committed : -1;
    s->ended_call = c->killer_call;
    s->ended_tid = c->killer_tid;
    if (s->ended_tid)
        peek_name(s->ended_tid, s->ended_thread);
    s->ended_age = c->killed_at ? clock - c->killed_at / 1000000 : -1;
    s->made_tid = c->made_tid;
    s->made_age = c->made_at ? clock - c->made_at : -1;
}

static enum seen_state state_of(uint32_t state)
{
    return state == WAITING ? SEEN_WAITING : state == RETURNING ? SEEN_RETURNING : SEEN_INSIDE;
}

void see_call(const struct visit *v, struct seen_call *s, int64_t clock)
{
    memset(s, 0, sizeof(*s));
    s->call = v->call;
    s->class = v->class;
    s->state = (uint8_t)state_of(atomic_load_explicit(&v->state, memory_order_relaxed));
    s->consumer = -1;
    s->callback = atomic_load_explicit(&v->window, memory_order_relaxed) ? v->callback : 0;
    s->guard = v->guard;
    s->finite = v->deadline != FOREVER;
    s->age = s->callback_age = -1;
    s->timeout_left = s->finite && v->timed ? v->deadline / 1000000 - clock : 0;
    s->waiting = s->state == SEEN_WAITING && v->since ? clock - v->since / 1000000 : -1;
    s->caller.address = (uintptr_t)v->caller;
}
