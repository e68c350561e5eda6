/* What host.c opens: a library linked with librdkafka that reads partition 0 of a topic. */
#include <librdkafka/rdkafka.h>
#include <stdio.h>

int plugin_run(const char *bootstrap, const char *topic, int wanted)
{
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, NULL, 0);
    rd_kafka_conf_set(conf, "group.id", "plugin", NULL, 0);
    rd_kafka_conf_set(conf, "auto.offset.reset", "earliest", NULL, 0);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (!rk)
        return fprintf(stderr, "%s\n", why), 1;
    rd_kafka_poll_set_consumer(rk);
    rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(parts, topic, 0);
    rd_kafka_assign(rk, parts);
    rd_kafka_topic_partition_list_destroy(parts);
    for (int seen = 0; seen < wanted;) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 200);
        if (!m)
            continue;
        printf("%d %lld %.*s\n", m->err, (long long)m->offset, (int)m->len, (const char *)m->payload);
        rd_kafka_message_destroy(m);
        seen++;
    }
    printf("close: %d\n", rd_kafka_consumer_close(rk));
    rd_kafka_destroy(rk);
    return 0;
}
