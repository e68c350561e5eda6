/* 200 consumers and 50 threads that collide on them, for whoever watches: crowd_ready, then calls a second.
 */
#include "bench.h"

enum { CONSUMERS = 200, THREADS = 50, SECONDS = 5 };

static rd_kafka_t *rk[CONSUMERS];
static atomic_bool stop;
static atomic_long calls;

static void *use(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    long n = 0;
    for (; !atomic_load_explicit(&stop, memory_order_relaxed); n++) {
        /* Most of the time a few that everybody wants. */
        rd_kafka_t *one = rk[(unsigned)rand_r(&seed) % (rand_r(&seed) % 4 ? 20 : CONSUMERS)];
        rd_kafka_topic_partition_list_t *list;
        if (rand_r(&seed) % 2) {
            rd_kafka_message_t *m = rd_kafka_consumer_poll(one, 5);
            if (m)
                rd_kafka_message_destroy(m);
        } else if (!rd_kafka_assignment(one, &list)) {
            rd_kafka_topic_partition_list_destroy(list);
        }
    }
    calls += n;
    return NULL;
}

int main(void)
{
    pthread_t thread[THREADS];
    for (int i = 0; i < CONSUMERS; i++)
        rk[i] = lonely_consumer("crowd");
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, use, (void *)(i + 1)))
            die("no thread");
    sleep_us(2000000); /* until everything has been used once */
    figure("crowd_ready", 1);
    long before = calls;
    int64_t start = now_ns();
    double cpu = cpu_ns();
    sleep_us(SECONDS * 1000000L);
    stop = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    double seconds = (double)(now_ns() - start) / 1e9;
    figure("crowd_per_s", (double)(calls - before) / (seconds + 2)); /* they began two seconds before */
    figure("crowd_cpu_percent", (cpu_ns() - cpu) / 1e7 / seconds);
    fflush(stdout);
    _exit(0); /* two hundred consumers take their time to close */
}
