/*
 * real.h: the true functions, per loaded librdkafka. A handle remembers the library that made it; nothing
 * else decides which library a call goes to.
 */
#ifndef RDGATE_REAL_H
#define RDGATE_REAL_H

#include "call.h"
#include "newer.h"

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What the shim itself needs of a library beyond the table. */
#define FOR_HELPERS(X)                                                                                       \
    X(rd_kafka_version)                                                                                      \
    X(rd_kafka_version_str)                                                                                  \
    X(rd_kafka_error_new)                                                                                    \
    X(rd_kafka_error_code)                                                                                   \
    X(rd_kafka_error_destroy)                                                                                \
    X(rd_kafka_event_type)                                                                                   \
    X(rd_kafka_event_error)                                                                                  \
    X(rd_kafka_event_topic_partition_list)                                                                   \
    X(rd_kafka_topic_name)                                                                                   \
    X(rd_kafka_conf_get)                                                                                     \
    X(rd_kafka_conf_set_rebalance_cb)                                                                        \
    X(rd_kafka_conf_set_offset_commit_cb)                                                                    \
    X(rd_kafka_conf_set_stats_cb)                                                                            \
    X(rd_kafka_conf_set_error_cb)                                                                            \
    X(rd_kafka_conf_set_throttle_cb)                                                                         \
    X(rd_kafka_conf_set_oauthbearer_token_refresh_cb)                                                        \
    X(rd_kafka_conf_set_consume_cb)

/* A stretch of addresses. */
struct span {
    uintptr_t from, to;
};

#define SPANS 16

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
struct library {
    union {
        struct {
#define CALL(kind, result, name, ...) __typeof__(&name) name;
#include "calls.def"
        };
        void *calls[CALL_COUNT];
    };
#define X(name) __typeof__(&name) h_##name;
    FOR_HELPERS(X)
#undef X
    int version;        /* 0x00MMmmrr of RD_KAFKA_VERSION >> 8 */
    uintptr_t from, to; /* the addresses of the object it lives in */
    const void *map;    /* the loader's struct link_map, as identity only */
    bool shared;        /* an object that is librdkafka and nothing else: calls out of it are its own */
    bool by_name;       /* reached through dlsym on a handle */
    bool patched;       /* a copy inside something else, redirected at its entries (patch.c) */
    bool hidden;        /* patched, and no dynamic symbols: a lookup by name must not find it */
    int spans;          /* patched: where its own code lies, sorted */
    struct span own[SPANS];
    _Atomic uint64_t counted[2]; /* calls gated, calls passed */
    char text[16];               /* its version in words */
    char path[256];
};
#pragma GCC diagnostic pop

/* Approximate on purpose: a locked add would cost as much as the rest of a lonely call. */
static inline void counted(const struct library *lib, int which)
{
    _Atomic uint64_t *n = (_Atomic uint64_t *)&lib->counted[which];
    atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* Is this the address of the library's own code, so that a call from there is one of it to itself? An address
 * that is nobody's for sure counts as the application's: the gate lets its owner in again. */
static inline bool library_owns(const struct library *lib, const void *address)
{
    uintptr_t a = (uintptr_t)address;
    if (a - lib->from >= lib->to - lib->from)
        return false;
    if (lib->shared)
        return true;
    for (int i = 0; i < lib->spans; i++)
        if (a - lib->own[i].from < lib->own[i].to - lib->own[i].from)
            return true;
    return false;
}

#define LIBRARIES 16

/* Finds the real dlsym and dlopen. Called once before anything else here. Returns 0, or -1 on a libc without
 * them. */
int real_start(void);
/* The library in whose object this function's address lies, made known on first sight; NULL if that object is
 * no librdkafka. May enter the loader. */
const struct library *library_of(const void *address);
/* The library that a call from this return address is meant for, in the loader's own order: the global scope
 * behind us, the caller's scope, the only one there is. NULL if there is none. May enter the loader once per
 * return address. */
const struct library *library_for_caller(const void *return_address);
/* The library that owns this address as code of its own (a call of librdkafka to itself); NULL otherwise. */
const struct library *library_inside(const void *return_address);
/* The library that this call belongs to, whoever makes it: itself or somebody else. */
const struct library *library_called(const void *return_address);
/* Makes a copy known that patch.c has found, before its entries are redirected; NULL: the table is full, or
 * it is known. Then tells where its functions go on behind their entries; or takes it back. */
const struct library *library_add(const struct library *made);
void library_move(const struct library *lib, void *const calls[CALL_COUNT]);
void library_withdraw(const struct library *lib);
/* Is this object one of those? */
bool library_known(const struct link_map *map);
int library_count(void);
const struct library *library_at(int i);
/* Notes that an application reaches this library through dlsym on a handle. */
void library_by_name(const struct library *lib);
/* The real dlsym, for lookup.c. */
void *real_dlsym(void *handle, const char *name);
/* The function of this name in the object that this address belongs to (the unwinder that called us). */
void *real_unwinder(const void *address, const char *name);
/* The executable, as the loader knows it. */
const struct link_map *real_executable(void);
/* Is an object open already? */
bool real_is_open(const char *file);
/* Opens one as the application is about to, never to be unloaded; NULL: it cannot be. */
const struct link_map *real_open(const char *file, int flags);
/* pthread_cancel behind us. */
int real_pthread_cancel(unsigned long thread);

#endif
