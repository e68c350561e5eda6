/*
 * odd.c: the few calls that a row of calls.def cannot express: birth, death, close, batches, callbacks given
 * with the call, queues, and what must be kept true about last_error and confs. Everything else belongs to a
 * row.
 */
#include "callback.h"
#include "close.h"
#include "fail.h"
#include "lookup.h"
#include "notes.h"
#include "see.h"
#include "shim.h"
#include "watch.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define ASK(name, key_kind, key_pointer, timeout, ...)                                                       \
    struct question q = {.call = CALL_##name,                                                                \
                         .kind = key_kind,                                                                   \
                         .key = key_pointer,                                                                 \
                         .caller = CALLER,                                                                   \
                         .frame = FRAME,                                                                     \
                         .timeout_ms = timeout,                                                              \
                         __VA_ARGS__};                                                                       \
    struct entry e;                                                                                          \
    UNWOUND;                                                                                                 \
    bool in = rdg_in(&e, &q)

static bool acts(void)
{
    return rdg_options.mode != OBSERVE && rdg_options.mode != OFF;
}

/* ------------------------------------------------------------------ polls */

/* A poll brought something. true: it must not be handed out, because its handle is about to be destroyed by a
 * destroy that was called inside a callback of this very poll, and would hang on it. */
bool odd_result(struct entry *e, int call, void *result)
{
    struct consumer *c = e->consumer;
    const struct library *lib = e->lib;
    if (rdg_calls[call].traits & EVENT) {
        rd_kafka_event_t *event = result;
        if (lib->h_rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE)
            rebalance_delivered(c, lib->h_rd_kafka_event_error(event),
                                lib->h_rd_kafka_event_topic_partition_list
                                    ? lib->h_rd_kafka_event_topic_partition_list(event)
                                    : NULL,
                                event);
        if (c->deferred != e->self) {
            ledger_out(c, DEBT_EVENT, event, (uint16_t)call);
            return false;
        }
        lib->rd_kafka_event_destroy(event);
        return true;
    }
    if (c->deferred != e->self || (call != CALL_rd_kafka_consumer_poll &&
                                   call != CALL_rd_kafka_consume_queue && call != CALL_rd_kafka_consume))
        return false;
    ledger_back(result);
    lib->rd_kafka_message_destroy(result);
    return true;
}

/* What a call of kind `noted` has done. */
void odd_note(const struct entry *e, int call, const void *second, long result)
{
    const rd_kafka_topic_partition_list_t *list = second;
    switch (call) {
    case CALL_rd_kafka_subscribe:
        if (!result)
            e->consumer->subscribed = list && list->cnt > 0;
        break;
    case CALL_rd_kafka_unsubscribe: e->consumer->subscribed = false; break;
    /* These leave a reference to each partition in the list, and destroy waits for all of them; position,
     * committed, seek_partitions and offsets_for_times do not (seen on 2.0.2 and 2.15, tests/ledger.bats). */
    case CALL_rd_kafka_assignment:
        if (!result)
            ledger_list(e->consumer, *(void *const *)second, (uint16_t)call);
        break;
    default: ledger_list(e->consumer, list, (uint16_t)call);
    }
}

PUBLIC rd_kafka_message_t *rd_kafka_consume(rd_kafka_topic_t *rkt, int32_t partition, int timeout_ms)
{
    ASK(rd_kafka_consume, TOPIC_KIND, rkt, &timeout_ms, .topic = rkt, .partition = partition);
    if (!in)
        return FAIL_NONE_LE;
    rd_kafka_message_t *r;
    do
        r = e.lib->rd_kafka_consume(rkt, partition, timeout_ms);
    while (e.visit && rdg_again(&e, !r, &timeout_ms));
    if (e.visit) {
        if (r) {
            ledger_message(e.consumer, r, q.call);
            e.outcome = r->err;
        }
        if (r && odd_result(&e, q.call, r))
            r = NULL;
        rdg_out(&e);
    }
    return r;
}

/* A batch that was preempted goes on behind what it already has. */
#define BATCH_LOOP(again)                                                                                    \
    ssize_t got = 0, r;                                                                                      \
    do {                                                                                                     \
        r = e.lib->again;                                                                                    \
        if (r > 0)                                                                                           \
            got += r;                                                                                        \
    } while (e.visit && r >= 0 && (size_t)got < rkmessages_size && rdg_again(&e, true, &timeout_ms));        \
    if (e.visit) {                                                                                           \
        e.empty = got == 0;                                                                                  \
        if (e.consumer->deferred == e.self)                                                                  \
            while (got > 0)                                                                                  \
                e.lib->rd_kafka_message_destroy(rkmessages[--got]);                                          \
        for (ssize_t i = 0; i < got; i++)                                                                    \
            ledger_message(e.consumer, rkmessages[i], q.call);                                               \
        rdg_out(&e);                                                                                         \
    }                                                                                                        \
    return got || r >= 0 ? got : r

PUBLIC ssize_t rd_kafka_consume_batch_queue(rd_kafka_queue_t *rkqu, int timeout_ms,
                                            rd_kafka_message_t **rkmessages, size_t rkmessages_size)
{
    ASK(rd_kafka_consume_batch_queue, QUEUE_KIND, rkqu, &timeout_ms);
    if (!in)
        return FAIL_ZERO;
    BATCH_LOOP(
        rd_kafka_consume_batch_queue(rkqu, timeout_ms, rkmessages + got, rkmessages_size - (size_t)got));
}

PUBLIC ssize_t rd_kafka_consume_batch(rd_kafka_topic_t *rkt, int32_t partition, int timeout_ms,
                                      rd_kafka_message_t **rkmessages, size_t rkmessages_size)
{
    ASK(rd_kafka_consume_batch, TOPIC_KIND, rkt, &timeout_ms, .topic = rkt, .partition = partition);
    if (!in)
        return FAIL_MINUS_LE;
    BATCH_LOOP(
        rd_kafka_consume_batch(rkt, partition, timeout_ms, rkmessages + got, rkmessages_size - (size_t)got));
}

