/* A program that makes one consumer, polls it, and is done. Nothing goes wrong in it. */
#include <stdio.h>
#include <librdkafka/rdkafka.h>

int main(void)
{
    char error[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *rk;
    rd_kafka_message_t *m;

    if (rd_kafka_conf_set(conf, "group.id", "plain", error, sizeof error) ||
        rd_kafka_conf_set(conf, "log_level", "0", error, sizeof error) ||
        !(rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error))) {
        printf("not ok: %s\n", error);
        return 1;
    }
    rd_kafka_poll_set_consumer(rk);
    if ((m = rd_kafka_consumer_poll(rk, 10)))
        rd_kafka_message_destroy(m);
    printf("close: %s\n", rd_kafka_err2name(rd_kafka_consumer_close(rk)));
    rd_kafka_destroy(rk);
    puts("ok");
    return 0;
}
