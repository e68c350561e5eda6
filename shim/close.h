/*
 * close.h: a close that may be given up (RDGATE_CLOSE_MS). Without that option nothing here does anything.
 */
#ifndef RDGATE_CLOSE_H
#define RDGATE_CLOSE_H

#include "shim.h"

/* The option counts for this consumer: it is set, the mode may change outcomes, and its librdkafka is new
 * enough. */
bool close_is_bounded(const struct consumer *c);
/* The real close, given up after so long. __TIMED_OUT and c->given_up: it was; the group goes on ending. */
rd_kafka_resp_err_t close_within(struct consumer *c, int call, int limit_ms);
/* Says that a close was given up. */
void close_given_up(struct consumer *c, int call, int64_t ms);
/* Before a destroy: ends the group, as the destroy itself would. false: it does not end within the limit, so
 * the destroy would hang, and the handle must be left alone. */
bool close_for_destroy(struct consumer *c, int call, int flags);

#endif
