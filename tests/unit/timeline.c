/*
 * timeline.c: spans and marks from events: what belongs together, what is missing at either end, and
 * nonsense.
 */
/* links: call.o cli/timeline.o */
#include "cli/timeline.h"
#include "tap.h"

#define MS 1000000LL

static struct flight_event list[4096];
static const struct flight_event *pointer[4096];
static size_t count;
static struct timeline t;

static struct flight_event *event(int64_t ms, enum flight_event_kind kind, int tid, uint16_t call)
{
    struct flight_event *e = &list[count];
    pointer[count++] = e;
    *e = (struct flight_event){.number = count,
                               .time = (1000 + ms) * MS,
                               .kind = (uint8_t)kind,
                               .tid = tid,
                               .call = call,
                               .generation = 1};
    return e;
}

static void made(const struct flight_thread *threads, size_t n, int64_t looked, int64_t end)
{
    int good = timeline_make(&t, pointer, count, threads, n, looked ? (1000 + looked) * MS : 0,
                             end ? (1000 + end) * MS : 0);
    ok(good);
}

static void again(void)
{
    timeline_free(&t);
    count = 0;
}

/* The only span of this kind that begins then and lasts so long. */
static const struct span *span(enum span_kind kind, int64_t from, int64_t to)
{
    const struct span *found = NULL;
    int n = 0;
    for (size_t i = 0; i < t.spans; i++)
        if (t.span[i].kind == kind && t.span[i].begin == (1000 + from) * MS &&
            t.span[i].end == (1000 + to) * MS) {
            found = &t.span[i];
            n++;
        }
    char what[80];
    snprintf(what, sizeof(what), "one span of kind %d from %lld to %lld ms", (int)kind, (long long)from,
             (long long)to);
    tap_point(n == 1, what, __FILE__, __LINE__);
    static const struct span none;
    return found ? found : &none;
}

static void calls(void)
{
    event(1, FLIGHT_CALL_BEGINS, 7, CALL_rd_kafka_commit);
    struct flight_event *e = event(2, FLIGHT_WAIT_BEGINS, 7, CALL_rd_kafka_commit);
    e->other = 8;
    e->other_call = CALL_rd_kafka_consumer_poll;
    event(2, FLIGHT_PREEMPTS, 7, CALL_rd_kafka_commit)->other = 8;
    event(5, FLIGHT_WAIT_ENDS, 7, CALL_rd_kafka_commit)->value = 3 * MS;
    event(9, FLIGHT_CALL_ENDS, 7, CALL_rd_kafka_commit);
    event(10, FLIGHT_POLL, 8, CALL_rd_kafka_consumer_poll);
    made(NULL, 0, 0, 0);
    const struct span *s = span(SPAN_WAIT, 2, 5);
    is(t.thread[s->other].tid, 8);
    is(s->other_call, CALL_rd_kafka_consumer_poll);
    is(s->flags, 0);
    is(span(SPAN_CALL, 5, 9)->flags, 0);
    is(span(SPAN_POLL, 2, 10)->flags, SPAN_BEFORE);
    is(t.spans, 3);
    is(t.marks, 1);
    is(t.threads, 2);
    is(t.begin, 1001 * MS);
    is(t.end, 1010 * MS);
    again();
}

static void callbacks(void)
{
    event(1, FLIGHT_CALLBACK_BEGINS, 7, CALL_rd_kafka_consumer_poll)->callback = CB_rebalance_cb + 1;
    event(1, FLIGHT_REBALANCE, 7, 0)->code = -175;
    event(2, FLIGHT_CALL_BEGINS, 7, CALL_rd_kafka_assign)->level = 1;
    event(3, FLIGHT_ANSWER, 7, CALL_rd_kafka_assign)->level = 1;
    event(4, FLIGHT_CALL_ENDS, 7, CALL_rd_kafka_assign)->level = 1;
    event(5, FLIGHT_CALL_BEGINS, 9, CALL_rd_kafka_commit);
    event(5, FLIGHT_LOAN, 9, CALL_rd_kafka_commit);
    event(6, FLIGHT_CALL_ENDS, 9, CALL_rd_kafka_commit);
    event(8, FLIGHT_CALLBACK_ENDS, 7, CALL_rd_kafka_consumer_poll)->callback = CB_rebalance_cb + 1;
    event(9, FLIGHT_POLL, 7, CALL_rd_kafka_consumer_poll);
    made(NULL, 0, 0, 0);
    is(span(SPAN_POLL, 1, 9)->depth, 0);
    is(span(SPAN_CALLBACK, 1, 8)->depth, 1);
    const struct span *s = span(SPAN_CALL, 2, 4);
    is(s->depth, 2);
    is(s->flags, SPAN_NESTED);
    is(span(SPAN_CALL, 5, 6)->flags, SPAN_BORROWED);
    is(span(SPAN_OWED, 1, 3)->thread, -1);
    is(t.marks, 2);
    again();
}

