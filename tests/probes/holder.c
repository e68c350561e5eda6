/*
 * holder: a worker holds a message and goes on calling until it is told that the consumer is gone; another
 * thread destroys the consumer. The destroy waits for the message, so the worker must not be made to wait for
 * the destroy. (On plain librdkafka the worker calls into a handle that is being torn down: it hangs or
 * crashes.)
 */
#include "probe.h"

static rd_kafka_t *rk;
static atomic_bool has_it;

static void *worker(void *arg)
{
    rd_kafka_message_t *m = NULL;
    while (!m)
        m = rd_kafka_consumer_poll(rk, 1000);
    has_it = true;
    while (!rd_kafka_commit_message(rk, m, 1))
        ;
    rd_kafka_message_destroy(m);
    return arg;
}

int main(void)
{
    struct worker w;
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 1);
    mock_produce(&mock, "t", 0, 10);
    rk = consumer_new(consumer_conf(mock.bootstraps));
    assign_all(rk, "t", 1);
    start(&w, worker, NULL);
    eventually(has_it, "no message");
    step("destroy");
    int64_t began = now_ms();
    rd_kafka_destroy(rk);
    expect(now_ms() - began < 20000, "the destroy took %lld ms", (long long)(now_ms() - began));
    step("join the worker");
    join(&w, "a commit");
    mock_close(&mock);
    probe_ok("the worker was told in time to let go of its message");
}
