/*
 * mockcluster: a Kafka cluster for one test file, librdkafka's embedded one, as a process of its own.
 *
 *     mockcluster TOPIC PARTITIONS MESSAGES [TOPIC PARTITIONS MESSAGES]...
 *
 * makes the topics, writes messages m000000, m000001, ... round the partitions of each, prints
 * "bootstrap=127.0.0.1:PORT" and lives until its stdin closes or SIGTERM comes.
 */
#include "numbered.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t stop;
static int failed;

static void on_term(int sig)
{
    (void)sig;
    stop = 1;
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque)
{
    (void)rk;
    (void)opaque;
    failed += m->err != 0;
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "mockcluster: %s: %s\n", what, why);
    exit(1);
}

static void fill(rd_kafka_t *rk, const char *topic, int partitions, int messages)
{
    for (int i = 0; i < messages; i++) {
        rd_kafka_resp_err_t err = produce_numbered(rk, topic, partitions, i);
        if (err)
            die(topic, rd_kafka_err2str(err));
    }
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc % 3 != 1)
        die("arguments", "TOPIC PARTITIONS MESSAGES [...]");
    struct sigaction act = {.sa_handler = on_term}; /* no SA_RESTART: poll() below must return */
    sigaction(SIGTERM, &act, NULL);

    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "test.mock.num.brokers", "1", NULL, 0);
    rd_kafka_conf_set(conf, "linger.ms", "0", NULL, 0);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (!rk)
        die("rd_kafka_new", why);
    rd_kafka_mock_cluster_t *cluster = rd_kafka_handle_mock_cluster(rk);
    for (int i = 1; i < argc; i += 3)
        rd_kafka_mock_topic_create(cluster, argv[i], atoi(argv[i + 1]), 1);
    for (int i = 1; i < argc; i += 3)
        fill(rk, argv[i], atoi(argv[i + 1]), atoi(argv[i + 2]));
    if (rd_kafka_flush(rk, 20000) || failed)
        die("produce", "not every message was delivered");

    printf("bootstrap=%s\n", rd_kafka_mock_cluster_bootstraps(cluster));
    fflush(stdout);
    while (!stop) {
        struct pollfd in = {.fd = 0, .events = POLLIN};
        char sink[256];
        if (poll(&in, 1, 500) > 0 && read(0, sink, sizeof sink) <= 0)
            break;
        rd_kafka_poll(rk, 0);
    }
    rd_kafka_destroy(rk);
    return 0;
}
