/* What a call costs that does next to nothing itself, when nobody else uses the consumer: pausing no
 * partitions. */
#include "bench.h"

int main(void)
{
    enum { BATCHES = 20, CALLS = 20000 };
    double ns[BATCHES];
    rd_kafka_t *rk = lonely_consumer("call");
    rd_kafka_topic_partition_list_t *none = rd_kafka_topic_partition_list_new(1);

    for (int b = -2; b < BATCHES; b++) { /* the first two only warm up */
        int64_t start = now_ns();
        for (int i = 0; i < CALLS; i++)
            if (rd_kafka_pause_partitions(rk, none))
                die("cannot pause nothing");
        if (b >= 0)
            ns[b] = (double)(now_ns() - start) / CALLS;
    }
    figure("call_ns", percentile(ns, BATCHES, 25));
    rd_kafka_topic_partition_list_destroy(none);
    rd_kafka_destroy(rk);
    return 0;
}
