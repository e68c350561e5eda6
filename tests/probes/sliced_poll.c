/*
 * sliced_poll: a poll without limit is made of slices, and the handle is read anew for each, as
 * confluent-kafka-python does; close and destroy run in another thread, which then sets the handle to NULL.
 * The poll must end with a message that says so. Plain librdkafka crashes.
 */
#include "probe.h"

static rd_kafka_t *_Atomic rk;
static atomic_bool inside;

static void *poller(void *arg)
{
    rd_kafka_message_t *m;
    (void)arg;
    inside = true;
    do
        m = rd_kafka_consumer_poll(rk, 200);
    while (!m);
    expect_err(m->err, RD_KAFKA_RESP_ERR__DESTROY);
    expect(!m->rkt && !m->payload, "the message has a topic or a payload");
    expect(rd_kafka_message_timestamp(m, NULL) == -1, "the message has a time");
    expect(rd_kafka_message_errstr(m) != NULL, "the message says nothing");
    rd_kafka_message_destroy(m);
    return NULL;
}

int main(void)
{
    struct worker w;
    struct mock mock;
    mock_open(&mock); /* a consumer without a broker would get errors to poll */
    rd_kafka_t *mine = consumer_new(consumer_conf(mock.bootstraps));
    rk = mine;
    expect_err(rd_kafka_poll_set_consumer(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    start(&w, poller, NULL);
    until_blocked(&w, &inside);

    step("close");
    expect_err(rd_kafka_consumer_close(mine), RD_KAFKA_RESP_ERR_NO_ERROR);
    step("destroy");
    rd_kafka_destroy(mine);
    step("poll without a handle");
    rk = NULL;
    join(&w, "the poll");
    mock_close(&mock);
    probe_ok("the poll was told");
}
