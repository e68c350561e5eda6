/*
 * close.c: gives up a close after RDGATE_CLOSE_MS (DESIGN 3), and sees to it that the destroy after it ends.
 * It must touch nothing while the option is 0, and never decide who waits at the gate (gate.c).
 *
 * GIVING UP is something librdkafka does by itself when the queue of a close is yielded: its pop brings
 * nothing and the result is __TIMED_OUT (2.0.2 rdkafka.c rd_kafka_consumer_close, 2.15
 * rd_kafka_consumer_close0). So the real close runs, with each of its callbacks, and when the time is up a
 * thread of ours sends the one yield that gate.c otherwise takes such care never to send. It reaches the
 * close by the forward of the consumer queue, only when nothing is left there to be served, and not while a
 * callback runs: a callback that does not return cannot be given up. To drive the close from here by
 * close_queue would be another close: queue_poll makes events of what should be callbacks,
 * queue_poll_callback may fail an assertion on a message, and consume_queue stores the offset of a message
 * that nobody gets, so that the last commit loses it.
 *
 * AFTERWARDS the queue of the close is disabled, and a group that has a rebalance to hand out answers it
 * itself (rdkafka_cgrp.c rd_kafka_rebalance_op: "ops queue is disabled"). So it ends by itself, unless it
 * waits for the answer to a rebalance that the application was given before, or for a broker. The handle
 * stays in CLOSING_QUEUE until rd_kafka_consumer_closed() is true: the answer is let in, everything else is
 * refused, and another close waits its own time for the end.
 *
 * DESTROY joins librdkafka's main thread, which leaves only when the group has ended; NO_CONSUMER_CLOSE
 * changes nothing for a group that is ending already (rd_kafka_cgrp_terminate0). That wait has no end of its
 * own and cannot be given up, so it must not begin: what the application owes is answered in its place, and
 * if the group still does not end within the limit, the handle is leaked.
 */
#include "close.h"
#include "notes.h"

#include <pthread.h>

#define MS    1000000LL
#define AGAIN (20 * MS) /* the close may not have had its queue yet when the time was up */

/* ------------------------------------------------------------------ the clock
 * c->close_clock: 0 = there is none, odd = that one runs, even = it has been told to go. What is unwound
 * through a close leaves its clock behind, so each has its own number, and looks whether it is still meant.
 */

static _Atomic uint32_t clocks;

static void *run_clock(void *of)
{
    struct consumer *c = of;
    uint32_t mine = atomic_load(&c->close_clock);
    int64_t next = c->close_until;
    pthread_setname_np(pthread_self(), "rdgate-close");
    while (mine & 1 && atomic_load(&c->close_clock) == mine &&
           (c->life == CLOSING || c->life == DESTROYING)) {
        int64_t now = now_ns();
        if (now >= next) {
            c->lib->rd_kafka_queue_yield(c->consumer_queue);
            next = now + AGAIN;
        }
        futex_wait(&c->close_clock, mine, next, 0);
    }
    uint32_t told = mine + 1;
    if (!atomic_compare_exchange_strong(&c->close_clock, &told, 0))
        atomic_compare_exchange_strong(&c->close_clock, &mine, 0);
    futex_wake(&c->close_clock, INT32_MAX);
    return NULL;
}

/* Nothing of the clock touches the consumer after this. */
static void stop_clock(struct consumer *c)
{
    uint32_t clock = atomic_load(&c->close_clock);
    if (clock & 1 && !atomic_compare_exchange_strong(&c->close_clock, &clock, clock + 1))
        return;
    futex_wake(&c->close_clock, INT32_MAX);
    while ((clock = atomic_load(&c->close_clock)))
        futex_wait(&c->close_clock, clock, FOREVER, 0);
}

static bool start_clock(struct consumer *c, int64_t until)
{
    pthread_t thread;
    stop_clock(c);
    c->close_until = until;
    atomic_store(&c->close_clock, (atomic_fetch_add(&clocks, 2) + 2) | 1);
    bool started = self_thread(&thread, run_clock, c);
    if (started)
        pthread_detach(thread);
    else
        atomic_store(&c->close_clock, 0);
    return started;
}

/* ------------------------------------------------------------------ close */

bool close_is_bounded(const struct consumer *c)
{
    return rdg_options.close_ms && rdg_options.mode != OBSERVE && rdg_options.mode != OFF &&
           c->consumer_queue && c->lib->rd_kafka_queue_yield && c->lib->rd_kafka_consumer_closed;
}

void close_given_up(struct consumer *c, int call, int64_t ms)
{
    if (report_first(CLOSE_STUCK, c))
        report_variant(CLOSE_STUCK, CLOSE_GIVEN_UP, c, call, NULL, ms);
}

rd_kafka_resp_err_t close_within(struct consumer *c, int call, int limit_ms)
{
    if (c->life == CLOSED && c->given_up) { /* asked again, and it has ended meanwhile */
        c->given_up = false;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    int64_t began = now_ns();
    int saved = errno;
    bool clock = start_clock(c, began + (limit_ms > 0 ? limit_ms : 1) * MS);
    errno = saved;
    rd_kafka_resp_err_t r = c->lib->rd_kafka_consumer_close(c->rk);
    if (!clock)
        return r;
    saved = errno;
    stop_clock(c);
    errno = saved;
    if (r != RD_KAFKA_RESP_ERR__TIMED_OUT)
        return r;
    if (c->lib->rd_kafka_consumer_closed(c->rk))
        return RD_KAFKA_RESP_ERR_NO_ERROR; /* it ended as the yield was sent */
    c->given_up = true;
    close_given_up(c, call, (now_ns() - began) / MS);
    return r;
}

/* ------------------------------------------------------------------ destroy */

bool close_for_destroy(struct consumer *c, int call, int flags)
{
    const struct library *lib = c->lib;
    stop_clock(c); /* of a close that was unwound */
    if (!close_is_bounded(c))
        return true;
    bool plain = flags <= 0; /* the destroy would close: neither NO_CONSUMER_CLOSE nor anything unknown */
    if (plain && !c->given_up && !lib->rd_kafka_consumer_closed(c->rk) &&
        !(lib->rd_kafka_fatal_error && lib->rd_kafka_fatal_error(c->rk, NULL, 0)))
        close_within(c, call, (int)rdg_options.close_ms);
    if (!c->given_up || lib->rd_kafka_consumer_closed(c->rk))
        return true;
    int64_t until = now_ns() + rdg_options.close_ms * MS;
    _Atomic uint32_t never = 0;
    if (atomic_exchange(&c->unanswered, 0))
        lib->rd_kafka_assign(c->rk, NULL); /* the group waits for it, so it is there to reply */
    while (!lib->rd_kafka_consumer_closed(c->rk)) {
        int64_t now = now_ns();
        if (now >= until)
            return false;
        futex_wait(&never, 0, now + 5 * MS < until ? now + 5 * MS : until, 0);
    }
    return true;
}
