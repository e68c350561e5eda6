/*
 * late_unassign: the rebalance callback only notes the revoke and returns, as node-rdkafka's does; another
 * thread unassigns 300 ms later. The close returns then, without the shim and with it.
 */
#include "probe.h"

static rd_kafka_t *rk;
static atomic_bool assigned, revoked;

static void on_rebalance(rd_kafka_t *handle, rd_kafka_resp_err_t err,
                         rd_kafka_topic_partition_list_t *partitions, void *opaque)
{
    (void)opaque;
    if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        rd_kafka_assign(handle, partitions);
        assigned = true;
    } else {
        revoked = true;
    }
}

static void *unassigner(void *arg)
{
    eventually(revoked, "no revoke");
    pause_ms(300);
    expect_err(rd_kafka_assign(rk, NULL), RD_KAFKA_RESP_ERR_NO_ERROR);
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
    rk = consumer_new(conf);
    subscribe_to(rk, "t");
    eventually((poll_once(rk, 10), assigned), "no assignment");
    start(&w, unassigner, NULL);

    step("close");
    int64_t began = now_ms();
    expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    int took = (int)(now_ms() - began);
    expect(took >= 300 && took < 1500, "the close took %d ms", took);
    join(&w, "the unassign");
    step("destroy");
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("closed %d ms after the revoke", took);
}
