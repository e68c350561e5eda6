/* Eight threads that use one consumer at once: two poll, two commit and ask, four store offsets and read. */
#include "bench.h"

enum { THREADS = 8, MS = 1000 };
static rd_kafka_t *rk;
static atomic_bool stop;
static atomic_long calls;

static void *use(void *arg)
{
    long which = (long)arg, n = 0;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1), *got;
    int64_t low, high;

    rd_kafka_topic_partition_list_add(list, "mix", 0)->offset = 1;
    for (; !atomic_load_explicit(&stop, memory_order_relaxed); n++) {
        if (which < 2) {
            rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 1);
            if (m)
                rd_kafka_message_destroy(m);
        } else if (which < 4) {
            if (!rd_kafka_assignment(rk, &got))
                rd_kafka_topic_partition_list_destroy(got);
        } else if (n % 2) {
            rd_kafka_offsets_store(rk, list);
        } else {
            rd_kafka_get_watermark_offsets(rk, "mix", 0, &low, &high);
        }
    }
    atomic_fetch_add(&calls, n);
    rd_kafka_topic_partition_list_destroy(list);
    return NULL;
}

int main(void)
{
    pthread_t thread[THREADS];
    rk = lonely_consumer("mix");
    int64_t start = now_ns();
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, use, (void *)i))
            die("no thread");
    sleep_us(MS * 1000L);
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    figure("mix_per_s", (double)atomic_load(&calls) / ((double)(now_ns() - start) / 1e9));
    rd_kafka_destroy(rk);
    return 0;
}
