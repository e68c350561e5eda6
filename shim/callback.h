/*
 * callback.h: our wrappers around the application's callbacks. While one runs, the gate is lent.
 */
#ifndef RDGATE_CALLBACK_H
#define RDGATE_CALLBACK_H

#include "shim.h"

/* Puts our wrappers into the conf in place of the callbacks that the application has set, and only those; the
 * originals go to the record. */
void callbacks_take(struct consumer *c, rd_kafka_conf_t *conf);
/* Puts the originals back: the conf stays the application's (rd_kafka_new failed, or a copy of a handle's
 * conf). */
void callbacks_give_back(struct consumer *c, const struct library *lib, rd_kafka_conf_t *conf);

/* A rebalance has been handed to the application, which has to answer it. */
void rebalance_delivered(struct consumer *c, rd_kafka_resp_err_t err,
                         const rd_kafka_topic_partition_list_t *partitions, const rd_kafka_event_t *event);

/* The callback given to rd_kafka_consume_callback*; lives on the wrapper's stack. */
struct consume_closure {
    void (*cb)(rd_kafka_message_t *, void *);
    void *opaque;
    struct visit *visit;
};
void callback_consume(rd_kafka_message_t *message, void *closure);

/* The callback given to rd_kafka_commit_queue; lives until it is called. */
typedef void commit_f(rd_kafka_t *, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t *, void *);
struct commit_closure {
    _Atomic int taken;
    commit_f *cb;
    void *opaque;
};
/* A closure, or NULL if all are taken: then the callback goes unwrapped. */
struct commit_closure *commit_closure_new(commit_f *cb, void *opaque);
void commit_closure_free(struct commit_closure *k);
void callback_commit(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *offsets,
                     void *closure);
/* The opaque that the application gave, if this one is a closure of ours; otherwise the same. */
void *commit_opaque(void *opaque);

#endif
