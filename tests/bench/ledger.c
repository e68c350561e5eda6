/* What it costs to write down that a message was given back: at once, and after a thousand others were taken.
 */
#include "bench.h"

enum { HALF = 12000, N = 2 * HALF, KEPT = 1000, SIZE = 100 }; /* the mock keeps 5 MB of a partition */

static rd_kafka_message_t *take(rd_kafka_t *rk)
{
    for (;;) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 1000);
        if (!m)
            die("a message was lost");
        if (!m->err)
            return m;
        rd_kafka_message_destroy(m);
    }
}

int main(void)
{
    const char *brokers;
    char payload[SIZE] = "";
    rd_kafka_t *producer = mock(&brokers);
    rd_kafka_mock_topic_create(rd_kafka_handle_mock_cluster(producer), "ledger", 1, 1);
    for (int i = 0; i < N; i++)
        if (rd_kafka_producev(producer, RD_KAFKA_V_TOPIC("ledger"), RD_KAFKA_V_PARTITION(0),
                              RD_KAFKA_V_VALUE(payload, sizeof payload),
                              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END))
            die("produce failed");
    if (rd_kafka_flush(producer, 30000))
        die("flush failed");
    rd_kafka_t *rk = handle(RD_KAFKA_CONSUMER, "group.id", "ledger", "bootstrap.servers", brokers,
                            "log_level", "0", "enable.auto.commit", "false", NULL);
    rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(all, "ledger", 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(rk, all);
    rd_kafka_topic_partition_list_destroy(all);

    /* The clock is read the same number of times with and without the shim, and so cancels out. */
    double at_once = 0, later = 0;
    for (int i = 0; i < HALF; i++) {
        rd_kafka_message_t *m = take(rk);
        int64_t start = now_ns();
        rd_kafka_message_destroy(m);
        at_once += (double)(now_ns() - start);
    }
    rd_kafka_message_t *kept[KEPT];
    for (int round = 0; round < HALF / KEPT; round++) {
        for (int i = 0; i < KEPT; i++)
            kept[i] = take(rk);
        int64_t start = now_ns();
        for (int i = 0; i < KEPT; i++)
            rd_kafka_message_destroy(kept[i]);
        later += (double)(now_ns() - start);
    }
    figure("ledger_at_once_ns", at_once / HALF);
    figure("ledger_later_ns", later / HALF);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    rd_kafka_destroy(producer);
    return 0;
}
