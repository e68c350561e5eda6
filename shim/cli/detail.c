/*
 * detail.c: one consumer in full (detail.h): who is inside, who waits, what it owes, and what happened last.
 */
#include "detail.h"
#include "clean.h"
#include "event.h"
#include "rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Text from the file, cleaned. Two of them in one line need two turns. */
static const char *shown(const char *text)
{
    static char turn[4][160];
    static unsigned next;
    char *to = turn[next++ % 4];
    clean(to, sizeof(turn[0]), text, !speaks_utf8());
    return to;
}

static const char *thread(const struct flight *f, int tid)
{
    char words[64];
    thread_words(words, sizeof(words), f, tid);
    return shown(words);
}

static const char *age(const struct flight *f, int64_t time)
{
    static char turn[4][32];
    static unsigned next;
    char *to = turn[next++ % 4];
    duration_words(to, sizeof(turn[0]), time <= 0 ? -1 : f->now > time ? f->now - time : 0);
    return to;
}

static void threads(FILE *to, const struct flight *f, int row)
{
    bool any = false;
    for (int i = 0; i < FLIGHT_THREADS; i++) {
        const struct flight_thread *t = &f->file->thread[i];
        if (!t->tid || t->consumer != row || !t->calls || t->generation != f->file->consumer[row].generation)
            continue;
        any = true;
        fprintf(to, "%-10s %s:", t->state == SEEN_WAITING ? "waits" : "inside", thread(f, t->tid));
        for (int k = 0; k < t->calls; k++) {
            fprintf(to, "%s %s", k ? " >" : "", rdg_calls[t->nest[k].call].name);
            if (t->nest[k].callback)
                fprintf(to, " > %s", callback_name(t->nest[k].callback - 1));
        }
        fprintf(to, ", %s", age(f, t->state == SEEN_WAITING ? t->waiting_since : t->since));
        if (t->state == SEEN_WAITING && t->waits_for)
            fprintf(to, ", for %s", thread(f, t->waits_for));
        const struct flight_place *p = flight_place(f, t->caller);
        if (p && p->function[0])
            fprintf(to, ", called from %s in %s", shown(p->function), shown(p->object));
        else if (p)
            fprintf(to, ", called from %s+0x%" PRIx64, shown(p->object), p->offset);
        fputc('\n', to);
    }
    if (!any)
        fputs("inside     nobody\n", to);
}

static void histogram(FILE *to, const struct flight_consumer *c)
{
    uint32_t most = 0;
    int last = -1;
    for (int i = 0; i < FLIGHT_BUCKETS; i++) {
        most = c->waits[i] > most ? c->waits[i] : most;
        last = c->waits[i] ? i : last;
    }
    for (int i = 0; i <= last; i++) {
        char limit[32];
        if (!c->waits[i])
            continue;
        duration_words(limit, sizeof(limit), (int64_t)1000 << i);
        fprintf(to, "%-10s %s%-8s %8" PRIu32 "  ", "", i == FLIGHT_BUCKETS - 1 ? ">=" : "< ", limit,
                c->waits[i]);
        for (uint32_t n = 0; n < 1 + (uint64_t)c->waits[i] * 30 / most; n++)
            fputc('#', to);
        fputc('\n', to);
    }
}

static void debts(FILE *to, const struct flight_now *n)
{
    static const char *const names[] = {"messages", "events", "lists", "topics", "queues"};
    bool any = false;
    for (int i = 0; i < DEBTS; i++)
        if (n->debt[i]) {
            fprintf(to, "%s%d %s", any ? ", " : "holds      ", n->debt[i], names[i]);
            any = true;
        }
    if (any)
        fputs(" of librdkafka\n", to);
}

static void events(FILE *to, const struct flight *f, int row, int most)
{
    const struct flight_event **list = calloc(FLIGHT_MOST_EVENTS, sizeof(const struct flight_event *));
    uint64_t lost = 0;
    size_t n = list ? flight_events(f, row, list, FLIGHT_MOST_EVENTS, &lost) : 0;
    size_t from = n > (size_t)most ? n - (size_t)most : 0;
    fprintf(to, "\nlast events%s\n", n ? "" : ": none");
    for (size_t i = from; i < n; i++) {
        char words[256], when[16] = "";
        int64_t ms = flight_wall_ms(f, list[i]->time);
        struct tm tm;
        time_t s = ms / 1000;
        if (localtime_r(&s, &tm))
            strftime(when, sizeof(when), "%H:%M:%S", &tm);
        event_words(words, sizeof(words), f, list[i]);
        fprintf(to, "%s.%03d  %-20s  %s\n", when, (int)(ms % 1000 + 1000) % 1000, thread(f, list[i]->tid),
                shown(words));
    }
    free(list);
}

void detail_write(FILE *to, const struct flight *f, int row, int most_events)
{
    const struct flight_consumer *c = &f->file->consumer[row];
    const struct flight_now *n = &c->now;
    const struct flight_header *h = &f->file->header;
    if (c->state == FLIGHT_FREE) {
        fprintf(to, "there is no gate G%d in process %d\n", row + 1, f->pid);
        return;
    }
    fprintf(to, "consumer   %s, gate G%d of %s, process %d%s\n", shown(c->name), row + 1, shown(h->program),
            f->pid ? f->pid : h->pid,
            f->fate == FLIGHT_DIED || f->fate == FLIGHT_CLEAN ? ", which has ended" : "");
    fprintf(to, "group      %s, librdkafka %s\n", *c->group ? shown(c->group) : "none",
            c->instance < h->instances ? shown(h->instance[c->instance].text) : "unknown");
    fprintf(to, "life       %s, made %s ago by %s\n", c->state == FLIGHT_GONE ? "gone" : life_name(n->life),
            age(f, c->born), thread(f, c->made_tid));
    threads(to, f, row);
    fprintf(to, "polls      %" PRIu64, n->polls);
    if (n->poller)
        fprintf(to, ", the last %s ago by %s", age(f, n->polled), thread(f, n->poller));
    char gap[32], limit[32], longest[32];
    duration_words(gap, sizeof(gap), n->longest_gap_ns);
    duration_words(limit, sizeof(limit), c->max_poll_ms * 1000000);
    duration_words(longest, sizeof(longest), c->longest_wait_ns);
    fprintf(to, "; longest gap %s, limit %s\n", gap, limit);
    if (n->unanswered)
        fputs("rebalance  delivered and not answered\n", to);
    debts(to, n);
    fputs("counted   ", to);
#define X(name) fprintf(to, " %s %" PRIu64, #name, c->count[FLIGHT_COUNT_##name]);
    FLIGHT_COUNTERS(X)
#undef X
    fprintf(to, "\nwaits      longest %s\n", longest);
    histogram(to, c);
    const struct flight_finding *found[FLIGHT_FINDINGS];
    int count = flight_findings(f, found);
    for (int i = 0; i < count; i++)
        if (found[i]->consumer == row)
            fprintf(to, "finding    %s, %s ago: %s\n", finding_code(found[i]->finding),
                    age(f, found[i]->time), shown(found[i]->summary));
    events(to, f, row, most_events);
}
