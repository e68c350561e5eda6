/*
 * How long a CALL takes to get in against a poll that is blocked for ever: pause of an empty list costs next
 * to nothing by itself, so that its duration is the wait.
 */
#include "bench.h"

enum { ROUNDS = 1000 };
static _Atomic int poller;
static atomic_bool stop;

static void *poll_for_ever(void *rk)
{
    atomic_store(&poller, gettid_());
    while (!atomic_load(&stop)) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, -1);
        if (m)
            rd_kafka_message_destroy(m);
    }
    return NULL;
}

static double pause_us(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *none)
{
    int64_t start = now_ns();
    rd_kafka_pause_partitions(rk, none);
    return (double)(now_ns() - start) / 1e3;
}

int main(void)
{
    static double us[ROUNDS];
    rd_kafka_t *rk = lonely_consumer("preempt");
    rd_kafka_topic_partition_list_t *none = rd_kafka_topic_partition_list_new(0);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);
    pthread_t thread;
    double bare;

    for (int i = 0; i < ROUNDS; i++)
        us[i] = pause_us(rk, none);
    bare = percentile(us, ROUNDS, 50);
    if (pthread_create(&thread, NULL, poll_for_ever, rk))
        die("no thread");
    for (int i = 0; i < ROUNDS; i++) {
        int64_t deadline = now_ns() + 5000000000LL;
        sleep_us(300); /* not in step with what the poller does */
        while (!atomic_load(&poller) || !asleep(poller))
            if (now_ns() > deadline)
                die("the poll is not blocked");
        us[i] = pause_us(rk, none) - bare;
    }
    figure("preempt_p50_us", percentile(us, ROUNDS, 50));
    figure("preempt_p99_us", percentile(us, ROUNDS, 99));
    atomic_store(&stop, true);
    rd_kafka_queue_yield(queue);
    pthread_join(thread, NULL);
    rd_kafka_topic_partition_list_destroy(none);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
    return 0;
}