/* Returns the number of messages served; like the real one it goes on only while nothing came. */
#define CALLBACK_LOOP(call)                                                                                  \
    struct consume_closure closure = {consume_cb, commit_opaque, e.visit};                                   \
    void (*cb)(rd_kafka_message_t *, void *) = e.visit ? callback_consume : consume_cb;                      \
    void *opaque = e.visit ? &closure : commit_opaque;                                                       \
    int r;                                                                                                   \
    do                                                                                                       \
        r = e.lib->call;                                                                                     \
    while (e.visit && rdg_again(&e, r == 0, &timeout_ms));                                                   \
    if (e.visit)                                                                                             \
        rdg_out(&e);                                                                                         \
    return r

PUBLIC int rd_kafka_consume_callback_queue(rd_kafka_queue_t *rkqu, int timeout_ms,
                                           void (*consume_cb)(rd_kafka_message_t *, void *),
                                           void *commit_opaque)
{
    ASK(rd_kafka_consume_callback_queue, QUEUE_KIND, rkqu, &timeout_ms);
    if (!in)
        return FAIL_ZERO;
    CALLBACK_LOOP(rd_kafka_consume_callback_queue(rkqu, timeout_ms, cb, opaque));
}

PUBLIC int rd_kafka_consume_callback(rd_kafka_topic_t *rkt, int32_t partition, int timeout_ms,
                                     void (*consume_cb)(rd_kafka_message_t *, void *), void *commit_opaque)
{
    ASK(rd_kafka_consume_callback, TOPIC_KIND, rkt, &timeout_ms, .topic = rkt, .partition = partition);
    if (!in)
        return FAIL_MINUS_LE;
    CALLBACK_LOOP(rd_kafka_consume_callback(rkt, partition, timeout_ms, cb, opaque));
}

/* The gate must know who polls only when told to (gate.c takes_beside), before the first time that he is. */
PUBLIC void rd_kafka_queue_io_event_enable(rd_kafka_queue_t *rkqu, int fd, const void *payload, size_t size)
{
    ASK(rd_kafka_queue_io_event_enable, QUEUE_KIND, rkqu, NULL);
    if (!in)
        return;
    if (e.visit && fd != -1)
        atomic_store(&e.consumer->told_by_event, true);
    e.lib->rd_kafka_queue_io_event_enable(rkqu, fd, payload, size);
    if (e.visit)
        rdg_out(&e);
}

PUBLIC void rd_kafka_queue_cb_event_enable(rd_kafka_queue_t *rkqu,
                                           void (*event_cb)(rd_kafka_t *rk, void *qev_opaque),
                                           void *qev_opaque)
{
    ASK(rd_kafka_queue_cb_event_enable, QUEUE_KIND, rkqu, NULL);
    if (!in)
        return;
    if (e.visit && event_cb)
        atomic_store(&e.consumer->told_by_event, true);
    e.lib->rd_kafka_queue_cb_event_enable(rkqu, event_cb, qev_opaque);
    if (e.visit)
        rdg_out(&e);
}

/* The application wakes its own poll, or its callback asks the poll to return: then the early return is
 * meant. */
PUBLIC void rd_kafka_queue_yield(rd_kafka_queue_t *rkqu)
{
    ASK(rd_kafka_queue_yield, QUEUE_KIND, rkqu, NULL);
    if (!in)
        return;
    struct object *o = e.visit ? object_find(QUEUE_KIND, rkqu) : NULL;
    /* During a close it would reach the queue of the close, which then gives up (gate.c, PREEMPTION). */
    int life = e.consumer ? atomic_load(&e.consumer->life) : OPEN;
    bool carries = o && atomic_load(&o->carries);
    if (carries)
        atomic_store(&e.consumer->app_yield, true);
    if (!(carries && acts() && (life == CLOSING || life == DESTROYING)))
        e.lib->rd_kafka_queue_yield(rkqu);
    if (e.visit)
        rdg_out(&e);
}

PUBLIC void rd_kafka_yield(rd_kafka_t *rk)
{
    ASK(rd_kafka_yield, HANDLE_KIND, rk, NULL);
    if (!in)
        return;
    for (struct visit *v = e.self ? e.self->top : NULL; v; v = v->outer) {
        if (v->consumer == e.consumer && v->class == POLL) {
            v->free_return = true;
            break;
        }
    }
    e.lib->rd_kafka_yield(rk);
    if (e.visit)
        rdg_out(&e);
}

/* ------------------------------------------------------------------ commits */

static void committed(struct entry *e, int code)
{
    e->outcome = code;
    if (e->visit)
        atomic_store_explicit(&e->consumer->committed, atomic_load_explicit(&rdg_tick, memory_order_relaxed),
                              memory_order_relaxed);
}

/* Without waiting for the reply they say success after close, too, and do nothing. */
#define COMMIT(name, what_t, what)                                                                           \
    PUBLIC rd_kafka_resp_err_t name(rd_kafka_t *rk, const what_t *what, int async)                           \
    {                                                                                                        \
        ASK(name, HANDLE_KIND, rk, NULL, .traits = async ? LIES : 0);                                        \
        if (!in)                                                                                             \
            return FAIL_CODE;                                                                                \
        rd_kafka_resp_err_t r = e.lib->name(rk, what, async);                                                \
        committed(&e, r);                                                                                    \
        if (e.visit)                                                                                         \
            rdg_out(&e);                                                                                     \
        return r;                                                                                            \
    }
COMMIT(rd_kafka_commit, rd_kafka_topic_partition_list_t, offsets)
COMMIT(rd_kafka_commit_message, rd_kafka_message_t, rkmessage)

