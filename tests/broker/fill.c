/*
 * fill: makes topics in a real broker and writes into them, for a test.
 *
 *     fill BOOTSTRAP TOPIC PARTITIONS MESSAGES [TOPIC PARTITIONS MESSAGES]...
 *
 * waits until the broker answers, makes each topic that is not there, and writes the messages m000000,
 * m000001, ... round its partitions, as tests/clients/mockcluster.c does. FEED_PER_SECOND=N writes N a
 * second. Ends well only when the broker has acknowledged every message, each exactly once: it survives a
 * broker that goes and comes back.
 */
#include "../clients/numbered.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int failed;

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque)
{
    (void)rk;
    (void)opaque;
    failed += m->err != 0;
}

__attribute__((noreturn)) static void die(const char *what, const char *why)
{
    fprintf(stderr, "fill: %s: %s\n", what, why);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* One try, true when the topic is there; the broker may not serve yet although it listens. */
static int create(rd_kafka_t *rk, const char *topic, int partitions, char *why, size_t size)
{
    rd_kafka_queue_t *q = rd_kafka_queue_new(rk);
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    rd_kafka_NewTopic_t *wanted = rd_kafka_NewTopic_new(topic, partitions, 1, why, size);
    if (!wanted || rd_kafka_AdminOptions_set_request_timeout(options, 5000, why, size) ||
        rd_kafka_AdminOptions_set_operation_timeout(options, 5000, why, size))
        die(topic, why);
    rd_kafka_CreateTopics(rk, &wanted, 1, options, q);
    rd_kafka_event_t *event = rd_kafka_queue_poll(q, 20000);
    int made = 0;
    if (!event || rd_kafka_event_error(event)) {
        snprintf(why, size, "%s", event ? rd_kafka_event_error_string(event) : "no answer");
    } else {
        size_t n;
        const rd_kafka_topic_result_t **results =
            rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &n);
        rd_kafka_resp_err_t err = n ? rd_kafka_topic_result_error(results[0]) : RD_KAFKA_RESP_ERR__FAIL;
        made = !err || err == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS;
        snprintf(why, size, "%s", rd_kafka_err2str(err));
    }
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy(wanted);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_queue_destroy(q);
    return made;
}

static void write_all(rd_kafka_t *rk, const char *topic, int partitions, int messages, double pace)
{
    double begin = now();
    for (int i = 0; i < messages; i++) {
        rd_kafka_resp_err_t err = produce_numbered(rk, topic, partitions, i);
        if (err)
            die(topic, rd_kafka_err2str(err));
        rd_kafka_poll(rk, 0);
        while (pace > 0 && now() < begin + i / pace)
            rd_kafka_poll(rk, 5);
    }
}

int main(int argc, char **argv)
{
    if (argc < 5 || argc % 3 != 2)
        die("arguments", "BOOTSTRAP TOPIC PARTITIONS MESSAGES [...]");
    char why[512] = "";
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    const char *set[][2] = {{"bootstrap.servers", argv[1]},
                            {"enable.idempotence", "true"},
                            {"linger.ms", "2"},
                            {"reconnect.backoff.max.ms", "500"},
                            {"log_level", "3"}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        if (rd_kafka_conf_set(conf, set[i][0], set[i][1], why, sizeof why))
            die(set[i][0], why);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (!rk)
        die("rd_kafka_new", why);

    double deadline = now() + 60;
    const char *pace = getenv("FEED_PER_SECOND");
    for (int i = 2; i < argc; i += 3)
        while (!create(rk, argv[i], atoi(argv[i + 1]), why, sizeof why))
            if (now() > deadline)
                die(argv[i], why);
    for (int i = 2; i < argc; i += 3)
        write_all(rk, argv[i], atoi(argv[i + 1]), atoi(argv[i + 2]), pace ? atof(pace) : 0);
    if (rd_kafka_flush(rk, 60000) || failed)
        die("produce", "not every message was delivered");
    rd_kafka_destroy(rk);
    return 0;
}
