/*
 * destroy_in_callback: a stats callback destroys the very consumer whose poll runs it. Plain librdkafka comes
 * back into freed memory. The handle must be dead for the next call, and the one running must return.
 */
#include "probe.h"

static atomic_bool destroyed;

static int on_stats(rd_kafka_t *rk, char *json, size_t len, void *opaque)
{
    (void)json, (void)len, (void)opaque;
    if (!destroyed) {
        destroyed = true;
        step("destroy");
        rd_kafka_destroy(rk);
        step("destroyed");
    }
    return 0;
}

int main(void)
{
    struct mock mock;
    mock_open(&mock);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    rd_kafka_conf_set_stats_cb(conf, on_stats);
    conf_set(conf, "statistics.interval.ms", "10");
    rd_kafka_t *rk = consumer_new(conf);
    expect_err(rd_kafka_poll_set_consumer(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    eventually((poll_once(rk, 100), destroyed), "no stats callback");
    step("poll the dead");
    expect(!poll_once(rk, 10), "a message from a dead handle");
    expect(commit_at(rk, "t", 0, 1), "a commit on a dead handle");
    mock_close(&mock);
    probe_ok("the handle died after its last call");
}
