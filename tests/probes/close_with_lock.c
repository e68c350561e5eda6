/*
 * close_with_lock: the closing thread holds a mutex that the poller's stats callback wants. librdkafka closes
 * beside the callback; a gate that waits for the poll would never open. The mutex is recursive, because the
 * close runs stats callbacks too.
 */
#include "probe.h"

static rd_kafka_t *rk;
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static atomic_bool in_callback, stop;

static int on_stats(rd_kafka_t *handle, char *json, size_t len, void *opaque)
{
    (void)handle, (void)json, (void)len, (void)opaque;
    in_callback = true;
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return 0;
}

static void *poller(void *arg)
{
    while (!stop)
        poll_once(rk, 100);
    return arg;
}

int main(void)
{
    struct worker w;
    struct mock mock;
    mock_open(&mock);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    rd_kafka_conf_set_stats_cb(conf, on_stats);
    conf_set(conf, "statistics.interval.ms", "10");
    rk = consumer_new(conf);
    expect_err(rd_kafka_poll_set_consumer(rk), RD_KAFKA_RESP_ERR_NO_ERROR);

    pthread_mutex_lock(&lock);
    start(&w, poller, NULL);
    until_blocked(&w, &in_callback);
    step("close");
    expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    pthread_mutex_unlock(&lock);
    stop = true;
    step("join the poller");
    join(&w, "the poll");
    step("destroy");
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("closed beside a callback that wanted our lock");
}