PUBLIC rd_kafka_resp_err_t rd_kafka_commit_queue(rd_kafka_t *rk,
                                                 const rd_kafka_topic_partition_list_t *offsets,
                                                 rd_kafka_queue_t *rkqu, commit_f *cb, void *opaque)
{
    ASK(rd_kafka_commit_queue, HANDLE_KIND, rk, NULL);
    if (!in)
        return FAIL_CODE;
    /* On a queue of the application's own no gate is held while the callback runs. Without a callback the
     * opaque comes back in an event, where it must be the application's. */
    struct commit_closure *k = NULL;
    if (e.visit && cb) {
        struct object *o = rkqu ? object_find(QUEUE_KIND, rkqu) : NULL;
        if (!rkqu || (o && (atomic_load(&o->carries) || o->role == MAIN_QUEUE_ROLE)))
            k = commit_closure_new(cb, opaque);
    }
    rd_kafka_resp_err_t r;
    if (k)
        r = e.lib->rd_kafka_commit_queue(rk, offsets, rkqu, callback_commit, k);
    else
        r = e.lib->rd_kafka_commit_queue(rk, offsets, rkqu, cb, opaque);
    /* An error of the request itself means that nothing was queued; with our own wait the callback has run.
     */
    if (k && rkqu && r)
        commit_closure_free(k);
    committed(&e, r);
    if (e.visit)
        rdg_out(&e);
    return r;
}

PUBLIC void *rd_kafka_event_opaque(rd_kafka_event_t *rkev)
{
    ASK(rd_kafka_event_opaque, 0, NULL, NULL);
    if (!in)
        return FAIL_NONE;
    return commit_opaque(e.lib->rd_kafka_event_opaque(rkev));
}

/* ------------------------------------------------------------------ answers to a rebalance */

/* While a close runs an assignment can only be given up: librdkafka treats every assign as unassign then
 * (2.15 rdkafka_cgrp.c rd_kafka_cgrp_handle_assign_op), and an assign that reaches it late is never answered.
 */
static bool only_unassign(const struct entry *e)
{
    int life = e->visit ? atomic_load(&e->consumer->life) : OPEN;
    return acts() && (life == CLOSING || life == CLOSING_QUEUE || life == DESTROYING) && !e->visit->outer;
}

/* What an application answers when it mixes up what it was told, or the protocol. */
static bool misanswer(const struct consumer *c, int call, int asked,
                      const rd_kafka_topic_partition_list_t *list, int code)
{
    bool some = list && list->cnt > 0;
    if (c->life != OPEN)
        return false;
    if (code == RD_KAFKA_RESP_ERR__STATE)
        return true;
    if (code)
        return false;
    if (asked == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS)
        return (call == CALL_rd_kafka_assign && !list && c->rebalance.partitions > 0) ||
               (call == CALL_rd_kafka_incremental_unassign && some);
    return (call == CALL_rd_kafka_assign || call == CALL_rd_kafka_incremental_assign) && some;
}

/* An answer of the wrong kind (an incremental one under the eager protocol, or the other way round) is
 * refused with __STATE, and the rebalance waits on (librdkafka 2.0.2 rdkafka_cgrp.c rd_kafka_cgrp_op_serve).
 */
static void answered(struct entry *e, const struct question *q, const rd_kafka_topic_partition_list_t *list,
                     int code)
{
    e->outcome = code;
    if (!e->visit)
        return;
    struct consumer *c = e->consumer;
    int asked =
        code == RD_KAFKA_RESP_ERR__STATE ? atomic_load(&c->unanswered) : atomic_exchange(&c->unanswered, 0);
    if (!asked)
        return;
    ledger_answer(c, q->call, list ? list->cnt : -1, code);
    if (misanswer(c, q->call, asked, list, code))
        report_variant(REBALANCE_MISANSWERED,
                       code    ? MISANSWERED_PROTOCOL
                       : !list ? MISANSWERED_NULL
                               : MISANSWERED_LIST,
                       c, q->call, NULL, -1);
}

PUBLIC rd_kafka_resp_err_t rd_kafka_assign(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *partitions)
{
    ASK(rd_kafka_assign, HANDLE_KIND, rk, NULL);
    if (!in)
        return FAIL_CODE;
    rd_kafka_resp_err_t r = e.lib->rd_kafka_assign(rk, only_unassign(&e) ? NULL : partitions);
    answered(&e, &q, partitions, r);
    if (e.visit)
        rdg_out(&e);
    return r;
}

/* In a cooperative group librdkafka takes an assign of nothing only once it has seen the close, which has
 * been admitted and may not have reached it yet. It is asked again, 200 times in as many ms at most. */
static bool give_up(struct entry *e, rd_kafka_t *rk, rd_kafka_error_t **error)
{
    const struct timespec ms = {.tv_nsec = 1000000};
    for (int tries = 0; (e->code = e->lib->rd_kafka_assign(rk, NULL)) == RD_KAFKA_RESP_ERR__STATE; tries++) {
        if (tries == 200)
            return false;
        syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ms,
                NULL); /* no cancellation point, unlike the function */
    }
    e->refused = true;
    *error = rdg_error(e);
    return true;
}

#define INCREMENTAL(name)                                                                                    \
    PUBLIC rd_kafka_error_t *name(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *partitions)         \
    {                                                                                                        \
        ASK(name, HANDLE_KIND, rk, NULL);                                                                    \
        if (!in)                                                                                             \
            return FAIL_OBJECT;                                                                              \
        rd_kafka_error_t *r;                                                                                 \
        if (!only_unassign(&e) || !give_up(&e, rk, &r))                                                      \
            r = e.lib->name(rk, partitions);                                                                 \
        answered(&e, &q, partitions, r ? (int)e.lib->h_rd_kafka_error_code(r) : 0);                          \
        if (e.visit)                                                                                         \
            rdg_out(&e);                                                                                     \
        return r;                                                                                            \
    }
INCREMENTAL(rd_kafka_incremental_assign)
INCREMENTAL(rd_kafka_incremental_unassign)

/* ------------------------------------------------------------------ queues */

PUBLIC rd_kafka_resp_err_t rd_kafka_poll_set_consumer(rd_kafka_t *rk)
{
    ASK(rd_kafka_poll_set_consumer, HANDLE_KIND, rk, NULL);
    if (!in)
        return FAIL_CODE;
    rd_kafka_resp_err_t r = e.lib->rd_kafka_poll_set_consumer(rk);
    e.outcome = r;
    if (!r && e.consumer)
        e.consumer->main_forwarded = true;
    if (e.visit)
        rdg_out(&e);
    return r;
}

struct same_partition {
    struct object *of;
    bool carries;
};

