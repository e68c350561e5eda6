/*
 * unanswered REBALANCE HOW: does not answer an assignment (`assign`, of a cooperative group) or a revocation
 * (`revoke`); HOW it is told: by callback or by event. The close then waits for ever. Under the shim somebody
 * answers once the report has been seen, and the close goes on.
 */
#include "probe.h"

static rd_kafka_t *rk;
static rd_kafka_queue_t *queue;
static bool assigning, events;
static atomic_bool unanswered, assigned, closed;

static void told(rd_kafka_t *handle, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list)
{
    bool assign = err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    if (unanswered || assign == assigning) {
        unanswered = true;
        return;
    }
    if (assign)
        expect_err(rd_kafka_assign(handle, list), RD_KAFKA_RESP_ERR_NO_ERROR);
    assigned = true;
}

static void on_rebalance(rd_kafka_t *handle, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list,
                         void *opaque)
{
    (void)opaque;
    told(handle, err, list);
}

static void poll_either(void)
{
    if (!events) {
        poll_once(rk, 50);
        return;
    }
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 50);
    if (event && rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE)
        told(rk, rd_kafka_event_error(event), rd_kafka_event_topic_partition_list(event));
    if (event)
        rd_kafka_event_destroy(event);
}

static void *closer(void *arg)
{
    rd_kafka_resp_err_t err = rd_kafka_consumer_close(rk);
    step("close: %s", rd_kafka_err2name(err));
    closed = true;
    return arg;
}

int main(int argc, char **argv)
{
    struct worker w;
    struct mock mock;
    assigning = argc > 1 && !strcmp(argv[1], "assign");
    events = argc > 2 && !strcmp(argv[2], "event");
    mock_open(&mock);
    mock_topic(&mock, "t", 2);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    if (assigning)
        conf_set(conf, "partition.assignment.strategy", "cooperative-sticky");
    if (events)
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_REBALANCE);
    else
        rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rk = consumer_new(conf);
    queue = rd_kafka_queue_get_consumer(rk);
    subscribe_to(rk, "t");
    if (!assigning) {
        eventually((poll_either(), assigned), "no assignment");
        expect_err(rd_kafka_unsubscribe(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    eventually((poll_either(), unanswered), "no rebalance");
    step("unanswered");
    until_said("finding: rebalance-unanswered");                              /* at once, as a note */
    eventually(said("finding: rebalance-unanswered") != 1, "not said again"); /* when it is too old */

    step("close");
    start(&w, closer, NULL);
    if (!(assigning && events)) {
        until_said("finding: close-debt");
        until_said("finding: close-stuck");
    }
    if (shimmed() && !closed) {
        if (!(assigning && events)) {
            expect_err(rd_kafka_assign(rk, NULL), RD_KAFKA_RESP_ERR_NO_ERROR);
            until_said("moving again");
        }
    }
    join(&w, "the close");
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("answered in the end");
}
