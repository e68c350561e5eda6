/*
 * churn: many short-lived threads use one consumer, and many consumers are born and die, some with their
 * address used again. Nothing runs out.
 */
#include "calm.h"

static rd_kafka_t *rk;
static atomic_int calls;

static void brief(struct thread *t)
{
    rd_kafka_topic_partition_list_t *l = one(0, 1);
    rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 0);
    (void)t;
    if (m)
        die("a message nobody sent");
    if (rd_kafka_position(rk, l) || rd_kafka_committed(rk, l, 20000))
        die("position");
    rd_kafka_topic_partition_list_destroy(l);
    calls++;
}

int main(void)
{
    struct thread t[8];
    rd_kafka_t *seen[60] = {NULL};
    int again = 0, consumers = 0;

    mock_start(1);
    rk = consumer_new(consumer_conf("churn", NULL));
    assign(rk, 1);
    warm(rk, 1);
    warm_commit(rk);
    for (int i = 0; i < 150; i++) {
        for (int k = 0; k < 8; k++)
            start(&t[k], brief, NULL, 0);
        for (int k = 0; k < 8; k++)
            join(&t[k], 60000);
    }
    say("calls=%d", calls);

    for (int i = 0; i < 60; i++) {
        rd_kafka_t *other = consumer_new(consumer_conf("other", NULL));
        rd_kafka_queue_t *q = rd_kafka_queue_get_consumer(other);
        rd_kafka_message_t *m;
        for (int k = 0; k < consumers; k++)
            again += seen[k] == other;
        seen[consumers++] = other;
        assign(other, 1);
        m = rd_kafka_consume_queue(q, 30000);
        if (!m || m->err)
            die("consumer %d: no message", i);
        rd_kafka_message_destroy(m);
        rd_kafka_queue_destroy(q);
        if (rd_kafka_consumer_close(other))
            die("close");
        rd_kafka_destroy(other);
    }
    say("consumers=%d", consumers);
    say("again=%d", again > 0);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    mock_stop();
    return 0;
}
