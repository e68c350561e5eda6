/*
 * batch_pause: one thread takes batches from the consumer queue, another pauses and resumes. Every message
 * must come once and in its partition's order. librdkafka before 2.1 loses most of them.
 */
#include "probe.h"

enum { PARTITIONS = 3, EACH = 1000 };

static rd_kafka_t *rk;
static atomic_bool stop;
static atomic_int flips;

static void *flipper(void *arg)
{
    rd_kafka_topic_partition_list_t *list = list_at("t", PARTITIONS, RD_KAFKA_OFFSET_INVALID);
    while (!stop) {
        rd_kafka_pause_partitions(rk, list);
        rd_kafka_resume_partitions(rk, list);
        flips++;
        pause_ms(20);
    }
    rd_kafka_topic_partition_list_destroy(list);
    return arg;
}

int main(void)
{
    struct worker w;
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", PARTITIONS);
    for (int p = 0; p < PARTITIONS; p++)
        mock_produce(&mock, "t", p, EACH);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    conf_set(conf, "fetch.wait.max.ms", "10");
    rk = consumer_new(conf);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);
    assign_all(rk, "t", PARTITIONS);
    start(&w, flipper, NULL);
    eventually(flips > 0, "the flipper never began");

    int64_t next[PARTITIONS] = {0};
    int got = 0;
    int64_t last = now_ms();
    step("consume");
    while (got < PARTITIONS * EACH && now_ms() - last < patience_ms()) {
        /* never full, so that every batch is still open at the next pause */
        static rd_kafka_message_t *batch[2 * PARTITIONS * EACH];
        ssize_t n = rd_kafka_consume_batch_queue(queue, 200, batch, 2 * PARTITIONS * EACH);
        for (ssize_t i = 0; i < n; i++) {
            rd_kafka_message_t *m = batch[i];
            if (!m->err) {
                expect(m->offset == next[m->partition],
                       "partition %d: offset %d instead of %d: lost or doubled", (int)m->partition,
                       (int)m->offset, (int)next[m->partition]);
                next[m->partition]++;
                got++;
                last = now_ms();
            }
            rd_kafka_message_destroy(m);
        }
    }
    stop = true;
    join(&w, "pause or resume");
    expect(got == PARTITIONS * EACH, "%d of %d messages", got, PARTITIONS * EACH);
    rd_kafka_queue_destroy(queue);
    step("close");
    expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    step("destroy");
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("%d messages, once each, beside %d pauses", got, (int)flips);
}
