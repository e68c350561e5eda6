/* CPU time while 20 threads wait for their turn behind one poll. */
#include "bench.h"

enum { WAITERS = 20, SECONDS = 2 };

static void *poll_once(void *rk)
{
    rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, SECONDS * 1000 + 100);
    if (m)
        rd_kafka_message_destroy(m);
    return NULL;
}

int main(void)
{
    rd_kafka_t *rk = lonely_consumer("waiters");
    pthread_t thread[WAITERS + 1];

    for (int i = 0; i <= WAITERS; i++)
        if (pthread_create(&thread[i], NULL, poll_once, rk))
            die("no thread");
    sleep_us(50000);
    double cpu = cpu_ns();
    int64_t start = now_ns();
    sleep_us(SECONDS * 1000000L - 100000);
    figure("waiters_cpu_percent", (cpu_ns() - cpu) / (double)(now_ns() - start) * 100);
    for (int i = 0; i <= WAITERS; i++)
        pthread_join(thread[i], NULL);
    rd_kafka_destroy(rk);
    return 0;
}