static void forward_one(struct object *o, void *with)
{
    struct same_partition *p = with;
    if (o == p->of || (p->of->partition && o->partition == p->of->partition))
        atomic_store(&o->carries, p->carries);
}

/* Where the consumer queue leads decides which polls are polls of the consumer (DESIGN 3). */
static void forwarded(struct consumer *c, struct object *from, struct object *to)
{
    switch (from->role) {
    case CONSUMER_QUEUE:
        if (to && !atomic_load(&to->carries))
            atomic_store(&to->carries, true);
        break;
    case MAIN_QUEUE_ROLE: c->main_forwarded = to && atomic_load(&to->carries); break;
    case PARTITION_QUEUE: {
        struct same_partition p = {from, to && atomic_load(&to->carries)};
        objects_each(c, forward_one, &p);
        break;
    }
    default: atomic_store(&from->carries, to && atomic_load(&to->carries)); break;
    }
}

PUBLIC void rd_kafka_queue_forward(rd_kafka_queue_t *src, rd_kafka_queue_t *dst)
{
    ASK(rd_kafka_queue_forward, QUEUE_KIND, src, NULL);
    if (!in)
        return;
    struct object *from = object_find(QUEUE_KIND, src), *to = dst ? object_find(QUEUE_KIND, dst) : NULL;
    e.lib->rd_kafka_queue_forward(src, dst);
    if (from && e.consumer)
        forwarded(e.consumer, from, to);
    if (e.visit)
        rdg_out(&e);
}

static uint64_t hash_partition(const char *topic, int32_t partition)
{
    uint64_t h = 1469598103934665603u ^ (uint32_t)partition;
    for (; topic && *topic; topic++)
        h = (h ^ (unsigned char)*topic) * 1099511628211u;
    return h | 1;
}

static rd_kafka_queue_t *queue_is_born(const struct entry *e, rd_kafka_queue_t *rkqu, enum role role,
                                       uint64_t partition, uint16_t call)
{
    if (rkqu && e->consumer && e->consumer->is_consumer) {
        struct object *o = object_born(e->consumer, QUEUE_KIND, rkqu, role, call);
        if (o)
            o->partition = partition;
    }
    return rkqu;
}

#define QUEUE_BIRTH(name, role)                                                                              \
    PUBLIC rd_kafka_queue_t *name(rd_kafka_t *rk)                                                            \
    {                                                                                                        \
        ASK(name, HANDLE_KIND, rk, NULL);                                                                    \
        if (!in)                                                                                             \
            return FAIL_NONE;                                                                                \
        return queue_is_born(&e, e.lib->name(rk), role, 0, q.call);                                          \
    }
QUEUE_BIRTH(rd_kafka_queue_new, PRIVATE_QUEUE)
QUEUE_BIRTH(rd_kafka_queue_get_main, MAIN_QUEUE_ROLE)
QUEUE_BIRTH(rd_kafka_queue_get_sasl, OTHER_QUEUE)
QUEUE_BIRTH(rd_kafka_queue_get_consumer, CONSUMER_QUEUE)
QUEUE_BIRTH(rd_kafka_queue_get_background, OTHER_QUEUE)

PUBLIC rd_kafka_queue_t *rd_kafka_queue_get_partition(rd_kafka_t *rk, const char *topic, int32_t partition)
{
    ASK(rd_kafka_queue_get_partition, HANDLE_KIND, rk, NULL);
    if (!in)
        return FAIL_NONE;
    return queue_is_born(&e, e.lib->rd_kafka_queue_get_partition(rk, topic, partition), PARTITION_QUEUE,
                         hash_partition(topic, partition), q.call);
}

PUBLIC rd_kafka_topic_t *rd_kafka_topic_new(rd_kafka_t *rk, const char *topic, rd_kafka_topic_conf_t *conf)
{
    ASK(rd_kafka_topic_new, HANDLE_KIND, rk, NULL);
    if (!in)
        return FAIL_NONE;
    rd_kafka_topic_t *r = e.lib->rd_kafka_topic_new(rk, topic, conf);
    if (r && e.consumer && e.consumer->is_consumer)
        object_born(e.consumer, TOPIC_KIND, r, OTHER_QUEUE, q.call);
    return r;
}

static bool polls_it_itself(const struct object *o)
{
    for (struct visit *v = rdg_self ? rdg_self->top : NULL; v; v = v->outer)
        if (v->object == o)
            return true;
    return false;
}

/* A queue that the gate does not know: whoever polls it is woken and waited for, as long as any wait may
 * take. */
static void drain_queue(struct consumer *c, struct object *o, rd_kafka_queue_t *rkqu)
{
    int64_t now = now_ns();
    int64_t limit = wait_limit(now);
    while (!polls_it_itself(o)) {
        uint32_t seen = atomic_load(&c->guards_left);
        if (!atomic_load(&o->inside) || (now = now_ns()) >= limit || !c->lib->rd_kafka_queue_yield)
            break;
        c->lib->rd_kafka_queue_yield(rkqu);
        int64_t again = now + 100 * 1000000LL; /* another poll may have taken the flag */
        futex_wait(&c->guards_left, seen, again < limit ? again : limit, 0);
    }
}

PUBLIC void rd_kafka_queue_destroy(rd_kafka_queue_t *rkqu)
{
    struct object *o = object_find(QUEUE_KIND, rkqu);
    struct consumer *c = o ? o->consumer : NULL;
    if (c && !o->dead && acts() && !c->forked && library_inside(CALLER) != c->lib) {
        bool guard = c->life < DESTROYING && queue_is_alien(c, o) && guard_enter(c);
        if (guard || c->life >= DESTROYING) {
            /* A reference may outlive its handle: the queue is disabled and only freed here (librdkafka 2.15
             * rdkafka_queue.c rd_kafka_queue_destroy looks at nothing of the handle). */
            object_gone(o);
            if (guard)
                drain_queue(c, o, rkqu);
            c->lib->rd_kafka_queue_destroy(rkqu);
            if (guard)
                guard_leave(c);
            return;
        }
    }
    ASK(rd_kafka_queue_destroy, QUEUE_KIND, rkqu, NULL);
    if (!in)
        return;
    if (e.visit)
        object_gone(o);
    e.lib->rd_kafka_queue_destroy(rkqu);
    if (e.visit)
        rdg_out(&e);
}

