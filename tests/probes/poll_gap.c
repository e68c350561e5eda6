/*
 * poll_gap: a member of a group that stops polling for longer than max.poll.interval.ms.
 */
#include "probe.h"

static atomic_bool assigned;

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list,
                         void *opaque)
{
    (void)opaque;
    assigned = err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    rd_kafka_assign(rk, assigned ? list : NULL);
}

int main(void)
{
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 1);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    conf_set(conf, "session.timeout.ms", "3000");
    conf_set(conf, "max.poll.interval.ms", "3000");
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rd_kafka_t *rk = consumer_new(conf);
    subscribe_to(rk, "t");
    eventually((poll_once(rk, 100), assigned), "no assignment");
    step("no more polls");
    until_said("finding: poll-gap");
    until_said("finding: poll-exceeded");
    expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("closed");
}
