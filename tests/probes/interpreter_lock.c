/*
 * interpreter_lock: a thread calls pause() holding a lock that the poller's stats callback wants, as a
 * binding does that does not let go of its interpreter. librdkafka pauses beside the callback; a gate that
 * makes the caller wait for the poll has closed a loop.
 */
#include "probe.h"

static rd_kafka_t *rk;
static pthread_mutex_t interpreter = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool in_callback, stop;

static int on_stats(rd_kafka_t *handle, char *json, size_t len, void *opaque)
{
    (void)handle, (void)json, (void)len, (void)opaque;
    in_callback = true;
    pthread_mutex_lock(&interpreter);
    pthread_mutex_unlock(&interpreter);
    in_callback = false;
    return 0;
}

static void *poller(void *arg)
{
    while (!stop)
        poll_once(rk, -1);
    return arg;
}

int main(void)
{
    struct worker w;
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 1);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    rd_kafka_conf_set_stats_cb(conf, on_stats);
    conf_set(conf, "statistics.interval.ms", "5");
    rk = consumer_new(conf);
    expect_err(rd_kafka_poll_set_consumer(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    assign_all(rk, "t", 1);
    rd_kafka_topic_partition_list_t *list = list_at("t", 1, RD_KAFKA_OFFSET_INVALID);
    start(&w, poller, NULL);

    /* Both orders: the callback already wants the lock, or comes to want it while the pause is under way. */
    for (int round = 0; round < 50; round++) {
        bool callback_first = round % 2;
        pthread_mutex_lock(&interpreter);
        if (callback_first)
            eventually(in_callback, "no stats callback");
        if (!round || round == 1)
            step("pause, %s", callback_first ? "the callback waiting" : "the poller polling");
        expect_err(rd_kafka_pause_partitions(rk, list), RD_KAFKA_RESP_ERR_NO_ERROR);
        expect_err(rd_kafka_resume_partitions(rk, list), RD_KAFKA_RESP_ERR_NO_ERROR);
        pthread_mutex_unlock(&interpreter);
    }

    rd_kafka_topic_partition_list_destroy(list);
    stop = true;
    mock_produce(&mock, "t", 0, 1); /* ends the poll */
    step("join the poller");
    join(&w, "the poll");
    step("close");
    expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    step("destroy");
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("paused beside callbacks that wanted our lock");
}
