/*
 * scene.c: writes flight files as a process under the shim would, for the tests of what shows them.
 *
 *   scene DIRECTORY SCENE [stay]     prints the file's path; stay: keeps it alive until its input ends
 *
 * Scenes: calm, deadlock, trouble (one of each), picture, busy (200 consumers, all rings full), empty,
 * hostile-N (a file with a valid head and sums, and anything at all between: N is the seed).
 */
#include "../unit/flights.h"
#include "verdict.h"

#include <poll.h>

static int64_t now;
static uint64_t dice = 88172645463325252u;

static uint32_t roll(uint32_t n)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (uint32_t)(dice >> 33) % n;
}

static int64_t mono(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static unsigned long long start_of_self(void)
{
    char stat[1024] = "";
    FILE *f = fopen("/proc/self/stat", "re");
    size_t n = f ? fread(stat, 1, sizeof(stat) - 1, f) : 0;
    if (f)
        fclose(f);
    stat[n] = 0;
    char *p = strrchr(stat, ')');
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoull(p + 1, NULL, 10) : 0;
}

static struct flight_thread *thread(int i, int tid, const char *name, int row, uint16_t call, int64_t age)
{
    struct flight_thread *t = &made.thread[i];
    *t = (struct flight_thread){.tid = tid,
                                .consumer = (int16_t)row,
                                .calls = 1,
                                .state = SEEN_INSIDE,
                                .since = now - age,
                                .generation = 1};
    snprintf(t->name, sizeof(t->name), "%s", name);
    t->nest[0].call = call;
    return t;
}

/* A thread that waits at the gate of a row for another. */
static void waits(int i, int tid, const char *name, int row, uint16_t call, int64_t age, int whom)
{
    struct flight_thread *t = thread(i, tid, name, row, call, age);
    struct flight_now *n = &made.consumer[row].now;
    t->state = SEEN_WAITING;
    t->waiting_since = now - age;
    t->waits_for = whom;
    n->waiting++;
    if (!n->waiting_since || n->waiting_since > now - age)
        n->waiting_since = now - age;
    flight_event((struct flight_event){
        .time = now - age, .kind = FLIGHT_CALL_BEGINS, .consumer = (uint16_t)row, .call = call, .tid = tid});
    flight_event((struct flight_event){.time = now - age + 1000,
                                       .kind = FLIGHT_WAIT_BEGINS,
                                       .consumer = (uint16_t)row,
                                       .call = call,
                                       .tid = tid,
                                       .other = whom,
                                       .other_call = made.consumer[row].now.owner_call});
}

static void owns(int row, int tid, uint16_t call, int64_t age)
{
    struct flight_now *n = &made.consumer[row].now;
    n->owner = tid;
    n->owner_call = call;
    n->owner_since = now - age;
    n->inside = 1;
}

static struct flight_consumer *consumer(int row, const char *name, const char *group)
{
    struct flight_consumer *c = flight_consumer(row, name, group);
    c->born = now - 600 * SECOND;
    c->flags = FLIGHT_SUBSCRIBED;
    c->now.polled = now - SECOND / 20;
    c->now.polls = 123456;
    c->now.poller = 4182;
    c->made_tid = 4182;
    c->count[FLIGHT_COUNT_calls] = 4211;
    c->count[FLIGHT_COUNT_collisions] = c->count[FLIGHT_COUNT_waits] = 22;
    c->count[FLIGHT_COUNT_preemptions] = 17;
    c->longest_wait_ns = 300000000;
    c->waits[3] = 20;
    c->waits[19] = 2;
    return c;
}

/* Polls, commits that wake them, callbacks: `steps` of it, ending at `end`. */
static void history(int row, int first_tid, int steps, int64_t end)
{
    int64_t t = end - steps * 10000000LL;
    uint16_t r = (uint16_t)row;
    for (int i = 0; i < steps; i++, t += 8000000 + roll(4000000)) {
        int poller = first_tid, other = first_tid + 1 + (int)roll(2);
        int64_t waited = 20000 + roll(900000), took = 500000 + roll(5000000);
        uint16_t poll = CALL_rd_kafka_consumer_poll,
                 call = roll(4) ? CALL_rd_kafka_commit : CALL_rd_kafka_pause_partitions;
        flight_event((struct flight_event){
            .time = t, .kind = FLIGHT_CALL_BEGINS, .consumer = r, .call = call, .tid = other});
        flight_event((struct flight_event){.time = t + 2000,
                                           .kind = FLIGHT_WAIT_BEGINS,
                                           .consumer = r,
                                           .call = call,
                                           .tid = other,
                                           .other = poller,
                                           .other_call = CALL_rd_kafka_consumer_poll});
        flight_event((struct flight_event){.time = t + 3000,
                                           .kind = FLIGHT_PREEMPTS,
                                           .consumer = r,
                                           .call = call,
                                           .tid = other,
                                           .other = poller,
                                           .other_call = poll});
        flight_event((struct flight_event){.time = t + waited,
                                           .kind = FLIGHT_WAIT_ENDS,
                                           .consumer = r,
                                           .call = call,
                                           .tid = other,
                                           .value = waited - 2000});
        flight_event((struct flight_event){.time = t + waited + 1000,
                                           .kind = FLIGHT_WAIT_BEGINS,
                                           .consumer = r,
                                           .call = poll,
                                           .tid = poller,
                                           .other = other,
                                           .other_call = call});
        flight_event((struct flight_event){
            .time = t + waited + took, .kind = FLIGHT_CALL_ENDS, .consumer = r, .call = call, .tid = other});
        flight_event((struct flight_event){.time = t + waited + took + 1000,
                                           .kind = FLIGHT_WAIT_ENDS,
                                           .consumer = r,
                                           .call = poll,
                                           .tid = poller,
                                           .value = took});
        if (i % 9 == 4) { /* a callback, and a call let in meanwhile */
            int64_t cb = t + waited + took + 100000;
            flight_event((struct flight_event){.time = cb,
                                               .kind = FLIGHT_CALLBACK_BEGINS,
                                               .consumer = r,
                                               .call = CALL_rd_kafka_consumer_poll,
                                               .callback = CB_rebalance_cb + 1,
                                               .tid = poller});
            flight_event((struct flight_event){.time = cb + 50000,
                                               .kind = FLIGHT_REBALANCE,
                                               .consumer = r,
                                               .code = -175,
                                               .tid = poller,
                                               .value = 6});
            flight_event((struct flight_event){.time = cb + 100000,
                                               .kind = FLIGHT_CALL_BEGINS,
                                               .consumer = r,
                                               .call = CALL_rd_kafka_assign,
                                               .tid = other});
            flight_event((struct flight_event){.time = cb + 110000,
                                               .kind = FLIGHT_LOAN,
                                               .consumer = r,
                                               .call = CALL_rd_kafka_assign,
                                               .tid = other});
            flight_event((struct flight_event){.time = cb + 600000,
                                               .kind = FLIGHT_ANSWER,
                                               .consumer = r,
                                               .call = CALL_rd_kafka_assign,
                                               .tid = other,
                                               .value = 6});
            flight_event((struct flight_event){.time = cb + 700000,
                                               .kind = FLIGHT_CALL_ENDS,
                                               .consumer = r,
                                               .call = CALL_rd_kafka_assign,
                                               .tid = other});
            flight_event((struct flight_event){.time = cb + 1200000,
                                               .kind = FLIGHT_CALLBACK_ENDS,
                                               .consumer = r,
                                               .call = CALL_rd_kafka_consumer_poll,
                                               .callback = CB_rebalance_cb + 1,
                                               .tid = poller});
        }
        flight_event((struct flight_event){.time = t + 7900000,
                                           .kind = FLIGHT_POLL,
                                           .consumer = r,
                                           .call = CALL_rd_kafka_consumer_poll,
                                           .tid = poller,
                                           .flags = FLIGHT_PREEMPTED | FLIGHT_WAITED});
    }
}

static void found(int row, unsigned finding, unsigned severity, int64_t age, uint16_t call, int tid,
                  const char *summary)
{
    uint64_t number = ++made.header.findings;
    made.header.found[finding]++;
    struct flight_finding *f = &made.finding[(number - 1) % FLIGHT_FINDINGS];
    *f = (struct flight_finding){.number = number,
                                 .time = now - age,
                                 .finding = finding,
                                 .severity = severity,
                                 .consumer = row,
                                 .reported = number};
    snprintf(f->summary, sizeof(f->summary), "%s", summary);
    f->length = (uint32_t)snprintf(f->text, sizeof(f->text), "rdgate: finding: %s\n", summary);
    made.consumer[row].count[FLIGHT_COUNT_findings]++;
    flight_event((struct flight_event){.time = now - age,
                                       .kind = FLIGHT_FINDING,
                                       .consumer = (uint16_t)row,
                                       .call = call,
                                       .tid = tid,
                                       .code = (int32_t)finding,
                                       .value = (int64_t)number});
}

/* A poll in its rebalance callback wants a mutex, whose owner wants to commit. */
static void deadlock(int row)
{
    consumer(row, "orders#consumer-1", "billing");
    made.consumer[row].now.polled = now - 12 * SECOND;
    history(row, 4182, 40, now - 12450000000);
    owns(row, 4182, CALL_rd_kafka_consumer_poll, 12400000000);
    made.consumer[row].now.owner_callback = CB_rebalance_cb + 1;
    made.consumer[row].now.callback_since = now - 12300000000;
    made.consumer[row].now.unanswered = 1;
    struct flight_thread *t = thread(0, 4182, "main", row, CALL_rd_kafka_consumer_poll, 12400000000);
    t->nest[0].callback = CB_rebalance_cb + 1;
    t->callback_since = now - 12300000000;
    flight_event((struct flight_event){.time = now - 12300000000,
                                       .kind = FLIGHT_CALLBACK_BEGINS,
                                       .consumer = (uint16_t)row,
                                       .call = CALL_rd_kafka_consumer_poll,
                                       .callback = CB_rebalance_cb + 1,
                                       .tid = 4182});
    flight_event((struct flight_event){.time = now - 12290000000,
                                       .kind = FLIGHT_REBALANCE,
                                       .consumer = (uint16_t)row,
                                       .code = -174,
                                       .tid = 4182,
                                       .value = 6});
    waits(1, 4183, "committer", row, CALL_rd_kafka_commit, 12100000000, 4182);
    waits(2, 4184, "metrics", row, CALL_rd_kafka_committed, 3400000000, 4182);

    struct flight_snapshot *s = &made.snapshot[0];
    *s = (struct flight_snapshot){.consumers = 1,
                                  .threads = 2,
                                  .edges = 2,
                                  .time_ms = (made.header.wall_ns + 1) / 1000000,
                                  .time = now,
                                  .deadlock = 9};
    snprintf(s->consumer[0].name, sizeof(s->consumer[0].name), "orders#consumer-1");
    snprintf(s->consumer[0].group, sizeof(s->consumer[0].group), "billing");
    s->consumer[0].row = row;
    for (int i = 0; i < 2; i++) {
        struct flight_seen_thread *st = &s->thread[i];
        st->tid = 4182 + i;
        snprintf(st->name, sizeof(st->name), "%s", i ? "committer" : "main");
        st->sleep = i ? SLEEP_FUTEX : SLEEP_MUTEX;
        st->mutex_owner = i ? 0 : 4183;
        st->asleep = 12000;
        st->calls = 1;
        st->call[0].call = i ? CALL_rd_kafka_commit : CALL_rd_kafka_consumer_poll;
        st->call[0].class = i ? CALL : POLL;
        st->call[0].state = i ? SEEN_WAITING : SEEN_INSIDE;
        st->call[0].callback = i ? 0 : CB_rebalance_cb + 1;
        st->call[0].age = st->call[0].waiting = 12100;
        if (!i)
            st->call[0].waiting = -1;
    }
    s->edge[0] =
        (struct flight_edge){.kind = EDGE_MUTEX, .from = 0, .to = 1, .consumer = 0, .mutex = 0x7ffe40};
    s->edge[1] = (struct flight_edge){.kind = EDGE_GATE, .from = 1, .to = 0, .consumer = 0};
    made.header.snapshot = 1;
    found(row, DEADLOCK, SEVERITY_ERROR, 11 * SECOND, CALL_rd_kafka_commit, 4183,
          "rd_kafka_commit on consumer \"orders#consumer-1\" of group \"billing\": 2 threads wait for each "
          "other");
}

static void trouble(void)
{
    struct flight_consumer *c;
    deadlock(0);
    consumer(1, "audit#consumer-2", "billing");
    history(1, 4190, 30, now);
    thread(3, 4190, "auditor", 1, CALL_rd_kafka_consumer_poll, 400000000);
    owns(1, 4190, CALL_rd_kafka_consumer_poll, 400000000);
    c = consumer(2, "prices#consumer-3", "quotes");
    c->now.polled = now - 250 * SECOND;
    c->now.poller = 4195;
    found(2, POLL_GAP, SEVERITY_WARNING, 10 * SECOND, CALL_rd_kafka_consumer_poll, 4195,
          "rd_kafka_consumer_poll on consumer \"prices#consumer-3\" has not been called for 250 s");
    c = consumer(3, "mail \x1b[31m</script><b>\"quoted\" \\ \xc3\xa9#consumer-4", "po\nst");
    c->now.life = CLOSING;
    thread(4, 4198, "closer", 3, CALL_rd_kafka_consumer_close, 22 * SECOND);
    owns(3, 4198, CALL_rd_kafka_consumer_close, 22 * SECOND);
    flight_event((struct flight_event){.time = now - 22 * SECOND,
                                       .kind = FLIGHT_CALL_BEGINS,
                                       .consumer = 3,
                                       .call = CALL_rd_kafka_consumer_close,
                                       .tid = 4198});
    c->now.debt[DEBT_MESSAGE] = 3;
}

/* For the pictures in the README. */
static void picture(void)
{
    deadlock(0);
    consumer(1, "audit#consumer-2", "billing");
    history(1, 4190, 60, now - 12 * SECOND);
    thread(3, 4190, "auditor", 1, CALL_rd_kafka_consumer_poll, 400000000);
    thread(4, 4191, "flusher", -1, 0, 0)->calls = 0;
    thread(5, 4192, "seeker", -1, 0, 0)->calls = 0;
    owns(1, 4190, CALL_rd_kafka_consumer_poll, 400000000);
    consumer(2, "prices#consumer-3", "quotes")->now.polled = now - 250 * SECOND;
    made.consumer[2].count[FLIGHT_COUNT_calls] = 18;
}

static void busy(void)
{
    for (int i = 0; i < 200; i++) {
        char name[64];
        snprintf(name, sizeof(name), "service-%d#consumer-%d", i, i + 1);
        struct flight_consumer *c = consumer(i, name, "fleet");
        c->now.waiting = roll(4);
        c->now.waiting_since = now - roll(900000000);
        owns(i, 5000 + i % 50, CALL_rd_kafka_consumer_poll, roll(400000000));
        history(i, 5000 + i % 48, 9, now);
    }
    for (int i = 0; i < 50; i++) {
        char name[16];
        snprintf(name, sizeof(name), "worker-%d", i);
        thread(i, 5000 + i, name, i, CALL_rd_kafka_consumer_poll, roll(400000000));
    }
}

/* Everything but what the reader checks first is chance, and the sums are right. */
static void hostile(uint32_t seed)
{
    struct flight_header h = made.header;
    dice ^= (uint64_t)seed * 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < sizeof(made); i++)
        ((unsigned char *)&made)[i] = (unsigned char)(roll(3) ? roll(256) : roll(2) ? 0 : 0xff);
    made.header = h;
    made.header.snapshot = 1 + roll(2);
    made.header.looked = roll(2) ? now : (int64_t)dice;
    for (int i = 0; i < FLIGHT_CONSUMERS; i++)
        made.consumer[i].state = FLIGHT_OPEN;
    for (int i = 0; i < FLIGHT_RINGS; i++) {
        made.ring[i].head = 0;
        for (int k = 0; k < FLIGHT_EVENTS; k++) {
            struct flight_event e;
            memcpy(&e, &made.ring[i].event[k], sizeof(e));
            e.kind = (uint8_t)roll(FLIGHT_KINDS);
            e.consumer = (uint16_t)(i + FLIGHT_RINGS * (int)roll(8));
            e.tid = (int32_t)roll(20) - 2;
            e.other = (int32_t)roll(20) - 2;
            e.level = (uint16_t)(roll(20) ? roll(10) : roll(65536));
            if (roll(10))
                e.time = now - roll(2000000000);
            if (roll(2))
                e.call = (uint16_t)roll(4), e.generation = roll(3);
            flight_event(e);
        }
    }
    for (int i = 0; i < FLIGHT_FINDINGS; i++) {
        made.finding[i].number = (uint64_t)i + 1;
        made.finding[i].finding = roll(30);
        made.finding[i].severity = roll(4);
        made.finding[i].length = roll(7000);
    }
    made.snapshot[0].sequence = made.snapshot[1].sequence = 2;
    made.snapshot[0].consumers = made.snapshot[0].threads = made.snapshot[0].edges = roll(33);
    made.snapshot[0].deadlock = 3;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: scene DIRECTORY SCENE [stay]\n", stderr);
        return 2;
    }
    const char *scene = argv[2];
    struct timespec wall;
    char path[4096], partial[4200];
    clock_gettime(CLOCK_REALTIME, &wall);
    now = mono();
    flight_fresh();
    made.header.pid = getpid();
    made.header.start = start_of_self();
    made.header.mono_ns = now - 700 * SECOND;
    made.header.wall_ns = wall.tv_sec * SECOND + wall.tv_nsec - 700 * SECOND;
    made.header.looked = now;
    if (strncmp(scene, "container-", 10) == 0) { /* the first process of the container with that number */
        made.header.pid = 1;
        made.header.namespace = (uint64_t)atoi(scene + 10);
        made.header.start = made.header.namespace;
        scene = "calm";
    }
    if (strcmp(scene, "calm") == 0) {
        consumer(0, "orders#consumer-1", "billing");
        history(0, 4182, 40, now);
        thread(0, 4182, "main", 0, CALL_rd_kafka_consumer_poll, 400000000);
        owns(0, 4182, CALL_rd_kafka_consumer_poll, 400000000);
    } else if (strcmp(scene, "deadlock") == 0) {
        deadlock(0);
    } else if (strcmp(scene, "trouble") == 0) {
        trouble();
    } else if (strcmp(scene, "picture") == 0) {
        picture();
    } else if (strcmp(scene, "busy") == 0) {
        busy();
    } else if (strncmp(scene, "hostile-", 8) == 0) {
        hostile((uint32_t)atoi(scene + 8));
    } else if (strcmp(scene, "empty") != 0) {
        fprintf(stderr, "scene: no scene %s\n", scene);
        return 2;
    }
    snprintf(path, sizeof(path), "%s/%d.%llu", argv[1], made.header.pid,
             (unsigned long long)made.header.start);
    snprintf(partial, sizeof(partial), "%s.new", path);
    if (!flight_write(partial, sizeof(made)) || rename(partial, path)) {
        perror(path);
        return 1;
    }
    puts(path);
    fflush(stdout);
    if (argc < 4)
        return 0;
    FILE *f = fopen(path, "r+e");
    struct pollfd p = {.fd = 0, .events = POLLIN};
    char byte;
    while (f && (poll(&p, 1, 100) == 0 || read(0, &byte, 1) > 0)) {
        made.header.looked = mono();
        made.header.looks++;
        for (int i = 0; i < FLIGHT_CONSUMERS; i++)
            if (made.consumer[i].state == FLIGHT_OPEN)
                made.consumer[i].now.polls += made.consumer[i].now.waiting || i == 2 ? 0 : 91;
        rewind(f);
        fwrite(&made, 1, offsetof(struct flight_file, thread), f);
        fflush(f);
    }
    unlink(path);
    return 0;
}