PUBLIC void rd_kafka_topic_destroy(rd_kafka_topic_t *rkt)
{
    struct object *o = object_find(TOPIC_KIND, rkt);
    ASK(rd_kafka_topic_destroy, TOPIC_KIND, rkt, NULL);
    if (!in)
        return;
    if (o && e.visit)
        object_gone(o);
    e.lib->rd_kafka_topic_destroy(rkt);
    if (e.visit)
        rdg_out(&e);
}

/* ------------------------------------------------------------------ close */

/* Close or destroy is about to wait for what the application owes. A rebalance that is still in its callback
 * may yet be answered. */
static void begins_to_end(const struct entry *e, const struct question *q)
{
    struct consumer *c = e->consumer;
    bool death = rdg_calls[q->call].class == DEATH;
    if (c->life == CLOSED && !death)
        return;
    struct seen_consumer seen;
    see_consumer(c, &seen, now_ns() / 1000000);
    if (c->life == CLOSED || (!seen.rebalance.returned && !seen.rebalance.by_event))
        seen.rebalance.code = 0; /* done with, or still in its callback */
    enum note owes = verdict_owes(&seen, death);
    if (owes != OWES_NOTHING)
        report_variant(CLOSE_DEBT, owes, c, q->call, NULL, -1);
    if (death && !c->closed_by_us && e->self && c->made_by != e->self->id && !ledger_has_polled(c, e->self))
        report(FINALIZER_DESTROY, c, q->call, NULL, -1);
}

static bool really_closed(const struct entry *e, rd_kafka_t *rk)
{
    return e->lib->rd_kafka_consumer_closed && e->lib->rd_kafka_consumer_closed(rk);
}

/* RDGATE_CLOSE_MS counts the wait at the gate, too. */
static int *close_limit(const rd_kafka_t *rk, int *limit_ms)
{
    struct object *o = rdg_options.close_ms ? object_find(HANDLE_KIND, rk) : NULL;
    if (!o || !close_is_bounded(o->consumer))
        return NULL;
    *limit_ms = (int)rdg_options.close_ms;
    return limit_ms;
}

PUBLIC rd_kafka_resp_err_t rd_kafka_consumer_close(rd_kafka_t *rk)
{
    int limit_ms = -1;
    ASK(rd_kafka_consumer_close, HANDLE_KIND, rk, close_limit(rk, &limit_ms));
    if (!in) {
        if (limit_ms > 0 && e.code == RD_KAFKA_RESP_ERR__TIMED_OUT)
            close_given_up(e.consumer, q.call, limit_ms);
        return FAIL_CODE;
    }
    if (e.visit && e.consumer->life == CLOSED && e.consumer->closed_by_us && !e.consumer->given_up)
        report_once(DOUBLE_CLOSE, e.consumer, q.call, NULL, -1);
    if (e.visit)
        begins_to_end(&e, &q);
    rd_kafka_resp_err_t r = e.visit && close_is_bounded(e.consumer)
                                ? close_within(e.consumer, q.call, limit_ms)
                                : e.lib->rd_kafka_consumer_close(rk);
    if (e.visit) {
        e.outcome = r;
        gate_closed(e.visit, r, really_closed(&e, rk), false);
        rdg_out(&e);
    }
    return r;
}

PUBLIC rd_kafka_error_t *rd_kafka_consumer_close_queue(rd_kafka_t *rk, rd_kafka_queue_t *rkqu)
{
    ASK(rd_kafka_consumer_close_queue, HANDLE_KIND, rk, NULL);
    if (!in)
        return FAIL_OBJECT;
    if (e.visit)
        begins_to_end(&e, &q);
    rd_kafka_error_t *r = e.lib->rd_kafka_consumer_close_queue(rk, rkqu);
    if (e.visit) {
        struct object *o = object_find(QUEUE_KIND, rkqu);
        if (o && !r)
            atomic_store(&o->carries, true);
        e.outcome = rdg_code(&e, r);
        gate_closed(e.visit, e.outcome, really_closed(&e, rk), true);
        rdg_out(&e);
    }
    return r;
}

PUBLIC int rd_kafka_consumer_closed(rd_kafka_t *rk)
{
    ASK(rd_kafka_consumer_closed, HANDLE_KIND, rk, NULL);
    if (!in)
        return FAIL_ONE;
    int r = e.lib->rd_kafka_consumer_closed(rk);
    if (e.visit) {
        if (r)
            gate_is_closed(e.consumer);
        else if (acts() && e.consumer->close_failed)
            r = 1; /* otherwise while (!closed) never ends (confluent-kafka-go #1588) */
        rdg_out(&e);
    }
    return r;
}

/* ------------------------------------------------------------------ birth and death of handles */

static int number_in(const struct library *lib, const rd_kafka_conf_t *conf, const char *name)
{
    char text[32] = "";
    size_t size = sizeof(text);
    int n = 0;
    if (lib->h_rd_kafka_conf_get(conf, name, text, &size) == RD_KAFKA_CONF_OK)
        for (const char *p = text; *p >= '0' && *p <= '9'; p++)
            n = n * 10 + (*p - '0');
    return n;
}

