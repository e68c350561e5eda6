/*
 * callback.c: wraps the application's callbacks, so that the gate knows when its owner is in the
 * application's code (DESIGN 3, Lending). It must never install a wrapper where the application set nothing,
 * and never change what the application's callback sees.
 */
#include "callback.h"

#include <stdlib.h>
#include <string.h>

/* The call of this thread inside which the callback runs; NULL on librdkafka's own threads. */
static struct visit *window(const struct consumer *c, enum callback which)
{
    struct self *s = rdg_self;
    struct visit *v = s ? s->top : NULL;
    while (v && v->consumer != c)
        v = v->outer;
    if (v)
        gate_window_begins(v, which);
    return v;
}

static void shut(struct visit *v)
{
    if (v)
        gate_window_ends(v);
}

struct search {
    enum callback which;
    void *found;
};

static void any_with(struct consumer *c, void *with)
{
    struct search *s = with;
    if (c->callbacks[s->which])
        s->found = c->callbacks[s->which];
}

/* What the application set. Every handle whose conf holds our wrapper has a record; should it be lost,
 * another handle's callback of the same kind is the next best, and nothing the last. */
static void *original(struct consumer *c, enum callback which)
{
    if (c && c->callbacks[which])
        return c->callbacks[which];
    struct search s = {which, NULL};
    consumers_each(any_with, &s);
    return s.found;
}

void rebalance_delivered(struct consumer *c, rd_kafka_resp_err_t err,
                         const rd_kafka_topic_partition_list_t *partitions, const rd_kafka_event_t *event)
{
    if (err != RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS && err != RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS)
        return;
    ledger_rebalance(c, err, partitions ? partitions->cnt : -1, event);
    atomic_store(&c->unanswered, err);
}

static void on_rebalance_cb(rd_kafka_t *rk, rd_kafka_resp_err_t err,
                            rd_kafka_topic_partition_list_t *partitions, void *opaque)
{
    struct consumer *c = consumer_of(rk);
    void (*cb)(rd_kafka_t *, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t *, void *) =
        original(c, CB_rebalance_cb);
    if (c)
        rebalance_delivered(c, err, partitions, NULL);
    struct visit *v = window(c, CB_rebalance_cb);
    if (cb)
        cb(rk, err, partitions, opaque);
    if (c)
        ledger_rebalance_returned(c, NULL);
    shut(v);
}

static void on_offset_commit_cb(rd_kafka_t *rk, rd_kafka_resp_err_t err,
                                rd_kafka_topic_partition_list_t *offsets, void *opaque)
{
    struct consumer *c = consumer_of(rk);
    void (*cb)(rd_kafka_t *, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t *, void *) =
        original(c, CB_offset_commit_cb);
    struct visit *v = window(c, CB_offset_commit_cb);
    if (cb)
        cb(rk, err, offsets, opaque);
    shut(v);
}

static int on_stats_cb(rd_kafka_t *rk, char *json, size_t json_len, void *opaque)
{
    struct consumer *c = consumer_of(rk);
    int (*cb)(rd_kafka_t *, char *, size_t, void *) = original(c, CB_stats_cb);
    struct visit *v = window(c, CB_stats_cb);
    int r = cb ? cb(rk, json, json_len, opaque) : 0;
    shut(v);
    return r;
}

static void on_error_cb(rd_kafka_t *rk, int err, const char *reason, void *opaque)
{
    struct consumer *c = consumer_of(rk);
    void (*cb)(rd_kafka_t *, int, const char *, void *) = original(c, CB_error_cb);
    struct visit *v = window(c, CB_error_cb);
    if (cb)
        cb(rk, err, reason, opaque);
    shut(v);
}

static void on_throttle_cb(rd_kafka_t *rk, const char *broker_name, int32_t broker_id, int throttle_time_ms,
                           void *opaque)
{
    struct consumer *c = consumer_of(rk);
    void (*cb)(rd_kafka_t *, const char *, int32_t, int, void *) = original(c, CB_throttle_cb);
    struct visit *v = window(c, CB_throttle_cb);
    if (cb)
        cb(rk, broker_name, broker_id, throttle_time_ms, opaque);
    shut(v);
}

