/*
 * dump.c: rdgate dump. All that a flight file has to say, of a process that runs or of one that is dead: who
 * is where and waits for whom, what verdict.c makes of it, in the words of report.c, and what happened last.
 * It changes nothing and asks nothing of the process, but for --stacks.
 */
#include "clean.h"
#include "cli.h"
#include "event.h"
#include "flight.h"
#include "stacks.h"
#include "../options.h"
#include "../report.h"

#include <inttypes.h>
#include <jansson.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STUCK_MS 1000
#define VERDICTS 32
#define REPORT   (64 * 1024)
#define OPEN     64

static const char *const lives[] = {"open", "closing", "closing", "closed", "being destroyed", "destroyed"};
static const char *const debt_names[DEBTS] = {"message", "event", "list", "topic", "queue"};
static const char *const covers[] = {"", ", covered by linking", ", covered through dlsym",
                                     ", patched at its entries"};

/* ------------------------------------------------------------------ words */

/* Text from the file, fit for the terminal. Several of them in one line need turns. */
static const char *shown(const char *text)
{
    static char turn[6][PATH_MAX];
    static unsigned next;
    char *to = turn[next++ % 6];
    clean(to, sizeof(turn[0]), text, !speaks_utf8());
    return to;
}

static const char *duration(int64_t ns)
{
    static char turn[4][32];
    static unsigned next;
    char *to = turn[next++ % 4];
    duration_words(to, sizeof(turn[0]), ns);
    return to;
}

static const char *age(const struct flight *f, int64_t time)
{
    return time > 0 ? duration(f->now > time ? f->now - time : 0) : "unknown";
}

static const char *thread(const struct flight *f, int tid)
{
    char words[64];
    if (!tid)
        return "watchdog";
    thread_words(words, sizeof(words), f, tid);
    return shown(words);
}

static const char *clock_time(int64_t ms)
{
    static char turn[2][48];
    static unsigned next;
    char *to = turn[next++ % 2];
    time_t s = ms / 1000;
    struct tm tm;
    to[0] = 0;
    if (gmtime_r(&s, &tm)) {
        size_t n = strftime(to, 32, "%Y-%m-%dT%H:%M:%S", &tm);
        snprintf(to + n, sizeof(turn[0]) - n, ".%03dZ", (int)(ms % 1000 + 1000) % 1000);
    }
    return to;
}

static const char *consumer_name(const struct flight *f, int row)
{
    return row >= 0 && f->file->consumer[row].state != FLIGHT_FREE ? shown(f->file->consumer[row].name) : "?";
}

static const char *fate_words(const struct flight *f)
{
    return f->fate == FLIGHT_CLEAN  ? "has ended and kept its file"
           : f->fate == FLIGHT_DIED ? "ended without cleaning up: killed, crashed, or left by _exit"
           : f->fate == FLIGHT_ASLEEP
               ? "runs; nobody has looked for a while: it has no consumer left, or is stopped"
               : "runs";
}

/* ------------------------------------------------------------------ calls that began and did not end */

/* The watchdog looks a few times a second, and a process may die before it does; its events are there. */
struct open_call {
    const struct flight_event *begin, *wait, *callback; /* wait, callback: the latest, if it goes on */
};

struct open_calls {
    struct open_call call[OPEN];
    int count;
};

static void forget(struct open_calls *o, int tid, int level)
{
    int n = 0;
    for (int i = 0; i < o->count; i++)
        if (o->call[i].begin->tid != tid || o->call[i].begin->level < level)
            o->call[n++] = o->call[i];
    o->count = n;
}

