/*
 * deadlock KIND: threads that wait for each other for ever.
 *   answer  a thread closes, holding the mutex that the revoke callback in another thread's poll wants;
 * librdkafka hangs without any gate gate    a thread destroys, holding the mutex that a callback of another
 * thread's poll wants two     the callbacks of two consumers destroy the other one each A sync commit instead
 * of the close does not deadlock: librdkafka 2.0.2 and 2.15 answer it beside the callback
 * (`commit`, which ends well).
 */
#include "probe.h"

static rd_kafka_t *rk[2];
static const char *kind;
static pthread_mutex_t application_mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool in_callback, locked, assigned, both[2];

static void on_rebalance(rd_kafka_t *handle, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list,
                         void *opaque)
{
    (void)opaque;
    if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        rd_kafka_assign(handle, list);
        assigned = true;
        return;
    }
    in_callback = true;
    pthread_mutex_lock(&application_mutex);
    rd_kafka_assign(handle, NULL);
    pthread_mutex_unlock(&application_mutex);
}

static int on_stats(rd_kafka_t *handle, char *json, size_t len, void *opaque)
{
    (void)json, (void)len, (void)opaque;
    int mine = handle == rk[1];
    if (!strcmp(kind, "two")) {
        if (both[mine])
            return 0;
        both[mine] = true;
        eventually(both[!mine], "the other callback never ran");
        rd_kafka_destroy(rk[!mine]);
    } else {
        if (in_callback && !strcmp(kind, "timed"))
            return 0;
        in_callback = true;
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 3;
        if (strcmp(kind, "timed") != 0)
            pthread_mutex_lock(&application_mutex);
        else if (pthread_mutex_timedlock(&application_mutex, &until))
            return 0;
        pthread_mutex_unlock(&application_mutex);
    }
    return 0;
}

static void *poller(void *arg)
{
    poll_once(arg, -1);
    return NULL;
}

static rd_kafka_t *with_stats(void)
{
    rd_kafka_conf_t *conf = consumer_conf(NOWHERE);
    rd_kafka_conf_set_stats_cb(conf, on_stats);
    conf_set(conf, "statistics.interval.ms", "10");
    rd_kafka_t *handle = consumer_new(conf);
    expect_err(rd_kafka_poll_set_consumer(handle), RD_KAFKA_RESP_ERR_NO_ERROR);
    return handle;
}

static void *close_or_commit(void *arg)
{
    pthread_mutex_lock(&application_mutex);
    locked = true;
    eventually(in_callback, "no callback");
    step("%s", kind);
    if (!strcmp(kind, "commit"))
        expect_err(commit_at(rk[0], "t", 1, 0), RD_KAFKA_RESP_ERR_NO_ERROR);
    else
        expect_err(rd_kafka_consumer_close(rk[0]), RD_KAFKA_RESP_ERR_NO_ERROR);
    pthread_mutex_unlock(&application_mutex);
    return arg;
}

static void answer(void)
{
    struct worker w[2];
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 2);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rk[0] = consumer_new(conf);
    subscribe_to(rk[0], "t");
    eventually((poll_once(rk[0], 50), assigned), "no assignment");
    start(&w[0], close_or_commit, NULL);
    eventually(locked, "the mutex was not locked");
    expect_err(rd_kafka_unsubscribe(rk[0]), RD_KAFKA_RESP_ERR_NO_ERROR);
    start(&w[1], poller, rk[0]);
    if (strcmp(kind, "commit") != 0)
        until_said("finding: deadlock");
    else
        join(&w[0], "the commit");
    if (strcmp(kind, "commit") != 0 && !shimmed())
        join(&w[0], "the close");
}

static void gate(void)
{
    struct worker w;
    rk[0] = with_stats();
    pthread_mutex_lock(&application_mutex);
    start(&w, poller, rk[0]);
    eventually(in_callback, "no callback");
    step("destroy");
    rd_kafka_destroy(rk[0]);
    if (!strcmp(kind, "gate"))
        until_said("finding: deadlock");
    pthread_mutex_unlock(&application_mutex);
}

static void two(void)
{
    struct worker w[2];
    rk[0] = with_stats();
    rk[1] = with_stats();
    step("two callbacks");
    start(&w[0], poller, rk[0]);
    start(&w[1], poller, rk[1]);
    join(&w[0], "the first callback");
    join(&w[1], "the second callback");
}

int main(int argc, char **argv)
{
    kind = argc > 1 ? argv[1] : "";
    if (!strcmp(kind, "gate") || !strcmp(kind, "timed"))
        gate();
    else if (!strcmp(kind, "two"))
        two();
    else
        answer();
    printf("ok %s\n", kind);
    fflush(stdout);
    _exit(0); /* the deadlock is still there */
}
