/*
 * cases.h: one hand-made snapshot and verdict for every finding and variant, for the tests of report.c and
 * the golden files. Nothing in it depends on the machine.
 */
#pragma once

#include "call.h"
#include "report.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NAMED(field, name) snprintf(field, sizeof(field), "%s", name)

static struct place frames[] = {{1, "libc.so.6", 0x90482, "pthread_mutex_lock"},
                                {2, "billing", 0x3f10, "on_rebalance"},
                                {3, "librdkafka.so.1", 0x1a20, "rd_kafka_consumer_poll"},
                                {4, "librdkafka.so.1", 0x1b20, ""},
                                {5, "librdkafka.so.1", 0x1c20, ""},
                                {6, "billing", 0x41c2, "poll_loop"}};

static struct seen_consumer consumers[2];
static struct seen_thread threads[3];
static struct edge edges[3];
static struct snapshot snap;
static struct verdict found;

static struct seen_call call_of(int call, int consumer, int64_t age)
{
    return (struct seen_call){.call = (uint16_t)call,
                              .class = rdg_calls[call].class,
                              .state = SEEN_INSIDE,
                              .consumer = (short)consumer,
                              .age = age,
                              .waiting = -1,
                              .callback_age = -1,
                              .caller = {9, "billing", 0x5230, "flush_offsets"}};
}

static void thread_is(int i, int tid, const char *name, int call, int64_t age)
{
    threads[i] =
        (struct seen_thread){.tid = tid, .sleep = SLEEP_FUTEX, .syscall = 202, .asleep = age, .calls = 1};
    NAMED(threads[i].name, name);
    threads[i].call[0] = call_of(call, 0, age);
    snap.threads = i + 1;
}

static void fresh(void)
{
    memset(consumers, 0, sizeof(consumers));
    memset(threads, 0, sizeof(threads));
    memset(edges, 0, sizeof(edges));
    for (int i = 0; i < 2; i++) {
        struct seen_consumer *c = &consumers[i];
        NAMED(c->name, i ? "audit-2#consumer-2" : "orders-7#consumer-1");
        NAMED(c->group, "billing");
        NAMED(c->version_text, "2.0.2");
        c->version = 0x020002;
        c->last_poll = 1200;
        c->poll_tid = 4182;
        NAMED(c->poll_thread, "main");
        c->max_poll_ms = 300000;
        c->subscribed = true;
        c->last_commit = -1;
        c->made_tid = 4182;
        c->made_age = 660000;
        c->ended_age = -1;
        c->rebalance.partitions = -1;
    }
    snap = (struct snapshot){.pid = 4170,
                             .program = "billing",
                             .time = 1700000000123,
                             .consumers = 2,
                             .consumer = consumers,
                             .thread = threads,
                             .edge = edges};
    found = (struct verdict){.consumer = 0, .call = CALL_COUNT, .age = -1};
}

static void rebalanced(int code, bool by_event, bool returned, int64_t age)
{
    consumers[0].rebalance = (struct seen_rebalance){.code = code,
                                                     .partitions = 4,
                                                     .by_event = by_event,
                                                     .returned = returned,
                                                     .tid = 4182,
                                                     .thread = "main",
                                                     .age = age};
}

static void in_rebalance(int i, int64_t age)
{
    threads[i].call[0].callback = CB_rebalance_cb + 1;
    threads[i].call[0].callback_age = age;
}

static void at_gate(int i, int64_t ms)
{
    struct seen_call *k = &threads[i].call[threads[i].calls - 1];
    k->state = SEEN_WAITING;
    k->waiting = k->age = ms;
}

