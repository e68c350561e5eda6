/*
 * spin: polls a consumer of nobody's without waiting, three million times, for profilers to look at.
 */
#include <librdkafka/rdkafka.h>
#include <stdio.h>

int main(void)
{
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (rd_kafka_conf_set(conf, "group.id", "spin", why, sizeof(why)))
        return 1;
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof(why));
    if (!rk)
        return 1;
    for (int i = 0; i < 3000000; i++) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 0);
        if (m)
            rd_kafka_message_destroy(m);
    }
    rd_kafka_destroy(rk);
    printf("ok\n");
    return 0;
}
