/* What consumer_poll(rk, 0) costs when nobody else uses the consumer. */
#include "bench.h"

int main(void)
{
    enum { BATCHES = 20, CALLS = 50000 };
    double ns[BATCHES];
    rd_kafka_t *rk = lonely_consumer("poll0");

    for (int b = -2; b < BATCHES; b++) { /* the first two only warm up */
        int64_t start = now_ns();
        for (int i = 0; i < CALLS; i++) {
            rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 0);
            if (m)
                rd_kafka_message_destroy(m);
        }
        if (b >= 0)
            ns[b] = (double)(now_ns() - start) / CALLS;
    }
    figure("poll0_ns",
           percentile(ns, BATCHES, 25)); /* the lower quartile: other work on the machine only adds */
    rd_kafka_destroy(rk);
    return 0;
}
