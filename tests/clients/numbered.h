/*
 * numbered.h: the messages that the clusters of the tests hold: m000000, m000001, ... round the partitions of
 * a topic.
 */
#pragma once

#include <librdkafka/rdkafka.h>
#include <stdio.h>

/* Hands over message i; waits while the producer's queue is full. */
static rd_kafka_resp_err_t produce_numbered(rd_kafka_t *rk, const char *topic, int partitions, int i)
{
    char text[32];
    int length = snprintf(text, sizeof text, "m%06d", i);
    rd_kafka_resp_err_t err;
    while ((err = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(i % partitions),
                                    RD_KAFKA_V_VALUE(text, (size_t)length),
                                    RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END)) ==
           RD_KAFKA_RESP_ERR__QUEUE_FULL)
        rd_kafka_poll(rk, 10);
    return err;
}
