/*
 * busy: part of a module whose constructor starts a thread that is in librdkafka all the time.
 */
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *work(void *unused)
{
    for (;;) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_destroy(list);
        usleep(1000);
    }
    return unused;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL))
        abort();
}