static void follow(struct open_calls *o, const struct flight_event *e)
{
    struct open_call *c = NULL;
    for (int i = 0; i < o->count; i++)
        if (o->call[i].begin->tid == e->tid && o->call[i].begin->level == e->level)
            c = &o->call[i];
    switch (e->kind) {
    case FLIGHT_CALL_BEGINS:
        forget(o, e->tid, e->level);
        if (o->count < OPEN)
            o->call[o->count++] = (struct open_call){e, NULL, NULL};
        break;
    case FLIGHT_WAIT_BEGINS:
    case FLIGHT_CALLBACK_BEGINS:
        if (!c && o->count < OPEN) { /* of a poll, whose beginning is not written down */
            o->call[o->count] = (struct open_call){e, NULL, NULL};
            c = &o->call[o->count++];
        }
        if (c && e->kind == FLIGHT_WAIT_BEGINS)
            c->wait = e;
        else if (c)
            c->callback = e;
        break;
    case FLIGHT_WAIT_ENDS:
    case FLIGHT_CALLBACK_ENDS:
        if (c && e->kind == FLIGHT_WAIT_ENDS)
            c->wait = NULL;
        else if (c)
            c->callback = NULL;
        if (c && c->begin->kind != FLIGHT_CALL_BEGINS && !c->wait && !c->callback)
            forget(o, e->tid, e->level);
        break;
    case FLIGHT_CALL_ENDS:
    case FLIGHT_POLL:
    case FLIGHT_ABANDONED: forget(o, e->tid, e->level); break;
    default: break;
    }
}

static bool in_table(const struct flight *f, int tid)
{
    for (int i = 0; i < FLIGHT_THREADS; i++)
        if (f->file->thread[i].tid == tid)
            return true;
    return false;
}

/* ------------------------------------------------------------------ as text */

static void say_head(const struct flight *f)
{
    const struct flight_header *h = &f->file->header;
    struct options o;
    const char *mode = "?";
    options_default(&o);
    for (int i = 0; i < option_count; i++) {
        const char *p = option_infos[i].values;
        if (strcmp(option_infos[i].name, "MODE") != 0)
            continue;
        for (uint32_t n = h->mode; p && n; n--)
            p = strchr(p, ' ') ? strchr(p, ' ') + 1 : NULL;
        mode = p ? p : mode;
    }
    printf("%s, process %d: %s\n", shown(h->program), f->pid ? f->pid : h->pid, fate_words(f));
    printf("  file      %s\n", shown(f->path));
    printf("  from      %s to %s", clock_time(h->wall_ns / 1000000), clock_time(flight_wall_ms(f, f->now)));
    if (f->fate == FLIGHT_DIED)
        printf(", when it was seen last");
    printf("\n  rdgate    %s, mode %.*s, stuck after %s, longest wait %s\n", shown(h->shim),
           (int)strcspn(mode, " "), mode, duration(h->stuck_ms * 1000000),
           h->max_wait_ms ? duration(h->max_wait_ms * 1000000) : "without limit");
    for (uint32_t i = 0; i < h->instances; i++)
        printf("  librdkafka %s in %s%s\n", shown(h->instance[i].text), shown(h->instance[i].path),
               covers[h->instance[i].cover]);
    if (h->parent)
        printf("  forked from process %d\n", h->parent);
    if (f->captured)
        puts("  It belongs to a container: whether it runs is guessed from when it was seen last.");
    if (h->consumers_lost)
        printf("  %u consumers found no room in the file\n", h->consumers_lost);
    if (f->torn)
        puts("  It was being written while it was read, or as it died: what threads and gates show may be of "
             "two looks.");
}

static void say_place(const struct flight *f, uint64_t address)
{
    const struct flight_place *p = flight_place(f, address);
    if (p && p->function[0])
        printf(", called from %s (%s)", shown(p->object), shown(p->function));
    else if (p && p->object[0])
        printf(", called from %s+0x%" PRIx64, shown(p->object), p->offset);
}

/* Of a consumer that nobody should be in any more. */
static const char *ended_words(const struct flight *f, int row)
{
    uint32_t life = row < 0                                       ? OPEN
                    : f->file->consumer[row].state == FLIGHT_GONE ? GONE
                                                                  : f->file->consumer[row].now.life;
    return life == CLOSED ? ", which is closed" : life == GONE ? ", which is gone" : "";
}

