/* links: call.o verdict.o report.o page.o */
#include "cases.h"
#include "tap.h"

static const struct limits limits = {10000};
static struct verdict out[8];

static int judged(void)
{
    return verdicts(&snap, &limits, out, 8);
}

/* What the watchdog has to judge gives one verdict, of the kind that the case is named after. */
static void each_case(void)
{
    static const char *const codes[] = {
#define FINDING(NAME, code, severity) code,
#include "findings.def"
    };
    const char *name;
    for (int i = 0; (name = make_case(i)) && strcmp(name, "rebalance-unanswered-returned") != 0; i++) {
        int n = judged();
        if (n != 1 || strncmp(name, codes[out[0].finding], strlen(codes[out[0].finding])) != 0) {
            printf("# %s: %d\n", name, n);
            ok(!"one verdict of that kind");
        }
        ok(verdict_same(&snap, &out[0], &snap, &out[0]));
    }
}

static void variants(void)
{
    make_case(0);
    is(judged(), 1);
    is(out[0].note, LOOP_MUTEX);
    is(out[0].parties, 2);
    is(out[0].age, 12000);
    make_case(2);
    judged();
    is(out[0].note, LOOP_ANSWER);
    make_case(9);
    judged();
    is(out[0].note, OWES_NOTHING);
    is(out[0].hint, 1);
    consumers[0].version = 0x020f01;
    judged();
    is(out[0].hint, 0);
}

static void silence(void)
{
    fresh(); /* an idle poll */
    thread_is(0, 4182, "main", CALL_rd_kafka_consumer_poll, 86400000);
    is(judged(), 0);
    threads[0].call[0].finite = true; /* a long one in its time, and within the margin */
    threads[0].call[0].timeout_left = 5000;
    is(judged(), 0);
    threads[0].call[0].timeout_left = -900;
    is(judged(), 0);
    threads[0].call[0].timeout_left = -20000;
    is(judged(), 1);
    make_case(5); /* a slow callback under the limit */
    threads[0].call[0].callback_age = 9999;
    threads[1].call[0].waiting = threads[1].call[0].age = 9000;
    is(judged(), 0);
    fresh(); /* answered late, by another thread; not yet late; the callback still runs */
    rebalanced(CODE_ASSIGN, false, true, 9999);
    is(judged(), 0);
    rebalanced(CODE_ASSIGN, false, true, 20000);
    consumers[0].rebalance.answered = true;
    is(judged(), 0);
    rebalanced(CODE_ASSIGN, false, false, 20000);
    is(judged(), 0);
    rebalanced(CODE_ASSIGN, false, true, 20000);
    consumers[0].life = CLOSED;
    is(judged(), 0);
    make_case(19); /* a gap of a consumer that is not subscribed, or has not got a limit, or polls */
    is(out[0].consumer, 0);
    consumers[0].subscribed = false;
    is(judged(), 0);
    make_case(0); /* a wait that ends by itself is no deadlock */
    threads[1].call[0].finite = true;
    threads[1].call[0].timeout_left = 100;
    judged();
    ok(out[0].finding != DEADLOCK);
}

static uint32_t seed = 4711;
static uint32_t dice(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

/* Snapshots of pure nonsense neither crash nor hang nor print what is not text. */
static void nonsense(void)
{
    static char bytes[8192];
    int bad = 0;
    for (int round = 0; round < 3000; round++) {
        fresh();
        unsigned char *raw[] = {(void *)consumers, (void *)threads, (void *)edges};
        size_t sizes[] = {sizeof(consumers), sizeof(threads), sizeof(edges)};
        for (int a = 0; a < 3; a++)
            for (size_t i = 0; i < sizes[a]; i++)
                if (dice(3) == 0)
                    raw[a][i] = (unsigned char)(dice(2) ? dice(4) : dice(256));
        for (int i = 0; i < 3; i++) {
            threads[i].frame = dice(2) ? frames : NULL;
            if (threads[i].frames > 6 || !threads[i].frame)
                threads[i].frames = 6;
            for (int k = 0; k < SEEN_CALLS; k++) { /* a bool that is neither is not C any more */
                threads[i].call[k].finite = dice(2);
                threads[i].call[k].guard = dice(2);
            }
            threads[i].mutex_elsewhere = dice(2);
            edges[i].from = (short)((int)dice(6) - 1);
            edges[i].to = (short)((int)dice(6) - 1);
        }
        for (int i = 0; i < 2; i++) {
            struct seen_consumer *c = &consumers[i];
            c->ended_call = dice(2) ? "rd_kafka_destroy" : NULL;
            c->forked = dice(2), c->subscribed = dice(2);
            c->rebalance.by_event = dice(2), c->rebalance.returned = dice(2), c->rebalance.answered = dice(2);
            for (int k = 0; k < DEBTS; k++)
                c->debt[k].more = dice(2);
        }
        snap.threads = dice(8) ? 3 : -7;
        snap.edges = dice(8) ? 3 : 1 << 30;
        snap.consumers = dice(8) ? 2 : -1;
        int n = judged();
        for (int i = 0; i < n; i++) {
            size_t used = report_text(bytes, sizeof(bytes), &snap, &out[i], round);
            int column = 0;
            for (size_t k = 0; k < used; k++) {
                column = bytes[k] == '\n' ? 0 : column + 1;
                bad += column > 100 || (bytes[k] != '\n' && (bytes[k] < 0x20 || bytes[k] > 0x7e));
            }
            report_json(bytes, sizeof(bytes), &snap, &out[i], round);
            struct verdict v = out[i];
            v.party[0] = (short)dice(65536), v.parties = (short)dice(65536), v.edges = (short)dice(65536);
            v.call = (uint16_t)dice(65536), v.level = (short)dice(65536), v.hint = (int)dice(99) - 9;
            v.note = (int)dice(99) - 9, v.finding = (enum finding)dice(FINDINGS), v.consumer = (short)dice(9);
            report_text(bytes, sizeof(bytes), &snap, &v, round);
            report_json(bytes, sizeof(bytes), &snap, &v, round);
            verdict_same(&snap, &out[i], &snap, &v);
        }
    }
    is(bad, 0);
    fresh();
    snap.thread = NULL, snap.consumer = NULL, snap.edge = NULL;
    snap.threads = snap.consumers = snap.edges = 9;
    is(judged(), 0);
}

int main(void)
{
    each_case();
    variants();
    silence();
    nonsense();
    return done();
}
