/*
 * after_close WHAT: one call on a consumer that is closed, then destroy. Plain librdkafka reports success for
 * an assign and an asynchronous commit that do nothing, hangs in destroy after a pause whose list is kept,
 * and polls for ever.
 */
#include "probe.h"

enum { PARTITIONS = 4 };

static rd_kafka_t *rk;

static void *poller(void *arg)
{
    expect(!rd_kafka_consumer_poll(rk, -1), "the poll returned something");
    return arg;
}

static rd_kafka_resp_err_t code(rd_kafka_error_t *error)
{
    rd_kafka_resp_err_t err = rd_kafka_error_code(error);
    if (error)
        rd_kafka_error_destroy(error);
    return err;
}

static void use(const char *what)
{
    rd_kafka_topic_partition_list_t *list = list_at("t", PARTITIONS, 0);
    if (!strcmp(what, "assign")) {
        expect_err(rd_kafka_assign(rk, list), RD_KAFKA_RESP_ERR__DESTROY);
    } else if (!strcmp(what, "unassign")) {
        expect_err(rd_kafka_assign(rk, NULL), RD_KAFKA_RESP_ERR__DESTROY);
    } else if (!strcmp(what, "incremental_assign")) {
        expect_err(code(rd_kafka_incremental_assign(rk, list)), RD_KAFKA_RESP_ERR__DESTROY);
    } else if (!strcmp(what, "incremental_unassign")) {
        expect_err(code(rd_kafka_incremental_unassign(rk, list)), RD_KAFKA_RESP_ERR__DESTROY);
    } else if (!strcmp(what, "commit_async")) {
        expect_err(rd_kafka_commit(rk, list, 1), RD_KAFKA_RESP_ERR__DESTROY);
    } else if (!strcmp(what, "pause")) {
        /* A pause leaves a reference to its partition in the list, and destroy waits for those, so that
         * whoever keeps the list hangs there: a pause that is refused leaves none. */
        rd_kafka_resp_err_t err = rd_kafka_pause_partitions(rk, list);
        step("destroy");
        rd_kafka_destroy(rk);
        rk = NULL;
        expect(err, "the pause said it succeeded");
    } else if (!strcmp(what, "poll")) {
        struct worker w;
        int64_t began = now_ms();
        start(&w, poller, NULL);
        join(&w, "the poll");
        expect(now_ms() - began < 2500, "the poll took %d ms", (int)(now_ms() - began));
    } else if (!strcmp(what, "others")) {
        /* these are right without the shim already, and have to stay so */
        rd_kafka_topic_partition_list_t *out = NULL;
        expect_err(rd_kafka_commit(rk, list, 0), RD_KAFKA_RESP_ERR__DESTROY);
        rd_kafka_topic_partition_list_t *topics = list_at("t", 1, 0);
        expect_err(rd_kafka_subscribe(rk, topics), RD_KAFKA_RESP_ERR__DESTROY);
        rd_kafka_topic_partition_list_destroy(topics);
        expect_err(rd_kafka_unsubscribe(rk), RD_KAFKA_RESP_ERR__DESTROY);
        expect_err(rd_kafka_subscription(rk, &out), RD_KAFKA_RESP_ERR__DESTROY);
        expect(!out, "subscription gave a list");
        expect_err(rd_kafka_assignment(rk, &out), RD_KAFKA_RESP_ERR__DESTROY);
        expect(!out, "assignment gave a list");
        expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR__DESTROY);
        expect(!rd_kafka_memberid(rk), "memberid gave an id");
        expect(!rd_kafka_consumer_group_metadata(rk), "consumer_group_metadata gave some");
        expect(!rd_kafka_rebalance_protocol(rk), "rebalance_protocol gave one");
        expect(rd_kafka_consumer_closed(rk), "not closed");
        expect(!poll_once(rk, 0), "poll gave something");
        expect(!poll_once(rk, 20), "poll gave something");
        expect(rd_kafka_last_error() == RD_KAFKA_RESP_ERR__TIMED_OUT, "last error of the poll is %s",
               rd_kafka_err2name(rd_kafka_last_error()));
    } else {
        probe_fail("do not know %s", what);
    }
    rd_kafka_topic_partition_list_destroy(list);
}

int main(int argc, char **argv)
{
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", PARTITIONS);
    for (int i = 0; i < PARTITIONS; i++)
        mock_produce(&mock, "t", i, 100);
    rk = consumer_new(consumer_conf(mock.bootstraps));
    assign_all(rk, "t", PARTITIONS);
    eventually(poll_once(rk, 100), "no message");
    step("close");
    expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    step("use");
    use(argc > 1 ? argv[1] : "others");
    step("destroy");
    if (rk)
        rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("a closed consumer says so");
}