static void say_thread(const struct flight *f, const struct flight_thread *t)
{
    printf("  %s:", thread(f, t->tid));
    for (int k = 0; k < t->calls; k++) {
        printf("%s %s", k ? " >" : "", rdg_calls[t->nest[k].call].name);
        if (t->row[k] != t->consumer && t->row[k] >= 0)
            printf(" on %s", consumer_name(f, t->row[k]));
        if (t->nest[k].callback)
            printf(" > %s", callback_name(t->nest[k].callback - 1));
    }
    printf(" on %s%s, ", consumer_name(f, t->consumer), ended_words(f, t->consumer));
    if (t->state == SEEN_WAITING)
        printf("waits at the gate for %s", age(f, t->waiting_since));
    else if (t->state == SEEN_RETURNING)
        printf("waits for a borrower of the gate, for %s", age(f, t->since));
    else
        printf("inside for %s", age(f, t->since));
    if (t->waits_for)
        printf(", for %s", thread(f, t->waits_for));
    if (t->deadline && t->deadline > f->now)
        printf(", %s of its timeout left", duration(t->deadline - f->now));
    else if (t->deadline)
        printf(", past its timeout");
    say_place(f, t->caller);
    putchar('\n');
}

static void say_open(const struct flight *f, const struct open_call *c)
{
    const struct flight_event *e = c->begin;
    printf("  %s: %s", thread(f, e->tid), rdg_calls[e->call].name);
    if (c->callback)
        printf(" > %s", callback_name(c->callback->callback - 1));
    printf(" on %s, begun %s before", consumer_name(f, e->consumer), age(f, e->time));
    if (c->wait) {
        printf(", waits at the gate");
        if (c->wait->other)
            printf(" for %s in %s", thread(f, c->wait->other), rdg_calls[c->wait->other_call].name);
    }
    say_place(f, e->caller);
    puts(" (after the last look)");
}

static void say_threads(const struct flight *f, const struct open_calls *open)
{
    bool any = false;
    puts("\nThreads in calls");
    for (int i = 0; i < FLIGHT_THREADS; i++) {
        if (!f->file->thread[i].tid || !f->file->thread[i].calls)
            continue;
        say_thread(f, &f->file->thread[i]);
        any = true;
    }
    for (int i = 0; i < open->count; i++) {
        if (in_table(f, open->call[i].begin->tid) || open->call[i].begin->time < f->file->header.looked)
            continue;
        say_open(f, &open->call[i]);
        any = true;
    }
    if (!any)
        puts("  none");
}

static bool polling(const struct flight *f, int row)
{
    for (int i = 0; i < FLIGHT_THREADS; i++) {
        const struct flight_thread *t = &f->file->thread[i];
        for (int k = 0; t->tid && k < t->calls; k++)
            if (t->row[k] == row && rdg_calls[t->nest[k].call].class == POLL)
                return true;
    }
    return false;
}

static void say_counts(const struct flight *f, const struct flight_consumer *c)
{
    const struct flight_now *n = &c->now;
    printf("  polls     %" PRIu64, n->polls);
    if (polling(f, (int)(c - f->file->consumer)))
        printf(", one is inside");
    else if (n->poller)
        printf(", the last %s ago by %s", age(f, n->polled), thread(f, n->poller));
    printf("; longest gap %s of %s\n", duration(n->longest_gap_ns), duration(c->max_poll_ms * 1000000));
    printf("  counted  ");
    for (int i = 0; i < FLIGHT_COUNTS; i++) {
        static const char *const names[] = {
#define X(name) #name,
            FLIGHT_COUNTERS(X)
#undef X
        };
        printf("%s %s %" PRIu64, i ? "," : "", names[i], c->count[i]);
    }
    printf("; longest wait %s\n", duration(c->longest_wait_ns));
    bool any = false;
    for (int i = 0; i < FLIGHT_BUCKETS; i++)
        if (c->waits[i]) {
            printf("%s%" PRIu32 " %s %s", any ? ", " : "  waits     ", c->waits[i],
                   i == FLIGHT_BUCKETS - 1 ? "of at least" : "below",
                   duration((int64_t)1000 << (i == FLIGHT_BUCKETS - 1 ? i - 1 : i)));
            any = true;
        }
    if (any)
        putchar('\n');
}

