/*
 * siblings: a stats callback starts two threads that both call into the consumer, and waits for both. Both
 * must get through, whatever the order.
 */
#include "probe.h"

static rd_kafka_t *rk;
static atomic_int rounds;

static void *pauser(void *arg)
{
    rd_kafka_topic_partition_list_t *list = list_at("t", 1, RD_KAFKA_OFFSET_INVALID);
    for (int i = 0; i < 5; i++) {
        expect_err(rd_kafka_pause_partitions(rk, list), RD_KAFKA_RESP_ERR_NO_ERROR);
        expect_err(rd_kafka_resume_partitions(rk, list), RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    rd_kafka_topic_partition_list_destroy(list);
    return arg;
}

static void *asker(void *arg)
{
    for (int i = 0; i < 5; i++) {
        rd_kafka_topic_partition_list_t *list;
        expect_err(rd_kafka_assignment(rk, &list), RD_KAFKA_RESP_ERR_NO_ERROR);
        expect(list->cnt == 1, "%d partitions assigned", list->cnt);
        expect_err(rd_kafka_commit(rk, NULL, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
        rd_kafka_topic_partition_list_destroy(list);
    }
    return arg;
}

static int on_stats(rd_kafka_t *handle, char *json, size_t len, void *opaque)
{
    (void)handle, (void)json, (void)len, (void)opaque;
    struct worker one, two;
    if (rounds >= 20)
        return 0;
    start(&one, pauser, NULL);
    start(&two, asker, NULL);
    join(&one, "a pause or resume");
    join(&two, "an assignment or commit");
    rounds++;
    return 0;
}

int main(void)
{
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 1);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    rd_kafka_conf_set_stats_cb(conf, on_stats);
    conf_set(conf, "statistics.interval.ms", "10");
    rk = consumer_new(conf);
    expect_err(rd_kafka_poll_set_consumer(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    assign_all(rk, "t", 1);
    step("poll");
    eventually((poll_once(rk, 100), rounds >= 20), "not enough callbacks");
    step("close");
    expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    step("destroy");
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("both threads of each callback got through");
}
