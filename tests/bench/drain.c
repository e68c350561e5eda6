/* Throughput of consumer_poll over messages that have been fetched already. */
#include "bench.h"

enum { PARTITIONS = 4, EACH = 40000, N = PARTITIONS * EACH, SIZE = 100 };

static void fill(rd_kafka_t *producer)
{
    char payload[SIZE];
    rd_kafka_mock_topic_create(rd_kafka_handle_mock_cluster(producer), "drain", PARTITIONS, 1);
    memset(payload, 'x', sizeof payload);
    for (int i = 0; i < N; i++)
        if (rd_kafka_producev(producer, RD_KAFKA_V_TOPIC("drain"), RD_KAFKA_V_PARTITION(i % PARTITIONS),
                              RD_KAFKA_V_VALUE(payload, sizeof payload),
                              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END))
            die("produce failed");
    if (rd_kafka_flush(producer, 30000))
        die("flush failed");
}

int main(void)
{
    const char *brokers;
    rd_kafka_t *producer = mock(&brokers);
    fill(producer);

    rd_kafka_t *rk = handle(RD_KAFKA_CONSUMER, "group.id", "drain", "bootstrap.servers", brokers, "log_level",
                            "0", "enable.auto.commit", "false", "queued.min.messages", "1000000",
                            "queued.max.messages.kbytes", "1000000", NULL);
    rd_kafka_poll_set_consumer(rk);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);
    rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_new(PARTITIONS);
    for (int p = 0; p < PARTITIONS; p++)
        rd_kafka_topic_partition_list_add(all, "drain", p)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(rk, all);
    rd_kafka_topic_partition_list_destroy(all);

    int64_t deadline = now_ns() + 30000000000LL;
    while (rd_kafka_queue_length(queue) < N) {
        if (now_ns() > deadline)
            die("only %zu of %d messages were fetched", rd_kafka_queue_length(queue), N);
        sleep_us(1000);
    }
    sleep_us(100000); /* the fetchers fall asleep */

    int64_t start = now_ns();
    for (int got = 0; got < N;) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 1000);
        if (!m)
            die("lost: %d of %d messages came", got, N);
        got += !m->err;
        rd_kafka_message_destroy(m);
    }
    figure("drain_per_s", N / ((double)(now_ns() - start) / 1e9));
    rd_kafka_queue_destroy(queue);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    rd_kafka_destroy(producer);
    return 0;
}
