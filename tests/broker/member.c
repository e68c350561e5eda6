/*
 * member: a well-behaved consumer, as a service of a group is written in C.
 *
 *     member BOOTSTRAP GROUP TOPIC [CONF=VALUE]...
 *
 * One thread polls and stores offsets, another commits them twice a second, the rebalance callback commits
 * what is taken away. Each message is a line "PARTITION OFFSET VALUE", written when it has come and before
 * its offset is stored: nothing is lost, whenever the process ends. SIGTERM: the committer ends, the consumer
 * is closed and destroyed, status 0. MESSAGES=N does the same after N messages. It must not know about the
 * shim.
 */
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_int stop;

static void on_term(int sig)
{
    (void)sig;
    stop = 1;
}

__attribute__((noreturn)) static void die(const char *what, const char *why)
{
    fprintf(stderr, "member: %s: %s\n", what, why);
    _exit(1);
}

static void told(const char *what, rd_kafka_resp_err_t err)
{
    if (err && err != RD_KAFKA_RESP_ERR__NO_OFFSET)
        fprintf(stderr, "member: %s: %s\n", what, rd_kafka_err2name(err));
}

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list,
                         void *opaque)
{
    const char *protocol = rd_kafka_rebalance_protocol(rk);
    int cooperative = protocol && !strcmp(protocol, "COOPERATIVE");
    int assigned = err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    (void)opaque;
    fprintf(stderr, "member: %s %d\n", assigned ? "gets" : "gives", list->cnt);
    if (!assigned && !rd_kafka_assignment_lost(rk))
        told("commit before giving", rd_kafka_commit(rk, NULL, 0));
    if (cooperative)
        rd_kafka_error_destroy(assigned ? rd_kafka_incremental_assign(rk, list)
                                        : rd_kafka_incremental_unassign(rk, list));
    else
        told("assign", rd_kafka_assign(rk, assigned ? list : NULL));
}

static void *committer(void *arg)
{
    rd_kafka_t *rk = arg;
    while (!stop) {
        const struct timespec half = {.tv_nsec = 500000000};
        nanosleep(&half, NULL);
        told("commit", rd_kafka_commit(rk, NULL, 0));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        die("arguments", "BOOTSTRAP GROUP TOPIC [CONF=VALUE]...");
    char why[512];
    const char *limit = getenv("MESSAGES");
    long left = limit ? atol(limit) : -1;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    const char *set[][2] = {{"bootstrap.servers", argv[1]},
                            {"group.id", argv[2]},
                            {"auto.offset.reset", "earliest"},
                            {"enable.auto.commit", "false"},
                            {"enable.auto.offset.store", "false"},
                            {"reconnect.backoff.max.ms", "500"},
                            {"log_level", "3"}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        if (rd_kafka_conf_set(conf, set[i][0], set[i][1], why, sizeof why))
            die(set[i][0], why);
    for (int i = 4; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value)
            die(argv[i], "no value");
        *value = 0;
        if (rd_kafka_conf_set(conf, argv[i], value + 1, why, sizeof why))
            die(argv[i], why);
    }
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);

    /* The committer leaves SIGTERM to the poller, whose poll goes on; both look at stop. */
    struct sigaction act = {.sa_handler = on_term};
    sigaction(SIGTERM, &act, NULL);

    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (!rk)
        die("rd_kafka_new", why);
    fprintf(stderr, "# librdkafka %s\n", rd_kafka_version_str());
    rd_kafka_poll_set_consumer(rk);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, argv[3], RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t err = rd_kafka_subscribe(rk, topics);
    if (err)
        die("subscribe", rd_kafka_err2str(err));
    rd_kafka_topic_partition_list_destroy(topics);
    pthread_t thread;
    if (pthread_create(&thread, NULL, committer, rk))
        die("thread", "cannot be made");

    while (!stop) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 200);
        if (!m)
            continue;
        if (m->err) {
            told("poll", m->err);
        } else {
            printf("%d %lld %.*s\n", (int)m->partition, (long long)m->offset, (int)m->len,
                   (char *)m->payload);
            fflush(stdout);
            told("store", rd_kafka_offset_store(m->rkt, m->partition, m->offset));
            if (left > 0 && --left == 0)
                stop = 1;
        }
        rd_kafka_message_destroy(m);
    }
    pthread_join(thread, NULL);
    err = rd_kafka_consumer_close(rk);
    if (err)
        die("close", rd_kafka_err2str(err));
    rd_kafka_destroy(rk);
    fprintf(stderr, "member: closed\n");
    return 0;
}