static void say_consumer(const struct flight *f, int row)
{
    const struct flight_consumer *c = &f->file->consumer[row];
    const struct flight_now *n = &c->now;
    printf("\nConsumer \"%s\" of %s%s%s, %s", shown(c->name), *c->group ? "group \"" : "no group",
           shown(c->group), *c->group ? "\"" : "", c->state == FLIGHT_GONE ? "gone" : lives[n->life]);
    printf("; made %s before by %s\n", age(f, c->born), thread(f, c->made_tid));
    if (n->owner) {
        printf("  gate      held by %s in %s", thread(f, n->owner), rdg_calls[n->owner_call].name);
        if (n->owner_callback)
            printf(" > %s, which has run for %s", callback_name(n->owner_callback - 1),
                   age(f, n->callback_since));
        printf(", for %s", age(f, n->owner_since));
    } else {
        printf("  gate      free");
    }
    if (n->waiting)
        printf("; %u wait%s, the first for %s", n->waiting, n->waiting == 1 ? "s" : "",
               age(f, n->waiting_since));
    putchar('\n');
    say_counts(f, c);
    bool owes = false;
    for (int i = 0; i < DEBTS; i++)
        if (n->debt[i]) {
            printf("%s%d %s%s", owes ? ", " : "  holds     ", n->debt[i], debt_names[i],
                   n->debt[i] == 1 ? "" : "s");
            owes = true;
        }
    if (owes)
        puts(" of librdkafka");
    if (n->unanswered)
        puts("  owes      the answer to a rebalance");
}

static void say_events(const struct flight *f, int row, const struct flight_event **list, int most)
{
    uint64_t lost;
    size_t n = flight_events(f, row, list, FLIGHT_MOST_EVENTS, &lost),
           from = n > (size_t)most ? n - (size_t)most : 0;
    if (!n)
        return;
    printf("\nLast events of %s, in seconds before %s", consumer_name(f, row),
           clock_time(flight_wall_ms(f, f->now)));
    if (lost || from)
        printf("; %" PRIu64 " earlier ones are not shown", lost + from);
    putchar('\n');
    for (size_t i = from; i < n; i++) {
        char words[256];
        event_words(words, sizeof(words), f, list[i]);
        int64_t before = f->now > list[i]->time ? f->now - list[i]->time : 0;
        printf("  %5" PRId64 ".%06" PRId64 "  %-18s %*s%s\n", before / 1000000000, before / 1000 % 1000000,
               thread(f, list[i]->tid), list[i]->level < 8 ? list[i]->level * 2 : 16, "", shown(words));
    }
}

static void say_findings(const struct flight *f)
{
    const struct flight_finding *found[FLIGHT_FINDINGS];
    int n = flight_findings(f, found);
    if (!n)
        return;
    printf("\nFindings so far: %" PRIu64 "%s\n", f->file->header.findings,
           f->file->header.findings > (uint64_t)n ? "; the last of them:" : "");
    for (int i = 0; i < n; i++) {
        printf("  %s  %s", clock_time(flight_wall_ms(f, found[i]->time)), shown(found[i]->summary));
        puts(found[i]->reported ? "" : " (not reported: RDGATE_REPORTS)");
    }
}

