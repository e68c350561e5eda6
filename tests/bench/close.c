/*
 * Closing a group member: alone, and (argument "polled") while another thread is in poll(-1). Without the
 * shim the latter is not run: the poll may never return, or take what close waits for.
 */
#include "bench.h"

enum { MEMBERS = 8 };
static _Atomic int poller;
static atomic_int closing;

static void *poll_for_ever(void *rk)
{
    atomic_store(&poller, gettid_());
    while (!atomic_load(&closing)) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, -1);
        if (m)
            rd_kafka_message_destroy(m);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    bool polled = argc > 1 && !strcmp(argv[1], "polled");
    const char *brokers;
    rd_kafka_t *producer = mock(&brokers), *rk[MEMBERS];
    double ms[MEMBERS];
    int joined = 0;

    rd_kafka_mock_topic_create(rd_kafka_handle_mock_cluster(producer), "close", 1, 1);
    for (int i = 0; i < MEMBERS; i++) {
        char group[16];
        snprintf(group, sizeof group, "close%d", i);
        rk[i] = handle(RD_KAFKA_CONSUMER, "group.id", group, "bootstrap.servers", brokers, "log_level", "0",
                       NULL);
        rd_kafka_poll_set_consumer(rk[i]);
        rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(topics, "close", RD_KAFKA_PARTITION_UA);
        rd_kafka_subscribe(rk[i], topics);
        rd_kafka_topic_partition_list_destroy(topics);
    }
    for (int64_t deadline = now_ns() + 30000000000LL; joined < MEMBERS;) {
        joined = 0;
        for (int i = 0; i < MEMBERS; i++) {
            rd_kafka_topic_partition_list_t *assigned;
            rd_kafka_message_t *m = rd_kafka_consumer_poll(rk[i], 10);
            if (m)
                rd_kafka_message_destroy(m);
            if (rd_kafka_assignment(rk[i], &assigned))
                continue;
            joined += assigned->cnt > 0;
            rd_kafka_topic_partition_list_destroy(assigned);
        }
        if (now_ns() > deadline)
            die("only %d of %d members joined", joined, MEMBERS);
    }
    for (int i = 0; i < MEMBERS; i++) {
        pthread_t thread;
        atomic_store(&poller, 0);
        atomic_store(&closing, 0);
        if (polled) {
            if (pthread_create(&thread, NULL, poll_for_ever, rk[i]))
                die("no thread");
            while (!atomic_load(&poller) || !asleep(poller))
                sleep_us(100);
        }
        atomic_store(&closing, 1);
        int64_t start = now_ns();
        rd_kafka_consumer_close(rk[i]);
        ms[i] = (double)(now_ns() - start) / 1e6;
        if (polled)
            pthread_join(thread, NULL);
    }
    figure(polled ? "close_polled_ms" : "close_ms", percentile(ms, MEMBERS, 50));
    for (int i = 0; i < MEMBERS; i++)
        rd_kafka_destroy(rk[i]);
    rd_kafka_destroy(producer);
    return 0;
}
