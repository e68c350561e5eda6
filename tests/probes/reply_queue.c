/*
 * reply_queue: a thread waits without limit on its own queue, as bindings do for the reply to a commit, and
 * another destroys the consumer. librdkafka lets most commits end first, but drops those that meet the end of
 * the group; here the reply has been taken already, so that none can come. Nothing in plain librdkafka wakes
 * the thread.
 */
#include "probe.h"

static rd_kafka_t *rk;
static atomic_bool inside;
static bool got_something;

static void *waiter(void *arg)
{
    rd_kafka_topic_partition_list_t *list = list_at("t", 1, 0);
    rd_kafka_queue_t *reply = rd_kafka_queue_new(rk);
    expect_err(rd_kafka_commit_queue(rk, list, reply, NULL, NULL), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_event_t *event = rd_kafka_queue_poll(reply, 20000);
    expect(event, "no reply to the commit");
    expect_err(rd_kafka_event_error(event), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_event_destroy(event);

    inside = true;
    got_something = rd_kafka_queue_poll(reply, -1) != NULL;
    rd_kafka_queue_destroy(reply);
    rd_kafka_topic_partition_list_destroy(list);
    return arg;
}

int main(void)
{
    struct worker w;
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 1);
    rk = consumer_new(consumer_conf(mock.bootstraps));
    start(&w, waiter, NULL);
    until_blocked(&w, &inside);
    step("destroy");
    rd_kafka_destroy(rk);
    step("join the waiter");
    join(&w, "the poll for the reply");
    expect(!got_something, "the poll returned something");
    mock_close(&mock);
    probe_ok("the waiter came back");
}