/* The reports as they were written; of a dead process they have the stacks. */
static void say_reports(const struct flight *f)
{
    const struct flight_finding *found[FLIGHT_FINDINGS];
    int n = flight_findings(f, found);
    for (int i = 0; i < n; i++) {
        printf("\nReport of %s\n", clock_time(flight_wall_ms(f, found[i]->time)));
        for (const char *line = found[i]->text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
            char one[512];
            snprintf(one, sizeof(one), "%.*s", (int)strcspn(line, "\n"), line);
            printf("%s\n", shown(one));
        }
    }
}

/* ------------------------------------------------------------------ the verdict */

static bool in_deadlock(const struct verdict *all, int n, const struct verdict *v)
{
    bool stands = v->finding == STUCK_CALL || v->finding == CLOSE_STUCK || v->finding == DESTROY_STUCK;
    for (int i = 0; stands && i < n; i++)
        if (all[i].finding == DEADLOCK)
            for (int k = 0; k < all[i].parties && k < PARTIES; k++)
                if (v->parties > 0 && all[i].party[k] == v->party[0])
                    return true;
    return false;
}

/* What the last look comes to, by the shim's own rules: a loop counts if it was seen twice, and tells of its
 * threads all that is to be told. */
static int judge(const struct flight_seen *seen, int64_t stuck_ms, struct verdict out[VERDICTS])
{
    struct limits limits = {.stuck_ms = stuck_ms};
    struct verdict all[VERDICTS];
    int n = verdicts(&seen->snapshot, &limits, all, VERDICTS), kept = 0;
    for (int i = 0; i < n; i++)
        if (all[i].finding == DEADLOCK ? seen->deadlock >= 2
                                       : seen->deadlock < 2 || !in_deadlock(all, n, &all[i]))
            out[kept++] = all[i];
    return kept;
}

static void say_verdict(const struct flight *f, const struct flight_seen *seen, int64_t stuck_ms)
{
    static char text[REPORT];
    struct verdict found[VERDICTS];
    int n = judge(seen, stuck_ms, found);
    if (!n) {
        puts("\nNothing stood still for long at the last look.");
        return;
    }
    printf("\nWhat stood still at the last look, %s before\n\n", age(f, seen->time));
    for (int i = 0; i < n; i++)
        fwrite(text, 1, report_text(text, sizeof(text), &seen->snapshot, &found[i], i + 1), stdout);
}

/* ------------------------------------------------------------------ as JSON */

static json_t *text(const char *s)
{
    char to[PATH_MAX];
    clean(to, sizeof(to), s, false);
    return json_string(to);
}

static void put(json_t *o, const char *name, json_t *value)
{
    if (json_object_set_new(o, name, value)) {
        fputs("rdgate dump: out of memory\n", stderr);
        exit(EXIT_NOT_RUN);
    }
}

static void put_number(json_t *o, const char *name, int64_t n)
{
    put(o, name, json_integer(n));
}

static void put_time(json_t *o, const char *name, const struct flight *f, int64_t time)
{
    if (time > 0)
        put(o, name, json_string(clock_time(flight_wall_ms(f, time))));
}

static json_t *json_thread(const struct flight *f, const struct flight_thread *t)
{
    static const char *const states[] = {"waiting", "inside", "returning"};
    json_t *o = json_object(), *calls = json_array();
    put_number(o, "tid", t->tid);
    put(o, "name", text(t->name));
    put_number(o, "consumer", t->consumer);
    put(o, "state", json_string(states[t->state]));
    for (int k = 0; k < t->calls; k++) {
        json_t *c = json_object();
        put(c, "call", json_string(rdg_calls[t->nest[k].call].name));
        if (t->nest[k].callback)
            put(c, "callback", json_string(callback_name(t->nest[k].callback - 1)));
        json_array_append_new(calls, c);
    }
    put(o, "calls", calls);
    put_number(o, "age_ms", flight_age_ms(f, t->since));
    if (t->waiting_since)
        put_number(o, "waiting_ms", flight_age_ms(f, t->waiting_since));
    if (t->waits_for)
        put_number(o, "waits_for", t->waits_for);
    const struct flight_place *p = flight_place(f, t->caller);
    if (p) {
        put(o, "caller", text(p->function));
        put(o, "object", text(p->object));
        put_number(o, "offset", (json_int_t)p->offset);
    }
    return o;
}

