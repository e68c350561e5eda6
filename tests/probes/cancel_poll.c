/*
 * cancel_poll: a thread is cancelled in consumer_poll(-1). On plain librdkafka it dies holding the queue's
 * mutex, so that the close hangs.
 */
#include "probe.h"

static rd_kafka_t *rk;
static atomic_bool inside;

static void *poller(void *arg)
{
    inside = true;
    rd_kafka_consumer_poll(rk, -1);
    probe_fail("the poll returned; it should have been cancelled");
    return arg;
}

int main(void)
{
    struct worker w;
    struct mock mock;
    void *result;
    mock_open(&mock);
    rk = consumer_new(consumer_conf(mock.bootstraps));
    start(&w, poller, NULL);
    until_blocked(&w, &inside);

    step("cancel");
    pthread_cancel(w.thread);
    pthread_join(w.thread, &result);
    expect(result == PTHREAD_CANCELED, "the thread was not cancelled");
    step("close");
    expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    step("destroy");
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("the handle outlived its cancelled poll");
}
