/*
 * leak KIND: destroys a consumer while it still holds one thing: a message (of consumer_poll or of a batch),
 * an event, or a list that some call has put a reference to a partition into. What hangs the destroy, hangs
 * it for ever; under the shim the thing is given back once the report has been seen.
 */
#include "probe.h"

static rd_kafka_t *rk;

static void *destroyer(void *arg)
{
    rd_kafka_destroy(rk);
    return arg;
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "";
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 1);
    mock_produce(&mock, "t", 0, 20);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    conf_set(conf, "enable.auto.offset.store", "false");
    rk = consumer_new(conf);
    assign_all(rk, "t", 1);
    eventually(poll_once(rk, 100), "no message");

    rd_kafka_message_t *message = NULL;
    rd_kafka_event_t *event = NULL;
    rd_kafka_topic_partition_list_t *list = list_at("t", 1, 2), *kept = list, *out = NULL;
    if (!strcmp(kind, "message")) {
        eventually((message = rd_kafka_consumer_poll(rk, 100)), "no message");
    } else if (!strcmp(kind, "batch")) {
        rd_kafka_queue_t *q = rd_kafka_queue_get_consumer(rk);
        eventually(rd_kafka_consume_batch_queue(q, 100, &message, 1) == 1, "no message");
        rd_kafka_queue_destroy(q);
    } else if (!strcmp(kind, "event")) {
        rd_kafka_queue_t *q = rd_kafka_queue_get_consumer(rk);
        eventually((event = rd_kafka_queue_poll(q, 100)), "no event");
        rd_kafka_queue_destroy(q);
    } else if (!strcmp(kind, "pause")) {
        expect_err(rd_kafka_pause_partitions(rk, list), RD_KAFKA_RESP_ERR_NO_ERROR);
    } else if (!strcmp(kind, "resume")) {
        expect_err(rd_kafka_resume_partitions(rk, list), RD_KAFKA_RESP_ERR_NO_ERROR);
    } else if (!strcmp(kind, "store")) {
        expect_err(rd_kafka_offsets_store(rk, list), RD_KAFKA_RESP_ERR_NO_ERROR);
    } else if (!strcmp(kind, "assignment")) {
        expect_err(rd_kafka_assignment(rk, &out), RD_KAFKA_RESP_ERR_NO_ERROR);
        kept = out;
        rd_kafka_topic_partition_list_destroy(list);
    } else if (!strcmp(kind, "copy")) {
        expect_err(rd_kafka_pause_partitions(rk, list), RD_KAFKA_RESP_ERR_NO_ERROR);
        kept = rd_kafka_topic_partition_list_copy(list);
        rd_kafka_topic_partition_list_destroy(list);
    } else if (!strcmp(kind, "position")) { /* from here on nothing hangs */
        expect_err(rd_kafka_position(rk, list), RD_KAFKA_RESP_ERR_NO_ERROR);
    } else if (!strcmp(kind, "committed")) {
        expect_err(rd_kafka_committed(rk, list, 5000), RD_KAFKA_RESP_ERR_NO_ERROR);
    } else if (!strcmp(kind, "times")) {
        expect_err(rd_kafka_offsets_for_times(rk, list, 5000), RD_KAFKA_RESP_ERR_NO_ERROR);
    } else if (!strcmp(kind, "commit")) {
        expect_err(rd_kafka_commit(rk, list, 0), RD_KAFKA_RESP_ERR_NO_ERROR);
    } else if (!strcmp(kind, "topic")) {
        expect(rd_kafka_topic_new(rk, "t", NULL) != NULL, "no topic");
    } else if (!strcmp(kind, "queue")) {
        expect(rd_kafka_queue_get_consumer(rk) != NULL, "no queue");
    }
    expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);

    struct worker w;
    step("destroy");
    start(&w, destroyer, NULL);
    if (shimmed() && !within(100, w.done)) {
        until_said("finding: destroy-stuck");
        if (message)
            rd_kafka_message_destroy(message);
        else if (event)
            rd_kafka_event_destroy(event);
        else
            rd_kafka_topic_partition_list_destroy(kept);
        until_said("moving again");
    }
    join(&w, "the destroy");
    mock_close(&mock);
    probe_ok("destroyed");
}
