/*
 * call.h: ids, classes and traits of the calls in calls.def, for everybody who must tell them apart.
 */
#ifndef RDGATE_CALL_H
#define RDGATE_CALL_H

#include <stdint.h>

enum class {
    POLL,  /* one per queue at a time; can be preempted */
    CALL,  /* exclusive; preempts a poll */
    CLOSE, /* drains everything, then runs lent */
    DEATH, /* drains everything, guards included, then runs lent */
    GUARD, /* parallel; only counted */
    BIRTH, /* makes records */
    PASS,  /* no gate at all */
};

enum traits {
    BATCH = 1 << 0,
    BATCHX = 1 << 1,
    ANSWERS = 1 << 2,
    LIES = 1 << 3,
    EVENT = 1 << 4,
    MAIN_QUEUE = 1 << 5,
    PARTITION = 1 << 6,
    MESSAGE = 1 << 7,
};

enum call_id {
#define CALL(kind, result, name, ...) CALL_##name,
#include "calls.def"
    CALL_COUNT
};

struct call_info {
    const char *name;
    uint8_t class;
    uint8_t traits;
};

extern const struct call_info rdg_calls[CALL_COUNT];

/* open -> closing -> closed -> destroying -> gone (DESIGN 3). */
enum life { OPEN, CLOSING, CLOSING_QUEUE, CLOSED, DESTROYING, GONE };

/* Application callbacks that we wrap, in the order of callback.c. */
#define FOR_CALLBACKS(X)                                                                                     \
    X(rebalance_cb)                                                                                          \
    X(offset_commit_cb)                                                                                      \
    X(stats_cb)                                                                                              \
    X(error_cb)                                                                                              \
    X(throttle_cb)                                                                                           \
    X(oauthbearer_token_refresh_cb)                                                                          \
    X(consume_cb)

enum callback {
#define X(name) CB_##name,
    FOR_CALLBACKS(X)
#undef X
        CB_COUNT
};

#endif