static rd_kafka_t *give_birth(const struct library *lib, rd_kafka_type_t type, rd_kafka_conf_t *conf,
                              char *errstr, size_t errstr_size)
{
    struct consumer *c = rdg_options.mode == OFF ? NULL : handle_expected(lib);
    if (!c)
        return lib->rd_kafka_new(type, conf, errstr, errstr_size);
    if (type == RD_KAFKA_CONSUMER) {
        ledger_start();
        if (conf)
            callbacks_take(c, conf);
    }
    rd_kafka_t *rk = lib->rd_kafka_new(type, conf, errstr, errstr_size);
    int saved = errno;
    if (!rk && type == RD_KAFKA_CONSUMER && conf)
        callbacks_give_back(c, lib, conf);
    if (rk && type == RD_KAFKA_CONSUMER) {
        c->conf = lib->rd_kafka_conf(rk);
        c->max_poll_ms = number_in(lib, c->conf, "max.poll.interval.ms");
        strncat(c->name, lib->rd_kafka_name(rk), sizeof(c->name) - 1);
        char text[64] = "";
        size_t size = sizeof(text);
        if (lib->h_rd_kafka_conf_get(c->conf, "partition.assignment.strategy", text, &size) ==
            RD_KAFKA_CONF_OK)
            c->cooperative = strstr(text, "cooperative") != NULL;
        size = sizeof(c->group);
        if (lib->h_rd_kafka_conf_get(c->conf, "group.id", c->group, &size) != RD_KAFKA_CONF_OK)
            c->group[0] = 0;
        if (lib->rd_kafka_queue_get_consumer)
            c->consumer_queue = lib->rd_kafka_queue_get_consumer(rk);
    }
    if (rk && type == RD_KAFKA_CONSUMER) {
        const struct self *s = self_get(); /* it may be this thread's first call */
        if (s) {
            c->made_by = s->id;
            c->made_tid = s->tid;
        }
        c->made_at = c->polls_since = now_ns() / 1000000;
    }
    handle_arrived(c, rk, type == RD_KAFKA_CONSUMER);
    if (rk && type == RD_KAFKA_CONSUMER) {
        flight_born(c, CALL_rd_kafka_new);
        watch_start();
    }
    errno = saved;
    return rk;
}

PUBLIC rd_kafka_t *rd_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *errstr, size_t errstr_size)
{
    ASK(rd_kafka_new, 0, NULL, NULL);
    if (!in)
        return FAIL_NONE;
    if (library_inside(q.caller) == e.lib) /* the inner handle of a share consumer */
    {
        atomic_fetch_add(&rdg_uncounted, 1);
        return e.lib->rd_kafka_new(type, conf, errstr, errstr_size);
    }
    return give_birth(e.lib, type, conf, errstr, errstr_size);
}

/* Two hangs of librdkafka's destroy that need not be (seen on 2.0.2 and 2.15, tests/destroy.bats and
 * close.bats). */
static void mend_destroy(struct consumer *c, rd_kafka_t *rk, int *call, int *flags)
{
    const struct library *lib = c->lib;
    /* After a fatal error close is refused (rdkafka.c rd_kafka_consumer_close_q), and destroy waits for a
     * group that nobody has told to end. */
    if (lib->rd_kafka_destroy_flags && lib->rd_kafka_fatal_error && lib->rd_kafka_fatal_error(rk, NULL, 0)) {
        *flags = (*call == CALL_rd_kafka_destroy_flags ? *flags : 0) | RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE;
        *call = CALL_rd_kafka_destroy_flags;
    }
    /* closed() may become 1 while the queue still holds what the application need not poll for any more; an
     * op among it holds a partition, and destroy waits for that. */
    if (c->closed_by_queue && c->consumer_queue) {
        rd_kafka_event_t *event;
        for (int i = 0; i < 100000 && (event = lib->rd_kafka_queue_poll(c->consumer_queue, 0)); i++)
            lib->rd_kafka_event_destroy(event);
    }
}

/* The gate is open for this thread alone: nobody is inside, nobody comes. */
static void really_destroy(struct entry *e, rd_kafka_t *rk, int call, int flags)
{
    struct consumer *c = e->consumer;
    const struct library *lib = e->lib;
    if (c->private_queue)
        lib->rd_kafka_queue_destroy(c->private_queue);
    if (acts())
        mend_destroy(c, rk, &call, &flags);
    if (call == CALL_rd_kafka_destroy_flags)
        lib->rd_kafka_destroy_flags(rk, flags);
    else
        lib->rd_kafka_destroy(rk);
    if (c->consumer_queue)
        lib->rd_kafka_queue_destroy(c->consumer_queue);
    c->private_queue = c->consumer_queue = NULL;
}

struct woken {
    rd_kafka_queue_t *queue[16];
    int count;
};

static void polled(struct object *o, void *with)
{
    struct woken *w = with;
    if (atomic_load(&o->inside) && w->count < 16)
        w->queue[w->count++] = (rd_kafka_queue_t *)(o->key & ~(uintptr_t)3);
}

/* The guards, too, must be out. Polls among them are woken. false: they are not, within the limit. */
static bool drain_guards(struct entry *e, rd_kafka_t *rk, int64_t since)
{
    struct consumer *c = e->consumer;
    int64_t limit = wait_limit(since);
    for (;;) {
        uint32_t seen = atomic_load(&c->guards_left);
        e->visit->draining = atomic_load(&c->guards) != 0;
        if (!e->visit->draining)
            return true;
        int64_t now = now_ns();
        if (now >= limit || atomic_load(&e->visit->let_go))
            return false;
        if (e->lib->rd_kafka_queue_yield) {
            struct woken w = {.count = 0};
            objects_each(c, polled, &w);
            for (int i = 0; i < w.count; i++)
                e->lib->rd_kafka_queue_yield(w.queue[i]);
            rd_kafka_queue_t *main_queue = e->lib->rd_kafka_queue_get_main(rk);
            e->lib->rd_kafka_queue_yield(main_queue);
            e->lib->rd_kafka_queue_destroy(main_queue);
        }
        int64_t again = now + 100 * 1000000LL;
        futex_wait(&c->guards_left, seen, again < limit ? again : limit, 0);
    }
}

static void destroy(struct entry *e, const struct question *q, rd_kafka_t *rk, int flags)
{
    struct consumer *c = e->consumer;
    struct visit *v = e->visit;
    int call = q->call;
    int64_t began = v->since ? v->since : now_ns();
    begins_to_end(e, q);
    if (!acts()) {
        really_destroy(e, rk, call, flags);
    } else if (drain_guards(e, rk, began)) {
        if (v->since)
            report(DESTROY_DRAINED, c, call, NULL, (now_ns() - began) / 1000000);
        if (close_for_destroy(c, call, flags))
            really_destroy(e, rk, call, flags);
        else
            report_variant(DESTROY_STUCK, DESTROY_LEFT_ALONE, c, call, NULL, (now_ns() - began) / 1000000);
    } else {
        report(HANDLE_LEAKED, c, call, NULL, (now_ns() - began) / 1000000);
    }
    gate_destroyed(c, call);
    rdg_out(e);
    ledger_close(c);
    handle_gone(c);
    watch_consumer_gone();
}