static void ends_missing(void)
{
    /* The beginning is overwritten, and the process was killed in the middle of things. */
    event(3, FLIGHT_CALL_ENDS, 7, CALL_rd_kafka_commit);
    event(4, FLIGHT_WAIT_ENDS, 7, CALL_rd_kafka_seek)->value = 2 * MS;
    event(5, FLIGHT_CALL_ENDS, 7, CALL_rd_kafka_seek);
    event(6, FLIGHT_CALL_BEGINS, 7, CALL_rd_kafka_consumer_close);
    event(7, FLIGHT_REBALANCE, 8, 0)->code = -174;
    event(8, FLIGHT_CALL_BEGINS, 8, CALL_rd_kafka_commit);
    event(9, FLIGHT_WAIT_BEGINS, 8, CALL_rd_kafka_commit);
    made(NULL, 0, 0, 20);
    is(span(SPAN_CALL, 3, 3)->flags, SPAN_BEFORE);
    span(SPAN_WAIT, 3, 4); /* as long as it says, but not before the thread's last call was over */
    is(span(SPAN_CALL, 4, 5)->flags, 0);
    is(span(SPAN_END, 6, 20)->flags, SPAN_OPEN);
    is(span(SPAN_OWED, 7, 20)->flags, SPAN_OPEN);
    is(span(SPAN_WAIT, 9, 20)->flags, SPAN_OPEN);
    again();
}

static void watched(void)
{
    /* What only the watchdog has seen: a poll that nobody disturbed, with a callback; and one that waits. */
    struct flight_thread threads[3] = {
        {.tid = 7,
         .calls = 1,
         .state = SEEN_INSIDE,
         .name = "main",
         .generation = 1,
         .since = 1002 * MS,
         .callback_since = 1004 * MS,
         .nest = {{.call = CALL_rd_kafka_consumer_poll, .callback = CB_stats_cb + 1}}},
        {.tid = 8,
         .calls = 1,
         .state = SEEN_WAITING,
         .generation = 1,
         .since = 1005 * MS,
         .waiting_since = 1005 * MS,
         .waits_for = 7,
         .nest = {{.call = CALL_rd_kafka_commit}}},
        {.tid = 9,
         .calls = 1,
         .generation = 1,
         .since = 1001 * MS,
         .nest = {{.call = CALL_rd_kafka_commit}}}};
    /* … but of this one events know better: it has left since. */
    event(6, FLIGHT_CALL_BEGINS, 9, CALL_rd_kafka_commit);
    event(12, FLIGHT_CALL_ENDS, 9, CALL_rd_kafka_commit);
    made(threads, 3, 10, 15);
    is(span(SPAN_POLL, 2, 15)->flags, SPAN_OPEN);
    is(span(SPAN_CALLBACK, 4, 15)->what, CB_stats_cb);
    is(t.thread[span(SPAN_WAIT, 5, 15)->other].tid, 7);
    is(span(SPAN_CALL, 6, 12)->flags, 0);
    is(t.spans, 4);
    again();
}

static void lives(void)
{
    /* The row of a consumer that has gone is used again. */
    event(1, FLIGHT_BORN, 7, CALL_rd_kafka_new);
    event(2, FLIGHT_DESTROYED, 7, CALL_rd_kafka_destroy);
    event(3, FLIGHT_BORN, 7, CALL_rd_kafka_new)->generation = 2;
    event(3, FLIGHT_BORN, 7, CALL_rd_kafka_new)->consumer = 5;
    event(4, FLIGHT_FINDING, 0, CALL_rd_kafka_commit)->generation = 2;
    made(NULL, 0, 0, 0);
    is(t.consumers, 3);
    is(t.marks, 5);
    is(t.mark[4].consumer, 1);
    is(t.mark[4].thread, -1);
    again();
    made(NULL, 0, 0, 0);
    is(t.spans, 0);
    again();
}

static uint64_t dice = 88172645463325252u;

static unsigned roll(unsigned n)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (unsigned)(dice >> 33) % n;
}

/* Whatever comes in: spans of one thread at one depth do not meet, and each lies in the one round it. */
static int wrong(void)
{
    for (int thread = 0; thread < t.threads; thread++) {
        int64_t free_from[SPAN_DEPTH] = {0};
        for (size_t i = 0; i < t.spans; i++) {
            const struct span *s = &t.span[i];
            if (s->thread != thread)
                continue;
            if (s->depth >= SPAN_DEPTH || s->begin < free_from[s->depth] || s->end < s->begin ||
                s->end > t.end || s->begin < t.begin || s->consumer < 0 || s->consumer >= t.consumers)
                return 1;
            free_from[s->depth] = s->end;
        }
    }
    return 0;
}

static void nonsense(void)
{
    int bad = 0;
    for (int round = 0; round < 300; round++) {
        struct flight_thread threads[8];
        for (int i = 0; i < 2000; i++) {
            struct flight_event *e =
                event(roll(5000), roll(FLIGHT_KINDS + 2), (int)roll(9) - 1, (uint16_t)roll(4));
            e->level = (uint16_t)(roll(9) ? roll(4) : roll(65536));
            e->other = (int)roll(9) - 1;
            e->callback = (uint8_t)roll(9);
            e->consumer = (uint16_t)(roll(9) ? roll(3) : roll(65536));
            e->generation = roll(3);
            e->value = (int64_t)roll(5) * MS;
            e->flags = (uint16_t)roll(512);
            if (!roll(50))
                e->time = (int64_t)dice;
        }
        for (size_t i = 0; i < sizeof(threads); i++)
            ((unsigned char *)threads)[i] = (unsigned char)(roll(3) ? 0 : roll(256));
        for (int i = 0; i < 8; i++) {
            threads[i].tid = i;
            threads[i].since = threads[i].waiting_since = threads[i].callback_since =
                (int64_t)roll(7000) * MS;
        }
        if (!timeline_make(&t, pointer, count, threads, 8, (int64_t)roll(7000) * MS,
                           (int64_t)roll(7000) * MS))
            bad++;
        bad += wrong();
        again();
    }
    is(bad, 0);
}

int main(void)
{
    calls();
    callbacks();
    ends_missing();
    watched();
    lives();
    nonsense();
    return done();
}
