/*
 * destroy_vs_poll KIND: a thread is blocked without limit in a poll; another destroys the consumer. The poll
 * must end with nothing and the destroy return. Plain librdkafka waits in pthread_cond_destroy for ever;
 * where the application holds a reference to the queue, it returns, and it is the poll that stays.
 */
#include "probe.h"

static rd_kafka_t *rk;
static rd_kafka_queue_t *queue;
static atomic_bool inside;
static bool got_something;

static void *poller(void *kind)
{
    inside = true;
    if (!strcmp(kind, "queue_poll"))
        got_something = rd_kafka_queue_poll(queue, -1) != NULL;
    else
        got_something = rd_kafka_consumer_poll(rk, -1) != NULL;
    return NULL;
}

int main(int argc, char **argv)
{
    struct worker w;
    struct mock mock;
    mock_open(&mock);
    rk = consumer_new(consumer_conf(mock.bootstraps));
    const char *kind = argc > 1 ? argv[1] : "consumer_poll";
    if (!strcmp(kind, "queue_poll"))
        queue = rd_kafka_queue_get_consumer(rk);
    start(&w, poller, (void *)kind);
    until_blocked(&w, &inside);

    step("destroy");
    rd_kafka_destroy(rk);
    step("join the poller");
    join(&w, "the poll");
    expect(!got_something, "the poll returned something");
    if (queue)
        rd_kafka_queue_destroy(queue);
    mock_close(&mock);
    probe_ok("the destroy woke the poll");
}