/* Called inside a callback of the same handle: the frames that we return to are still inside librdkafka, so
 * the handle dies when the outermost of them has returned (rdg_out). */
static bool put_off(const rd_kafka_t *rk, const void *caller, int flags)
{
    struct object *o = object_find(HANDLE_KIND, rk);
    struct consumer *c = o ? o->consumer : NULL;
    struct self *s = rdg_self;
    if (!c || !s || !s->top || !acts() || c->forked || c->life >= DESTROYING ||
        library_inside(caller) == c->lib)
        return false;
    for (struct visit *v = s->top; v; v = v->outer) {
        if (v->consumer != c)
            continue;
        if (!atomic_load(&v->window))
            return false; /* librdkafka itself */
        gate_put_off(c, flags);
        return true;
    }
    return false;
}

/* The gate did not let the destroy in. */
static void not_destroyed(const struct entry *e, const struct question *q, int64_t began)
{
    struct consumer *c = e->consumer;
    if (!c || c->forked)
        return;
    if (c->life < DESTROYING) {
        /* Nobody could be made to leave within the limit: a leak beats a crash. */
        report(HANDLE_LEAKED, c, q->call, c->inside, (now_ns() - began) / 1000000);
        gate_destroyed(c, q->call);
        handle_gone(c);
        watch_consumer_gone();
    } else {
        report_once(DOUBLE_DESTROY, c, q->call, NULL, -1);
    }
}

#define NO_FLAGS (-1)

void odd_deferred_destroy(struct consumer *c)
{
    int flags = c->deferred_flags;
    rd_kafka_t *rk = c->rk;
    c->deferred = NULL; /* the destroy itself takes the gate next */
    if (flags == NO_FLAGS)
        rd_kafka_destroy(rk);
    else
        rd_kafka_destroy_flags(rk, flags);
}

#define DESTROY(name, flags, ...)                                                                            \
    PUBLIC void name(__VA_ARGS__)                                                                            \
    {                                                                                                        \
        if (put_off(rk, CALLER, flags))                                                                      \
            return;                                                                                          \
        int64_t began = now_ns();                                                                            \
        ASK(name, HANDLE_KIND, rk, NULL);                                                                    \
        if (!in) {                                                                                           \
            not_destroyed(&e, &q, began);                                                                    \
            return;                                                                                          \
        }                                                                                                    \
        if (e.visit) {                                                                                       \
            destroy(&e, &q, rk, flags);                                                                      \
            return;                                                                                          \
        }                                                                                                    \
        if (e.consumer && !e.consumer->is_consumer && library_inside(q.caller) != e.lib)                     \
            handle_forget(e.consumer);                                                                       \
        if (q.call == CALL_rd_kafka_destroy_flags)                                                           \
            e.lib->rd_kafka_destroy_flags(rk, flags);                                                        \
        else                                                                                                 \
            e.lib->rd_kafka_destroy(rk);                                                                     \
    }
DESTROY(rd_kafka_destroy, NO_FLAGS, rd_kafka_t *rk)
DESTROY(rd_kafka_destroy_flags, flags, rd_kafka_t *rk, int flags)

/* ------------------------------------------------------------------ what the application gives back */

/* Of a thing that the ledger does not know, only the caller tells whose it is. */
static const struct library *whose(const struct consumer *c, const void *caller)
{
    const struct library *lib = c ? c->lib : NULL;
    return lib ? lib : library_called(caller);
}

static void event_back(const struct library *lib, rd_kafka_event_t *rkev)
{
    struct consumer *c = ledger_back_other(DEBT_EVENT, rkev);
    if (c)
        ledger_rebalance_returned(c, rkev);
    lib->rd_kafka_event_destroy(rkev);
}

static rd_kafka_topic_partition_list_t *list_copied(const struct library *lib,
                                                    const rd_kafka_topic_partition_list_t *src)
{
    rd_kafka_topic_partition_list_t *copy = lib->rd_kafka_topic_partition_list_copy(src);
    struct consumer *c = ledger_owner(src);
    if (c && copy)
        ledger_list(c, copy, CALL_rd_kafka_topic_partition_list_copy);
    return copy;
}

#define GIVEN_BACK(name, type, thing, back)                                                                  \
    PUBLIC void name(type *thing)                                                                            \
    {                                                                                                        \
        const struct library *lib = whose(back, CALLER);                                                     \
        if (lib && lib->name)                                                                                \
            lib->name(thing);                                                                                \
    }
GIVEN_BACK(rd_kafka_message_destroy, rd_kafka_message_t, rkmessage, ledger_back(rkmessage))
GIVEN_BACK(rd_kafka_topic_partition_list_destroy, rd_kafka_topic_partition_list_t, rkparlist,
           ledger_back_other(DEBT_LIST, rkparlist))

PUBLIC void rd_kafka_event_destroy(rd_kafka_event_t *rkev)
{
    const struct library *lib = whose(ledger_owner(rkev), CALLER);
    if (lib && lib->rd_kafka_event_destroy)
        event_back(lib, rkev);
}

PUBLIC rd_kafka_topic_partition_list_t *
rd_kafka_topic_partition_list_copy(const rd_kafka_topic_partition_list_t *src)
{
    const struct library *lib = whose(ledger_owner(src), CALLER);
    return lib && lib->rd_kafka_topic_partition_list_copy ? list_copied(lib, src) : FAIL_NONE;
}

/* ------------------------------------------------------------------ state of the thread and of confs */

static rd_kafka_resp_err_t last_error(const struct library *lib)
{
    struct self *s = rdg_self;
    rd_kafka_resp_err_t now = lib->rd_kafka_last_error();
    if (s && s->last_set && now == s->last_real)
        return s->last_error;
    return now;
}