static json_t *json_event(const struct flight *f, const struct flight_event *e)
{
    static const char *const kinds[] = {
        "",          "born",      "call_begins",     "call_ends",     "poll",      "wait_begins",
        "wait_ends", "preempts",  "callback_begins", "callback_ends", "loan",      "rebalance",
        "answer",    "collision", "finding",         "closed",        "destroyed", "abandoned"};
    _Static_assert(sizeof(kinds) / sizeof(*kinds) == FLIGHT_KINDS, "kinds");
    char words[256];
    json_t *o = json_object();
    put_number(o, "consumer", e->consumer);
    put_time(o, "time", f, e->time);
    put_number(o, "ns", e->time);
    put_number(o, "tid", e->tid);
    put(o, "event", json_string(kinds[e->kind]));
    put(o, "call", json_string(rdg_calls[e->call].name));
    put_number(o, "level", e->level);
    if (e->callback)
        put(o, "callback", json_string(callback_name(e->callback - 1)));
    if (e->other) {
        put_number(o, "other_tid", e->other);
        put(o, "other_call", json_string(rdg_calls[e->other_call].name));
    }
    put_number(o, "code", e->code);
    put_number(o, "value", e->value);
    event_words(words, sizeof(words), f, e);
    put(o, "text", text(words));
    return o;
}

static json_t *json_consumer(const struct flight *f, int row)
{
    static const char *const counters[] = {
#define X(name) #name,
        FLIGHT_COUNTERS(X)
#undef X
    };
    const struct flight_consumer *c = &f->file->consumer[row];
    const struct flight_now *n = &c->now;
    json_t *o = json_object(), *counts = json_object(), *held = json_object(), *waits = json_array();
    put_number(o, "consumer", row);
    put(o, "name", text(c->name));
    put(o, "group", text(c->group));
    put(o, "life", json_string(c->state == FLIGHT_GONE ? "gone" : lives[n->life]));
    put_time(o, "born", f, c->born);
    put_number(o, "max_poll_ms", c->max_poll_ms);
    put_number(o, "owner", n->owner);
    if (n->owner) {
        put(o, "owner_call", json_string(rdg_calls[n->owner_call].name));
        put_number(o, "owner_ms", flight_age_ms(f, n->owner_since));
        if (n->owner_callback)
            put(o, "owner_callback", json_string(callback_name(n->owner_callback - 1)));
    }
    put_number(o, "waiting", n->waiting);
    put_number(o, "polls", (json_int_t)n->polls);
    put_number(o, "last_poll_ms", flight_age_ms(f, n->polled));
    put_number(o, "longest_gap_ms", n->longest_gap_ns / 1000000);
    put(o, "unanswered", json_boolean(n->unanswered));
    put_number(o, "longest_wait_us", c->longest_wait_ns / 1000);
    for (int i = 0; i < FLIGHT_COUNTS; i++)
        put_number(counts, counters[i], (json_int_t)c->count[i]);
    put(o, "counts", counts);
    for (int i = 0; i < DEBTS; i++)
        put_number(held, debt_names[i], n->debt[i]);
    put(o, "holds", held);
    for (int i = 0; i < FLIGHT_BUCKETS; i++)
        json_array_append_new(waits, json_integer(c->waits[i]));
    put(o, "waits_log2_us", waits);
    return o;
}