/* The case by number; NULL: there are no more. Its name is that of its golden files. */
static const char *make_case(int n)
{
    static const struct limits limits = {10000};
    struct verdict many[8];
    fresh();
#define CASE(text) if (n-- == 0 && (name = (text)))
#define JUDGED     (verdicts(&snap, &limits, many, 8) > 0 ? (found = many[0], name) : "none")
#define SPOT(f, variant, k)                                                                                  \
    (found.finding = (f), found.note = (variant), found.call = (k), found.parties = (short)snap.threads,     \
     found.party[1] = 1, threads[0].call[0].call = (k), name)
    const char *name;
    CASE("deadlock-mutex")
    {
        thread_is(0, 4182, "main", CALL_rd_kafka_consumer_poll, 12400);
        in_rebalance(0, 12100);
        threads[0].sleep = SLEEP_MUTEX, threads[0].futex = 0x7ffe40, threads[0].mutex_owner = 4188;
        threads[0].asleep = 12000;
        threads[0].frame = frames, threads[0].frames = 6, threads[0].stack_from = STACK_ASKED;
        thread_is(1, 4188, "committer", CALL_rd_kafka_commit, 12100);
        threads[1].frame = frames + 5, threads[1].frames = 1, threads[1].stack_from = STACK_BY_ITSELF;
        at_gate(1, 12100);
        thread_is(2, 4190, "metrics", CALL_rd_kafka_assignment, 3400);
        at_gate(2, 3400);
        threads[2].stack_from = STACK_SILENT;
        edges[0] = (struct edge){EDGE_MUTEX, 0, 1, -1, 0x7ffe40};
        edges[1] = (struct edge){EDGE_GATE, 1, 0, 0, 0};
        edges[2] = (struct edge){EDGE_GATE, 2, 0, 0, 0};
        snap.edges = 3;
        return JUDGED;
    }
    CASE("deadlock-gates")
    {
        for (int i = 0; i < 2; i++) {
            thread_is(i, 4182 + i, i ? "audit" : "main", CALL_rd_kafka_consumer_poll, 13000 - i);
            threads[i].call[0].consumer = (short)i;
            in_rebalance(i, 12500);
            threads[i].calls = 2;
            threads[i].call[1] = call_of(CALL_rd_kafka_pause_partitions, !i, 12200);
            at_gate(i, 12200);
            edges[i] = (struct edge){EDGE_GATE, (short)i, (short)!i, (short)!i, 0};
        }
        snap.edges = 2;
        return JUDGED;
    }
    CASE("deadlock-answer")
    {
        thread_is(0, 4182, "main", CALL_rd_kafka_consumer_poll, 12400);
        in_rebalance(0, 12100);
        threads[0].sleep = SLEEP_MUTEX, threads[0].futex = 0x7ffe40, threads[0].mutex_owner = 4188;
        thread_is(1, 4188, "closer", CALL_rd_kafka_consumer_close, 11000);
        rebalanced(CODE_REVOKE, false, false, 12100);
        edges[0] = (struct edge){EDGE_MUTEX, 0, 1, -1, 0x7ffe40};
        snap.edges = 1;
        return JUDGED;
    }
    CASE("deadlock-self")
    {
        thread_is(0, 4182, "main", CALL_rd_kafka_consumer_poll, 12400);
        in_rebalance(0, 12100);
        threads[0].sleep = SLEEP_MUTEX, threads[0].futex = 0x7ffe40, threads[0].mutex_owner = 4182;
        edges[0] = (struct edge){EDGE_MUTEX, 0, 0, -1, 0x7ffe40};
        snap.edges = 1;
        return JUDGED;
    }
    CASE("stuck-call-inside")
    {
        thread_is(0, 4182, "main", CALL_rd_kafka_commit, 30000);
        return JUDGED;
    }
    CASE("stuck-call-callback")
    {
        thread_is(0, 4182, "main", CALL_rd_kafka_consumer_poll, 30000);
        in_rebalance(0, 20000);
        rebalanced(CODE_ASSIGN, false, false, 20000);
        thread_is(1, 4188, "committer", CALL_rd_kafka_consumer_poll, 15000);
        at_gate(1, 15000);
        edges[0] = (struct edge){EDGE_GATE, 1, 0, 0, 0};
        snap.edges = 1;
        return JUDGED;
    }
    CASE("stuck-call-nested")
    {
        thread_is(0, 4182, "main", CALL_rd_kafka_consumer_poll, 30000);
        in_rebalance(0, 20000);
        threads[0].calls = 2;
        threads[0].call[1] = call_of(CALL_rd_kafka_rebalance_protocol, 0, 19000);
        return JUDGED;
    }
    CASE("stuck-call-gate")
    {
        thread_is(0, 4182, "main", CALL_rd_kafka_consumer_poll, 30000);
        thread_is(1, 4188, "committer", CALL_rd_kafka_commit, 15000);
        at_gate(1, 15000);
        edges[0] = (struct edge){EDGE_GATE, 1, 0, 0, 0};
        snap.edges = 1;
        return JUDGED;
    }
    CASE("stuck-call-returning")
    {
        thread_is(0, 4182, "main", CALL_rd_kafka_consumer_poll, 30000);
        threads[0].call[0].state = SEEN_RETURNING, threads[0].call[0].waiting = 11000;
        thread_is(1, 4188, "committer", CALL_rd_kafka_commit, 5000);
        edges[0] = (struct edge){EDGE_BORROWER, 0, 1, 0, 0};
        snap.edges = 1;
        return JUDGED;
    }
    for (int destroy = 0; destroy < 2; destroy++) {
        int call = destroy ? CALL_rd_kafka_destroy : CALL_rd_kafka_consumer_close;
        CASE(destroy ? "destroy-stuck-nothing" : "close-stuck-nothing")
        {
            thread_is(0, 4182, "main", call, 30000);
            return JUDGED;
        }
        CASE(destroy ? "destroy-stuck-answer" : "close-stuck-answer")
        {
            thread_is(0, 4190, "closer", call, 30000);
            rebalanced(CODE_REVOKE, false, true, 40000);
            return JUDGED;
        }
        CASE(destroy ? "destroy-stuck-callback" : "close-stuck-callback")
        {
            thread_is(0, 4182, "main", call, 30000);
            in_rebalance(0, 29900);
            threads[0].calls = 2;
            threads[0].call[1] = call_of(CALL_rd_kafka_assignment, 0, 29900);
            rebalanced(CODE_REVOKE, false, false, 29900);
            return JUDGED;
        }
    }
    CASE("destroy-stuck-objects")
    {
        thread_is(0, 4182, "main", CALL_rd_kafka_destroy, 30000);
        consumers[0].debt[DEBT_MESSAGE] =
            (struct debt){1, false, CALL_rd_kafka_consumer_poll, 4188, "worker-3", 95000};
        return JUDGED;
    }
    CASE("rebalance-unanswered-late")
    {
        thread_is(0, 4182, "main", CALL_rd_kafka_consumer_poll, 11000);
        rebalanced(CODE_ASSIGN, false, true, 11000);
        return JUDGED;
    }
    CASE("rebalance-unanswered-late-event")
    {
        rebalanced(CODE_REVOKE, true, true, 11000);
        return JUDGED;
    }
    CASE("rebalance-unanswered-held")
    {
        rebalanced(CODE_REVOKE, true, false, 11000);
        return JUDGED;
    }
    for (int exceeded = 0; exceeded < 2; exceeded++)
        for (int i = 0; i < 4; i++) {
            static const char *const names[2][4] = {
                {"poll-gap-outside", "poll-gap-inside", "poll-gap-gate", "poll-gap-gone"},
                {"poll-exceeded-outside", "poll-exceeded-inside", "poll-exceeded-gate",
                 "poll-exceeded-gone"}};
            CASE(names[exceeded][i])
            {
                thread_is(0, i == 3 ? 4199 : 4182, "main",
                          i == 2 ? CALL_rd_kafka_consumer_poll : CALL_rd_kafka_commit, 5000);
                threads[0].calls = i != 0;
                if (i == 2) {
                    at_gate(0, 5000);
                    thread_is(1, 4188, "committer", CALL_rd_kafka_commit, 6000);
                    edges[0] = (struct edge){EDGE_GATE, 0, 1, 0, 0};
                    snap.edges = 1;
                }
                consumers[0].last_poll = exceeded ? 301000 : 241000;
                return JUDGED;
            }
        }
    thread_is(0, 4182, "main", CALL_rd_kafka_pause_partitions, 0);
    CASE("rebalance-unanswered-returned")
    {
        rebalanced(CODE_ASSIGN, false, true, 3);
        return SPOT(REBALANCE_UNANSWERED, ANSWER_RETURNED, CALL_rd_kafka_consumer_poll);
    }
    CASE("rebalance-unanswered-event")
    {
        rebalanced(CODE_REVOKE, true, true, 3);
        return SPOT(REBALANCE_UNANSWERED, ANSWER_EVENT, CALL_rd_kafka_queue_poll);
    }
    CASE("rebalance-unanswered-close")
    {
        rebalanced(CODE_REVOKE, false, true, 300);
        return SPOT(REBALANCE_UNANSWERED, ANSWER_CLOSE_BEGINS, CALL_rd_kafka_consumer_close);
    }
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"rebalance-misanswered-null", "rebalance-misanswered-list",
                                            "rebalance-misanswered-protocol"};
        CASE(names[i])
        {
            struct seen_rebalance *r = &consumers[0].rebalance;
            rebalanced(i == 1 ? CODE_REVOKE : CODE_ASSIGN, false, false, 20);
            r->answered = i < 2;
            r->answer = i == 2 ? CALL_rd_kafka_incremental_assign : CALL_rd_kafka_assign;
            r->answer_list = i ? 4 : -1;
            r->answer_code = i == 2 ? -172 : 0;
            r->answer_tid = 4182;
            NAMED(r->answer_thread, "main");
            return SPOT(REBALANCE_MISANSWERED, MISANSWERED_NULL + i, r->answer);
        }
    }
    CASE("close-debt-objects")
    {
        consumers[0].debt[DEBT_MESSAGE] =
            (struct debt){3, true, CALL_rd_kafka_consumer_poll, 4188, "worker-3", 95000};
        consumers[0].debt[DEBT_QUEUE] =
            (struct debt){1, false, CALL_rd_kafka_queue_get_consumer, 4182, "main", 600000};
        return SPOT(CLOSE_DEBT, OWES_OBJECTS, CALL_rd_kafka_destroy);
    }
    CASE("close-debt-answer")
    {
        rebalanced(CODE_REVOKE, false, true, 300);
        return SPOT(CLOSE_DEBT, OWES_ANSWER, CALL_rd_kafka_consumer_close);
    }
    consumers[0].ended_call = "rd_kafka_consumer_close";
    consumers[0].ended_tid = 4188;
    consumers[0].ended_age = 3200;
    NAMED(consumers[0].ended_thread, "closer");
    CASE("use-after-close")
    return SPOT(USE_AFTER_CLOSE, NOTE_NONE, CALL_rd_kafka_commit);
    CASE("double-close")
    return SPOT(DOUBLE_CLOSE, NOTE_NONE, CALL_rd_kafka_consumer_close);
    consumers[0].ended_call = "rd_kafka_destroy";
    CASE("use-after-destroy")
    return SPOT(USE_AFTER_DESTROY, NOTE_NONE, CALL_rd_kafka_consumer_poll);
    CASE("double-destroy")
    return SPOT(DOUBLE_DESTROY, NOTE_NONE, CALL_rd_kafka_destroy);
    CASE("use-after-fork")
    {
        consumers[0].made_pid = 4001;
        return SPOT(USE_AFTER_FORK, NOTE_NONE, CALL_rd_kafka_consumer_poll);
    }
    CASE("finalizer-destroy")
    return SPOT(FINALIZER_DESTROY, NOTE_NONE, CALL_rd_kafka_destroy);
    CASE("owner-gone")
    return SPOT(OWNER_GONE, NOTE_NONE, CALL_rd_kafka_consumer_poll);
    CASE("callback-escaped")
    return SPOT(CALLBACK_ESCAPED, NOTE_NONE, CALL_rd_kafka_consumer_poll);
    CASE("unclosed-at-exit")
    {
        snap.threads = 0;
        return SPOT(UNCLOSED_AT_EXIT, NOTE_NONE, CALL_COUNT);
    }
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"not-covered", "not-covered-static", "not-covered-hidden"};
        CASE(names[i])
        {
            snap.threads = 0;
            found.consumer = -1;
            found.about = "/srv/app/billing";
            if (i == 1)
                found.reason =
                    "its symbols are stripped; build it without -ldflags -s (-w may stay), or with "
                    "-tags dynamic";
            if (i == 2)
                found.reason = "rd_kafka_destroy cannot be redirected, it is too short";
            return SPOT(NOT_COVERED, i ? COVER_STATIC + i - 1 : NOTE_NONE, CALL_COUNT);
        }
    }
    thread_is(1, 4188, "poller", CALL_rd_kafka_consumer_poll, 700);
    CASE("collision")
    return SPOT(COLLISION, NOTE_NONE, CALL_rd_kafka_pause_partitions);
    CASE("collision-refused")
    return SPOT(COLLISION, COLLISION_REFUSED, CALL_rd_kafka_pause_partitions);
    found.age = 60000;
    CASE("gate-passed")
    return SPOT(GATE_PASSED, NOTE_NONE, CALL_rd_kafka_commit);
    CASE("destroy-drained")
    return SPOT(DESTROY_DRAINED, NOTE_NONE, CALL_rd_kafka_destroy);
    CASE("handle-leaked")
    return SPOT(HANDLE_LEAKED, NOTE_NONE, CALL_rd_kafka_destroy);
    snap.threads = 0;
    for (int destroy = 0; destroy < 2; destroy++) {
        CASE(destroy ? "destroy-stuck-beside" : "close-stuck-beside")
        {
            thread_is(0, 4182, "main", destroy ? CALL_rd_kafka_destroy : CALL_rd_kafka_consumer_close, 30000);
            thread_is(1, 4188, "poller", CALL_rd_kafka_consumer_poll, 31000);
            consumers[0].last_poll = 0, consumers[0].poll_tid = 4188;
            return JUDGED;
        }
        CASE(destroy ? "destroy-stuck-reply" : "close-stuck-reply")
        {
            thread_is(0, 4182, "main", destroy ? CALL_rd_kafka_destroy : CALL_rd_kafka_consumer_close, 30000);
            in_rebalance(0, 29900);
            threads[0].calls = 2;
            threads[0].call[1] = call_of(CALL_rd_kafka_assign, 0, 29900);
            rebalanced(CODE_REVOKE, false, false, 29900);
            return JUDGED;
        }
    }
    CASE("close-stuck-twice")
    {
        thread_is(0, 4182, "main", CALL_rd_kafka_consumer_close, 30000);
        consumers[0].life = CLOSED;
        consumers[0].ended_call = "rd_kafka_consumer_close";
        consumers[0].ended_tid = 4188;
        consumers[0].ended_age = 29000;
        NAMED(consumers[0].ended_thread, "closer");
        return JUDGED;
    }
    return NULL;
}
