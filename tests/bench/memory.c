/* Memory of a process with one consumer, and of each of 100 more. */
#include "bench.h"

enum { MORE = 100 };

static double kib(const char *key) /* from smaps_rollup */
{
    char line[256];
    double value = -1;
    FILE *f = fopen("/proc/self/smaps_rollup", "re");
    if (!f)
        die("no /proc/self/smaps_rollup");
    while (value < 0 && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key)))
            value = strtod(line + strlen(key), NULL);
    fclose(f);
    return value;
}

static rd_kafka_t *used_consumer(void)
{
    rd_kafka_t *rk = lonely_consumer("memory");
    rd_kafka_topic_partition_list_t *none = rd_kafka_topic_partition_list_new(0);
    for (int i = 0; i < 3; i++)
        rd_kafka_consumer_poll(rk, 0);
    rd_kafka_pause_partitions(rk, none);
    rd_kafka_topic_partition_list_destroy(none);
    return rk;
}

static double private_kib(void)
{
    return kib("Private_Clean:") + kib("Private_Dirty:");
}

int main(void)
{
    rd_kafka_t *rk[1 + MORE];
    double rss, private;

    rk[0] = used_consumer();
    sleep_us(100000); /* its threads settle */
    rss = kib("Rss:");
    private = private_kib();
    figure("memory_rss_kib", rss);
    figure("memory_private_kib", private);
    for (int i = 1; i <= MORE; i++)
        rk[i] = used_consumer();
    sleep_us(300000);
    figure("memory_rss_each_kib", (kib("Rss:") - rss) / MORE);
    figure("memory_private_each_kib", (private_kib() - private) / MORE);
    for (int i = 0; i <= MORE; i++)
        rd_kafka_destroy(rk[i]);
    return 0;
}
