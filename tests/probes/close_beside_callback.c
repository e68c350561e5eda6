/*
 * close_beside_callback: a thread polls with a lock of its own held, and its statistics callback is running
 * when another thread closes the consumer. The rebalance callback of the close wants the same lock. The poll
 * must return when its callback is over, not when the close is.
 */
#include "probe.h"

static rd_kafka_t *rk;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool assigned, go, in_callback, revoked;

static void on_rebalance(rd_kafka_t *handle, rd_kafka_resp_err_t err,
                         rd_kafka_topic_partition_list_t *partitions, void *opaque)
{
    (void)opaque;
    if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        rd_kafka_assign(handle, partitions);
        assigned = true;
    } else {
        revoked = true;
        pthread_mutex_lock(&lock);
        rd_kafka_assign(handle, NULL);
        pthread_mutex_unlock(&lock);
    }
}

static int on_stats(rd_kafka_t *h, char *json, size_t len, void *opaque)
{
    (void)h, (void)json, (void)len, (void)opaque;
    if (go && !in_callback) {
        in_callback = true;
        within(5000, revoked);
    }
    return 0;
}

static void *poller(void *arg)
{
    pthread_mutex_lock(&lock);
    go = true;
    while (!in_callback)
        poll_once(rk, 500);
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void)
{
    struct worker w;
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 1);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rd_kafka_conf_set_stats_cb(conf, on_stats);
    conf_set(conf, "statistics.interval.ms", "10");
    rk = consumer_new(conf);
    expect_err(rd_kafka_poll_set_consumer(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    subscribe_to(rk, "t");
    eventually((poll_once(rk, 10), assigned), "no assignment");
    start(&w, poller, NULL);
    eventually(in_callback, "no callback");
    step("close");
    int64_t began = now_ms();
    expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    expect(now_ms() - began < 20000, "the close took %lld ms", (long long)(now_ms() - began));
    step("join the poller");
    join(&w, "the poll");
    step("destroy");
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("the poll let go of its lock, and the close went on");
}