static json_t *json_verdicts(const struct flight_seen *seen, int64_t stuck_ms)
{
    static char line[REPORT];
    struct verdict found[VERDICTS];
    json_t *list = json_array();
    int n = seen->snapshot.threads || seen->snapshot.consumers ? judge(seen, stuck_ms, found) : 0;
    for (int i = 0; i < n; i++) {
        size_t size = report_json(line, sizeof(line), &seen->snapshot, &found[i], i + 1);
        json_t *one = json_loadb(line, size, 0, NULL);
        if (one)
            json_array_append_new(list, one);
    }
    return list;
}

static json_t *json_findings(const struct flight *f)
{
    const struct flight_finding *found[FLIGHT_FINDINGS];
    json_t *list = json_array();
    int n = flight_findings(f, found);
    for (int i = 0; i < n; i++) {
        json_t *o = json_object();
        put_number(o, "number", (json_int_t)found[i]->number);
        put_time(o, "time", f, found[i]->time);
        put(o, "finding", json_string(finding_code(found[i]->finding)));
        put(o, "severity", json_string(severity_name(found[i]->severity)));
        put_number(o, "consumer", found[i]->consumer);
        put(o, "summary", text(found[i]->summary));
        json_array_append_new(list, o);
    }
    return list;
}

static void say_json(const struct flight *f, const struct flight_seen *seen, int64_t stuck_ms, int most,
                     const struct flight_event **list)
{
    static const char *const fates[] = {"runs", "died", "ended", "asleep"};
    const struct flight_header *h = &f->file->header;
    json_t *o = json_object(), *consumers = json_array(), *threads = json_array(), *events = json_array(),
           *instances = json_array();
    uint64_t lost;
    put_number(o, "v", 1);
    put_number(o, "pid", f->pid ? f->pid : h->pid);
    put(o, "program", text(h->program));
    put(o, "state", json_string(fates[f->fate]));
    put(o, "file", text(f->path));
    put(o, "rdgate", text(h->shim));
    put_time(o, "from", f, h->mono_ns);
    put_time(o, "to", f, f->now);
    put(o, "torn", json_boolean(f->torn));
    for (uint32_t i = 0; i < h->instances; i++) {
        json_t *one = json_object();
        put(one, "version", text(h->instance[i].text));
        put(one, "file", text(h->instance[i].path));
        json_array_append_new(instances, one);
    }
    put(o, "librdkafka", instances);
    for (int i = 0; i < FLIGHT_CONSUMERS; i++)
        if (f->file->consumer[i].state != FLIGHT_FREE)
            json_array_append_new(consumers, json_consumer(f, i));
    put(o, "consumers", consumers);
    for (int i = 0; i < FLIGHT_THREADS; i++)
        if (f->file->thread[i].tid)
            json_array_append_new(threads, json_thread(f, &f->file->thread[i]));
    put(o, "threads", threads);
    put(o, "stands", json_verdicts(seen, stuck_ms));
    put_number(o, "findings_count", (json_int_t)h->findings);
    put(o, "findings", json_findings(f));
    size_t n = flight_events(f, -1, list, FLIGHT_MOST_EVENTS, &lost),
           from = n > (size_t)most ? n - (size_t)most : 0;
    for (size_t i = from; i < n; i++)
        json_array_append_new(events, json_event(f, list[i]));
    put(o, "events", events);
    put_number(o, "events_lost", (json_int_t)(lost + from));
    json_dumpf(o, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(o);
}

/* ------------------------------------------------------------------ the command */

static void usage(FILE *to)
{
    fprintf(to,
            "usage: rdgate dump [options] PID|FILE\n\n"
            "Shows what the flight file of a process says: each consumer with its gate, its counters and "
            "what the\n"
            "application owes it; the threads in calls and whom they wait for; what stands still, and why; "
            "what was\n"
            "found; and the last events. Also of a process that is dead. FILE is one of\n"
            "$XDG_RUNTIME_DIR/rdgate/PID.START, /dev/shm/rdgate-UID/PID.START, or in the directory of "
            "RDGATE_FLIGHT.\n\n"
            "  --events N    at most so many events of each consumer (default 40)\n"
            "  --stuck-ms N  what has stood for so long stands still (default %d)\n"
            "  --reports     the last reports in full, as they were written, with their stacks\n"
            "  --stacks      the stacks of all threads, taken from outside; stops the process for a moment\n"
            "  --json        everything as one JSON object\n\n"
            "Exits with 0, %d for wrong usage, %d if there is no flight file that can be read.\n",
            STUCK_MS, EXIT_USAGE, EXIT_NO_FLIGHT);
}

struct request {
    const char *what;
    int64_t stuck_ms;
    int events;
    bool json, stacks, reports;
};

static bool number(const char *s, long most, int64_t *to)
{
    char *end;
    *to = s ? strtol(s, &end, 10) : -1;
    return s && *s >= '0' && *s <= '9' && !*end && *to <= most;
}

/* 0: go on; otherwise 1 + the exit code. */
static int understand(int argc, char **argv, struct request *r)
{
    int64_t n;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0) {
            usage(stdout);
            return 1;
        }
        if (strcmp(a, "--json") == 0) {
            r->json = true;
        } else if (strcmp(a, "--stacks") == 0) {
            r->stacks = true;
        } else if (strcmp(a, "--reports") == 0) {
            r->reports = true;
        } else if (strcmp(a, "--events") == 0 && number(argv[i + 1], 1000000, &n)) {
            r->events = (int)n;
            i++;
        } else if (strcmp(a, "--stuck-ms") == 0 && number(argv[i + 1], 86400000, &n)) {
            r->stuck_ms = n;
            i++;
        } else if (a[0] == '-' || r->what) {
            fprintf(stderr, "rdgate dump: what is %s? (rdgate dump --help)\n", a);
            return 1 + EXIT_USAGE;
        } else {
            r->what = a;
        }
    }
    if (r->what)
        return 0;
    fputs("rdgate dump: of which process or file? (rdgate dump PID|FILE)\n", stderr);
    return 1 + EXIT_USAGE;
}