static void on_oauthbearer_token_refresh_cb(rd_kafka_t *rk, const char *config, void *opaque)
{
    struct consumer *c = consumer_of(rk);
    void (*cb)(rd_kafka_t *, const char *, void *) = original(c, CB_oauthbearer_token_refresh_cb);
    struct visit *v = window(c, CB_oauthbearer_token_refresh_cb);
    if (cb)
        cb(rk, config, opaque);
    shut(v);
}

/* The only one that is not told its handle: it runs inside a poll of this thread. */
static void on_consume_cb(rd_kafka_message_t *message, void *opaque)
{
    struct visit *v = rdg_self ? rdg_self->top : NULL;
    struct consumer *c = v ? v->consumer : NULL;
    void (*cb)(rd_kafka_message_t *, void *) = original(c, CB_consume_cb);
    if (v)
        gate_window_begins(v, CB_consume_cb);
    if (cb)
        cb(message, opaque);
    shut(v);
}

/* Internal properties of pointer type read back as "%p" (librdkafka 2.15 rdkafka_conf.c rd_kafka_conf_get0).
 */
static void *pointer_in(const struct library *lib, rd_kafka_conf_t *conf, const char *name)
{
    char text[32] = "";
    size_t size = sizeof(text);
    if (lib->h_rd_kafka_conf_get(conf, name, text, &size) != RD_KAFKA_CONF_OK)
        return NULL;
    return (void *)(uintptr_t)strtoull(text, NULL, 16);
}

void callbacks_take(struct consumer *c, rd_kafka_conf_t *conf)
{
    const struct library *lib = c->lib;
    void *set;
#define TAKE(name)                                                                                           \
    set = lib->h_rd_kafka_conf_set_##name ? pointer_in(lib, conf, #name) : NULL;                             \
    if (set && set != (void *)on_##name) {                                                                   \
        c->callbacks[CB_##name] = set;                                                                       \
        lib->h_rd_kafka_conf_set_##name(conf, on_##name);                                                    \
    }
    FOR_CALLBACKS(TAKE)
}

void callbacks_give_back(struct consumer *c, const struct library *lib, rd_kafka_conf_t *conf)
{
#define GIVE(name)                                                                                           \
    if (c->callbacks[CB_##name])                                                                             \
        lib->h_rd_kafka_conf_set_##name(conf, c->callbacks[CB_##name]);
    FOR_CALLBACKS(GIVE)
}

void callback_consume(rd_kafka_message_t *message, void *closure)
{
    struct consume_closure *k = closure;
    gate_window_begins(k->visit, CB_consume_cb);
    k->cb(message, k->opaque);
    gate_window_ends(k->visit);
}

#define CLOSURES 1024
static struct commit_closure closures[CLOSURES];
static _Atomic unsigned next_closure;

struct commit_closure *commit_closure_new(commit_f *cb, void *opaque)
{
    unsigned from = atomic_load_explicit(&next_closure, memory_order_relaxed);
    for (unsigned i = 0; i < CLOSURES; i++) {
        struct commit_closure *k = &closures[(from + i) % CLOSURES];
        int free = 0;
        if (k->taken || !atomic_compare_exchange_strong(&k->taken, &free, 1))
            continue;
        atomic_store_explicit(&next_closure, from + i + 1, memory_order_relaxed);
        k->cb = cb;
        k->opaque = opaque;
        return k;
    }
    return NULL;
}

void commit_closure_free(struct commit_closure *k)
{
    atomic_store(&k->taken, 0);
}

void callback_commit(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *offsets,
                     void *closure)
{
    struct commit_closure *k = closure;
    commit_f *cb = k->cb;
    void *opaque = k->opaque;
    commit_closure_free(k);
    struct visit *v = window(consumer_of(rk), CB_offset_commit_cb);
    cb(rk, err, offsets, opaque);
    shut(v);
}

void *commit_opaque(void *opaque)
{
    struct commit_closure *k = opaque;
    return k >= closures && k < closures + CLOSURES ? k->opaque : opaque;
}
