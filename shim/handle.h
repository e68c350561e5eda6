/*
 * handle.h: from the addresses that applications pass (rd_kafka_t, queue, topic) to our record of the
 * consumer. Lookups take no lock and never wait. Addresses of the dead stay known (tombstones) until the
 * address is born again or the tombstone is old.
 */
#ifndef RDGATE_HANDLE_H
#define RDGATE_HANDLE_H

#include "gate.h"

enum kind { HANDLE_KIND = 1, QUEUE_KIND = 2, TOPIC_KIND = 3 };

enum role {
    CONSUMER_QUEUE,
    MAIN_QUEUE_ROLE,
    PARTITION_QUEUE,
    PRIVATE_QUEUE, /* queue_new */
    OTHER_QUEUE,   /* background, sasl */
};

/* A handle, queue or topic that the application can name. */
struct object {
    _Atomic uintptr_t key; /* address | kind */
    _Atomic(struct consumer *) consumer;
    _Atomic(struct object *) next; /* in its bucket */
    struct object *sibling;        /* of the same consumer */
    struct object *younger;        /* among tombstones, or the free ones */
    uint8_t role;
    _Atomic bool carries; /* polling it is polling the consumer queue */
    _Atomic bool dead;
    int references;     /* topic: how many topic_new */
    _Atomic int inside; /* polls on it that are no business of the gate */
    uint64_t partition; /* PARTITION_QUEUE: hash of topic and partition */
    /* Who got it, for the ledger. */
    int tid;
    uint16_t call;
    int64_t born; /* rdg_tick */
};

#define BUCKETS 2048
struct bucket {
    _Atomic uint32_t sequence;
    _Atomic(struct object *) first;
};
extern struct bucket rdg_buckets[BUCKETS];

static inline struct bucket *bucket_of(uintptr_t key)
{
    return &rdg_buckets[(uint64_t)key * 0x9e3779b97f4a7c15u >> 53];
}

/* Polling this queue is no business of the gate: nothing of the consumer queue reaches it. */
static inline bool queue_is_alien(const struct consumer *c, const struct object *o)
{
    return !atomic_load(&o->carries) && !(o->role == MAIN_QUEUE_ROLE && c->main_forwarded);
}

struct object *object_search(uintptr_t key);

/* The object with this address; NULL if we never saw it born. */
static inline struct object *object_find(enum kind kind, const void *address)
{
    uintptr_t key = (uintptr_t)address | kind;
    struct object *o = atomic_load_explicit(&bucket_of(key)->first, memory_order_acquire);
    if (o && atomic_load_explicit(&o->key, memory_order_relaxed) == key)
        return o;
    return object_search(key);
}

/* Before the handle exists: a record that callbacks can find (callback.c). */
struct consumer *handle_expected(const struct library *lib);
/* Gives the expected record its handle; NULL rk: it was not born, the record is free again. */
void handle_arrived(struct consumer *c, rd_kafka_t *rk, bool is_consumer);
/* The handle is gone; its address and those of its queues and topics become tombstones. */
void handle_gone(struct consumer *c);
/* Forgets a handle that needs no tombstone (a producer). */
void handle_forget(struct consumer *c);
/* Records a queue or topic of the consumer and returns it; NULL without memory. */
struct object *object_born(struct consumer *c, enum kind kind, const void *address, enum role role,
                           uint16_t call);
/* Makes it a tombstone. */
void object_gone(struct object *o);
/* Calls f for every record that has a handle or is about to get one. Registry lock held: f must not wait. */
void consumers_each(void (*f)(struct consumer *c, void *with), void *with);
/* Calls f for every object of the consumer. Registry lock held. */
void objects_each(struct consumer *c, void (*f)(struct object *o, void *with), void *with);
void handle_after_fork(void);
/* Around fork: the registry is whole in the child. */
void registry_hold(bool hold);

/* The wrapper of the rebalance callback asks whose it is: the record of this handle, or the one expected. */
struct consumer *consumer_of(const rd_kafka_t *rk);

#endif
