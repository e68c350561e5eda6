/*
 * misanswered HOW: answers a rebalance with the wrong call: an assignment with NULL (`null`), a revocation
 * with the partitions that it takes away (`list`), an assignment of an eager group incrementally (`eager`),
 * one of a cooperative group as a whole (`cooperative`). What librdkafka says to it is printed; then it is
 * answered properly.
 */
#include "probe.h"

static const char *how;
static atomic_bool done, assigned;

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list,
                         void *opaque)
{
    (void)opaque;
    rd_kafka_resp_err_t said = RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_error_t *error = NULL;
    bool assign = err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS, cooperative = !strcmp(how, "cooperative");
    if (done) {
        error = cooperative && assign ? rd_kafka_incremental_assign(rk, list)
                : cooperative         ? rd_kafka_incremental_unassign(rk, list)
                                      : NULL;
        if (!cooperative)
            rd_kafka_assign(rk, assign ? list : NULL);
        if (error)
            rd_kafka_error_destroy(error);
        return;
    }
    if (assign && !strcmp(how, "null")) {
        said = rd_kafka_assign(rk, NULL);
    } else if (!assign && !strcmp(how, "list")) {
        said = rd_kafka_assign(rk, list);
    } else if (assign && !strcmp(how, "eager")) {
        error = rd_kafka_incremental_assign(rk, list);
        said = error ? rd_kafka_error_code(error) : said;
        rd_kafka_assign(rk, list);
    } else if (assign && cooperative) {
        said = rd_kafka_assign(rk, list);
        error = rd_kafka_incremental_assign(rk, list);
    } else {
        rd_kafka_assign(rk, assign ? list : NULL);
        assigned = assign;
        return;
    }
    if (error)
        rd_kafka_error_destroy(error);
    step("%s: %s", how, rd_kafka_err2name(said));
    done = true;
}

int main(int argc, char **argv)
{
    struct mock mock;
    how = argc > 1 ? argv[1] : "";
    mock_open(&mock);
    mock_topic(&mock, "t", 2);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    if (!strcmp(how, "cooperative"))
        conf_set(conf, "partition.assignment.strategy", "cooperative-sticky");
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rd_kafka_t *rk = consumer_new(conf);
    subscribe_to(rk, "t");
    if (!strcmp(how, "list")) {
        eventually((poll_once(rk, 50), assigned), "no assignment");
        expect_err(rd_kafka_unsubscribe(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    eventually((poll_once(rk, 50), done), "no rebalance");
    until_said("finding: rebalance-misanswered");
    if (!strcmp(how, "list")) /* the close would wait for this */
        expect_err(rd_kafka_assign(rk, NULL), RD_KAFKA_RESP_ERR_NO_ERROR);
    step("close");
    expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("closed");
}