int cli_dump(int argc, char **argv)
{
    static struct flight_seen seen;
    static const struct flight_event *list[FLIGHT_MOST_EVENTS];
    static struct open_calls open;
    struct request r = {.stuck_ms = STUCK_MS, .events = 40};
    struct flight f;
    char why[FLIGHT_WHY];
    uint64_t lost;
    int stop = understand(argc, argv, &r);
    if (stop)
        return stop - 1;
    setlocale(LC_CTYPE, "");
    if (!flight_open(&f, r.what, why)) {
        fprintf(stderr, "rdgate dump: %s\n", why);
        return EXIT_NO_FLIGHT;
    }
    bool stands = flight_seen(&f, &seen);
    if (r.json) {
        say_json(&f, &seen, r.stuck_ms, r.events * FLIGHT_CONSUMERS, list);
        flight_shut(&f);
        return 0;
    }
    size_t n = flight_events(&f, -1, list, FLIGHT_MOST_EVENTS, &lost);
    open.count = 0;
    for (size_t i = 0; i < n; i++)
        follow(&open, list[i]);
    say_head(&f);
    for (int i = 0; i < FLIGHT_CONSUMERS; i++)
        if (f.file->consumer[i].state != FLIGHT_FREE)
            say_consumer(&f, i);
    say_threads(&f, &open);
    if (stands)
        say_verdict(&f, &seen, r.stuck_ms);
    else
        puts("\nNothing stood still at the last look.");
    say_findings(&f);
    if (r.reports)
        say_reports(&f);
    for (int i = 0; i < FLIGHT_CONSUMERS && r.events; i++)
        if (f.file->consumer[i].state != FLIGHT_FREE)
            say_events(&f, i, list, r.events);
    if (r.stacks) {
        fflush(stdout);
        stacks_say(f.fate == FLIGHT_RUNS || f.fate == FLIGHT_ASLEEP ? f.pid : 0);
    }
    flight_shut(&f);
    return 0;
}
