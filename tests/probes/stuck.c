/*
 * stuck KIND: what takes longer than it should: a callback that blocks (`callback`), a call inside a callback
 * of a close
 * (`nested`), a call that waits at the gate behind a callback's call (`gate`), a commit without a coordinator
 * (`commit`). Each goes on once the report has been seen. Without the shim each just waits.
 */
#include "probe.h"

static rd_kafka_t *rk;
static const char *kind;
static struct mock mock;
static atomic_bool assigned, in_callback;

/* What the callback waits for. */
static void block(void)
{
    in_callback = true;
    until_said("finding: stuck-call");
    until_said("SUMMARY");
}

static void on_rebalance(rd_kafka_t *handle, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list,
                         void *opaque)
{
    (void)opaque;
    bool assign = err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    if (!assign) {
        in_callback = true;
        until_said("finding: close-stuck");
    }
    rd_kafka_assign(handle, assign ? list : NULL);
    assigned |= assign;
}

static int on_stats(rd_kafka_t *handle, char *json, size_t len, void *opaque)
{
    (void)handle, (void)json, (void)len, (void)opaque;
    if (!in_callback)
        block();
    return 0;
}

static void *committer(void *arg)
{
    commit_at(rk, "t", 1, 0);
    return arg;
}

int main(int argc, char **argv)
{
    struct worker w;
    kind = argc > 1 ? argv[1] : "";
    mock_open(&mock);
    mock_topic(&mock, "t", 1);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    if (!strcmp(kind, "callback")) {
        rd_kafka_conf_set_stats_cb(conf, on_stats);
        conf_set(conf, "statistics.interval.ms", "10");
    } else if (!strcmp(kind, "nested")) {
        rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    }
    rk = consumer_new(conf);
    if (!strcmp(kind, "callback")) {
        expect_err(rd_kafka_poll_set_consumer(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
        eventually((poll_once(rk, 100), in_callback), "no callback");
        until_said("moving again");
    } else if (!strcmp(kind, "nested")) {
        subscribe_to(rk, "t");
        eventually((poll_once(rk, 100), assigned), "no assignment");
    } else if (!strcmp(kind, "commit")) {
        find_coordinator(rk, "t");
        expect_err(rd_kafka_mock_broker_set_rtt(mock.cluster, 1, 3000), RD_KAFKA_RESP_ERR_NO_ERROR);
        start(&w, committer, NULL);
        until_said("finding: stuck-call");
        expect_err(rd_kafka_mock_broker_set_rtt(mock.cluster, 1, 0), RD_KAFKA_RESP_ERR_NO_ERROR);
        join(&w, "the commit");
        until_said("moving again");
    }
    step("close");
    expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("%s", kind);
}
