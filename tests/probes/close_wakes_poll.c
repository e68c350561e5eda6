/*
 * close_wakes_poll KIND: a thread is blocked without limit in a poll; another closes the consumer. The poll
 * must end with nothing, and the destroy after it must return. Plain librdkafka never wakes the poll.
 */
#include "probe.h"

static rd_kafka_t *rk;
static rd_kafka_queue_t *queue;
static atomic_bool inside;
static bool got_something;

static void never(rd_kafka_message_t *message, void *opaque)
{
    (void)message, (void)opaque;
    got_something = true;
}

static void *poller(void *kind)
{
    rd_kafka_message_t *batch[8];
    inside = true;
    if (!strcmp(kind, "consumer_poll"))
        got_something = rd_kafka_consumer_poll(rk, -1) != NULL;
    else if (!strcmp(kind, "poll"))
        got_something = rd_kafka_poll(rk, -1) != 0;
    else if (!strcmp(kind, "queue_poll"))
        got_something = rd_kafka_queue_poll(queue, -1) != NULL;
    else if (!strcmp(kind, "queue_poll_callback"))
        got_something = rd_kafka_queue_poll_callback(queue, -1) != 0;
    else if (!strcmp(kind, "consume_queue"))
        got_something = rd_kafka_consume_queue(queue, -1) != NULL;
    else if (!strcmp(kind, "consume_batch_queue"))
        got_something = rd_kafka_consume_batch_queue(queue, -1, batch, 8) != 0;
    else if (!strcmp(kind, "consume_callback_queue"))
        got_something = rd_kafka_consume_callback_queue(queue, -1, never, NULL) != 0;
    else
        probe_fail("unknown kind of poll: %s", (char *)kind);
    return NULL;
}

int main(int argc, char **argv)
{
    struct worker w;
    struct mock mock;
    mock_open(&mock); /* a consumer without a broker would get errors to poll */
    rk = consumer_new(consumer_conf(mock.bootstraps));
    expect_err(rd_kafka_poll_set_consumer(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    queue = rd_kafka_queue_get_consumer(rk);
    start(&w, poller, argc > 1 ? argv[1] : "consumer_poll");
    until_blocked(&w, &inside);

    step("close");
    expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    step("join the poller");
    join(&w, "the poll");
    expect(!got_something, "the poll returned something");
    rd_kafka_queue_destroy(queue);
    step("destroy");
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("the close woke the poll");
}
