/*
 * main_queue_callback: the main queue is polled by a thread of its own, and its statistics callback calls the
 * consumer while another thread sits in consumer_poll(-1); then the consumer is destroyed while such a
 * callback runs. Nothing of it is forbidden but the last, which the callback must survive: with the shim the
 * destroy waits.
 */
#include "probe.h"

static rd_kafka_t *rk;
static atomic_int rounds;
static atomic_bool stop, in_callback, leave;

static int on_stats(rd_kafka_t *h, char *json, size_t len, void *opaque)
{
    (void)h, (void)json, (void)len, (void)opaque;
    pause_all(rk, "t", 1);
    rounds++;
    if (stop) {
        in_callback = true;
        while (!leave)
            pause_ms(1);
        pause_all(rk, "t", 1); /* the destroy is on its way */
    }
    return 0;
}

static void *events(void *arg)
{
    while (!in_callback)
        rd_kafka_poll(rk, 100);
    return arg;
}

static void *poller(void *arg)
{
    poll_once(rk, -1);
    return arg;
}

static void *destroyer(void *arg)
{
    rd_kafka_destroy(rk);
    return arg;
}

int main(void)
{
    struct worker e, p, d;
    rd_kafka_conf_t *conf = consumer_conf(NOWHERE);
    rd_kafka_conf_set_stats_cb(conf, on_stats);
    conf_set(conf, "statistics.interval.ms", "10");
    rk = consumer_new(conf);
    start(&p, poller, NULL);
    start(&e, events, NULL);
    eventually(rounds > 20, "only %d callbacks got through", (int)rounds);
    stop = true;
    eventually(in_callback, "no callback");
    step("destroy");
    start(&d, destroyer, NULL);
    within(300, d.done);
    expect(!d.done, "destroyed under the callback");
    leave = true;
    join(&e, "the poll of the main queue");
    join(&d, "the destroy");
    join(&p, "the poll");
    probe_ok("%d callbacks", (int)rounds);
}