PUBLIC rd_kafka_resp_err_t rd_kafka_last_error(void)
{
    const struct library *lib = library_called(CALLER);
    return lib ? last_error(lib) : RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED;
}

struct owner {
    const rd_kafka_conf_t *conf;
    struct consumer *found;
};

static void conf_of(struct consumer *c, void *with)
{
    struct owner *o = with;
    if (c->conf == o->conf)
        o->found = c;
}

/* A copy of a handle's own conf holds our wrappers; whoever makes a handle of it means his callbacks. */
static rd_kafka_conf_t *cleaned(const struct library *lib, const rd_kafka_conf_t *from, rd_kafka_conf_t *copy)
{
    struct owner o = {from, NULL};
    if (from && copy)
        consumers_each(conf_of, &o);
    if (o.found)
        callbacks_give_back(o.found, lib, copy);
    return copy;
}

PUBLIC rd_kafka_conf_t *rd_kafka_conf_dup(const rd_kafka_conf_t *conf)
{
    ASK(rd_kafka_conf_dup, 0, NULL, NULL);
    if (!in)
        return FAIL_NONE;
    return cleaned(e.lib, conf, e.lib->rd_kafka_conf_dup(conf));
}

PUBLIC rd_kafka_conf_t *rd_kafka_conf_dup_filter(const rd_kafka_conf_t *conf, size_t filter_cnt,
                                                 const char **filter)
{
    ASK(rd_kafka_conf_dup_filter, 0, NULL, NULL);
    if (!in)
        return FAIL_NONE;
    return cleaned(e.lib, conf, e.lib->rd_kafka_conf_dup_filter(conf, filter_cnt, filter));
}

/* ------------------------------------------------------------------ entries for callers who came through
 * dlsym */

#define FOR_LIBRARIES(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

#define X(i)                                                                                                 \
    static rd_kafka_t *new_##i(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *errstr, size_t size)       \
    {                                                                                                        \
        if (!rdg_awake)                                                                                      \
            shim_awake();                                                                                    \
        if (library_owns(library_at(i), CALLER)) /* the inner handle of a share consumer */                  \
            return library_at(i)->rd_kafka_new(type, conf, errstr, size);                                    \
        return give_birth(library_at(i), type, conf, errstr, size);                                          \
    }                                                                                                        \
    static rd_kafka_resp_err_t last_##i(void)                                                                \
    {                                                                                                        \
        return last_error(library_at(i));                                                                    \
    }                                                                                                        \
    static rd_kafka_conf_t *dup_##i(const rd_kafka_conf_t *conf)                                             \
    {                                                                                                        \
        return cleaned(library_at(i), conf, library_at(i)->rd_kafka_conf_dup(conf));                         \
    }                                                                                                        \
    static rd_kafka_conf_t *dup_filter_##i(const rd_kafka_conf_t *conf, size_t n, const char **filter)       \
    {                                                                                                        \
        return cleaned(library_at(i), conf, library_at(i)->rd_kafka_conf_dup_filter(conf, n, filter));       \
    }                                                                                                        \
    static void *event_##i(rd_kafka_event_t *rkev)                                                           \
    {                                                                                                        \
        return commit_opaque(library_at(i)->rd_kafka_event_opaque(rkev));                                    \
    }                                                                                                        \
    static void message_##i(rd_kafka_message_t *m)                                                           \
    {                                                                                                        \
        ledger_back(m);                                                                                      \
        library_at(i)->rd_kafka_message_destroy(m);                                                          \
    }                                                                                                        \
    static void event_back_##i(rd_kafka_event_t *rkev)                                                       \
    {                                                                                                        \
        event_back(library_at(i), rkev);                                                                     \
    }                                                                                                        \
    static void list_##i(rd_kafka_topic_partition_list_t *list)                                              \
    {                                                                                                        \
        ledger_back_other(DEBT_LIST, list);                                                                  \
        library_at(i)->rd_kafka_topic_partition_list_destroy(list);                                          \
    }                                                                                                        \
    static rd_kafka_topic_partition_list_t *copy_##i(const rd_kafka_topic_partition_list_t *list)            \
    {                                                                                                        \
        return list_copied(library_at(i), list);                                                             \
    }
FOR_LIBRARIES(X)
#undef X

void *odd_entry(int call, int library)
{
#define X(i)                                                                                                 \
    {                                                                                                        \
        (void *)new_##i,        (void *)last_##i,  (void *)dup_##i,                                          \
        (void *)dup_filter_##i, (void *)event_##i, (void *)message_##i,                                      \
        (void *)event_back_##i, (void *)list_##i,  (void *)copy_##i},
    static void *const entries[][9] = {FOR_LIBRARIES(X)};
#undef X
    if (library >= (int)(sizeof(entries) / sizeof(*entries)))
        return NULL;
    switch (call) {
    case CALL_rd_kafka_new: return entries[library][0];
    case CALL_rd_kafka_last_error: return entries[library][1];
    case CALL_rd_kafka_conf_dup: return entries[library][2];
    case CALL_rd_kafka_conf_dup_filter: return entries[library][3];
    case CALL_rd_kafka_event_opaque: return entries[library][4];
    case CALL_rd_kafka_message_destroy: return entries[library][5];
    case CALL_rd_kafka_event_destroy: return entries[library][6];
    case CALL_rd_kafka_topic_partition_list_destroy: return entries[library][7];
    case CALL_rd_kafka_topic_partition_list_copy: return entries[library][8];
    default: return NULL;
    }
}

/* ------------------------------------------------------------------ cancellation */

struct target {
    pthread_t thread;
    bool woken;
};

static void try_wake(struct self *s, void *with)
{
    struct target *t = with;
    if (!t->woken && pthread_equal(s->thread, t->thread))
        t->woken = gate_cancel_poll(s);
}

/* A thread cancelled inside a poll would leave librdkafka's queue locked for good: it is woken first and
 * cancels itself on the way out. */
PUBLIC int pthread_cancel(pthread_t thread)
{
    struct target t = {thread, false};
    if (rdg_awake && !pthread_equal(thread, pthread_self()))
        self_each(try_wake, &t);
    return t.woken ? 0 : real_pthread_cancel(thread);
}
