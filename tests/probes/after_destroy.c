/*
 * after_destroy WHAT: one call on a handle, queue or topic whose consumer was destroyed. Freed memory without
 * the shim; an error or nothing with it.
 */
#include "probe.h"

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "poll";
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 1);
    rd_kafka_t *rk = consumer_new(consumer_conf(mock.bootstraps));
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "t", NULL);
    rd_kafka_topic_partition_list_t *list = list_at("t", 1, 0);
    assign_all(rk, "t", 1);
    if (!strcmp(what, "queue_destroy"))
        rd_kafka_queue_destroy(queue);
    step("destroy");
    rd_kafka_destroy(rk);

    step("use");
    if (!strcmp(what, "poll")) {
        expect(!rd_kafka_consumer_poll(rk, 0), "a message");
        expect(!rd_kafka_consumer_poll(rk, 50), "a message");
        expect(rd_kafka_poll(rk, 0) == 0, "something served");
    } else if (!strcmp(what, "commit")) {
        expect(rd_kafka_commit(rk, list, 0), "a commit");
        expect(rd_kafka_commit(rk, list, 1), "a commit");
    } else if (!strcmp(what, "calls")) {
        rd_kafka_topic_partition_list_t *out = NULL;
        expect(rd_kafka_assign(rk, list), "an assign");
        expect(rd_kafka_assignment(rk, &out) && !out, "an assignment");
        expect(rd_kafka_subscription(rk, &out) && !out, "a subscription");
        expect(rd_kafka_pause_partitions(rk, list), "a pause");
        expect(rd_kafka_seek(topic, 0, 0, 0), "a seek");
        expect(!rd_kafka_memberid(rk), "a member id");
        expect(!rd_kafka_queue_get_consumer(rk), "a queue");
    } else if (!strcmp(what, "close")) {
        expect(rd_kafka_consumer_close(rk), "a close");
    } else if (!strcmp(what, "destroy")) {
        rd_kafka_destroy(rk);
        rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    } else if (!strcmp(what, "queue_poll")) {
        rd_kafka_message_t *batch[8];
        expect(!rd_kafka_queue_poll(queue, 50), "an event");
        expect(!rd_kafka_consume_queue(queue, 0), "a message");
        expect(rd_kafka_consume_batch_queue(queue, 0, batch, 8) <= 0, "messages");
        rd_kafka_queue_destroy(queue);
    } else if (!strcmp(what, "queue_destroy")) {
        rd_kafka_queue_destroy(queue); /* the second time */
        rd_kafka_queue_destroy(queue);
        expect(!rd_kafka_queue_poll(queue, 0), "an event");
    } else if (!strcmp(what, "topic_destroy")) {
        rd_kafka_topic_destroy(topic);
    } else {
        probe_fail("do not know %s", what);
    }
    rd_kafka_topic_partition_list_destroy(list);
    mock_close(&mock);
    probe_ok("the dead are left in peace");
}
