/*
 * still: does for a while what takes long and is right: a poll without limit and a long patient one, a
 * callback that takes its time, a rebalance that another thread answers while the callback waits, a consumer
 * with partitions of its own that nobody polls. Nothing may be said of it. [SECONDS]
 */
#include "probe.h"

static rd_kafka_t *idle, *patient, *slow, *member, *alone;
static atomic_bool stop, callbacks, asked, answered;
static rd_kafka_resp_err_t what;
static rd_kafka_topic_partition_list_t *partitions;

static int on_stats(rd_kafka_t *rk, char *json, size_t len, void *opaque)
{
    (void)rk, (void)json, (void)len, (void)opaque;
    callbacks = true;
    pause_ms(300); /* work */
    return 0;
}

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list,
                         void *opaque)
{
    (void)rk, (void)opaque;
    what = err;
    partitions = list;
    answered = false;
    asked = true;
    eventually(answered, "nobody answered");
}

static void *answerer(void *arg)
{
    while (!stop) {
        if (!asked) {
            pause_ms(1);
            continue;
        }
        asked = false;
        pause_ms(300); /* work */
        rd_kafka_assign(member, what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? partitions : NULL);
        answered = true;
    }
    return arg;
}

static void *poll_forever(void *arg)
{
    poll_once(arg, -1);
    return NULL;
}

static void *poll_long(void *arg)
{
    while (!stop)
        poll_once(arg, 60000);
    return NULL;
}

static void *poll_often(void *arg)
{
    while (!stop)
        poll_once(arg, 100);
    return NULL;
}

int main(int argc, char **argv)
{
    int64_t until = now_ms() + (argc > 1 ? atoi(argv[1]) : 5) * 1000;
    struct worker w[5];
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 2);
    idle = consumer_new(consumer_conf(NOWHERE));
    patient = consumer_new(consumer_conf(NOWHERE));
    rd_kafka_conf_t *conf = consumer_conf(NOWHERE);
    rd_kafka_conf_set_stats_cb(conf, on_stats);
    conf_set(conf, "statistics.interval.ms", "1000");
    slow = consumer_new(conf);
    expect_err(rd_kafka_poll_set_consumer(slow), RD_KAFKA_RESP_ERR_NO_ERROR);
    conf = consumer_conf(mock.bootstraps);
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    member = consumer_new(conf);
    subscribe_to(member, "t");
    alone = consumer_new(consumer_conf(mock.bootstraps));
    assign_all(alone, "t", 2);

    start(&w[0], poll_forever, idle);
    start(&w[1], poll_long, patient);
    start(&w[2], poll_often, slow);
    start(&w[3], poll_often, member);
    start(&w[4], answerer, NULL);
    eventually(answered && callbacks, "no rebalance or no callback");
    eventually(now_ms() >= until, "time stands still");
    rd_kafka_t *all[] = {idle, patient, slow, member, alone};
    if (shimmed())
        expect_err(rd_kafka_consumer_close(member), RD_KAFKA_RESP_ERR_NO_ERROR);
    stop = true;
    /* Without the shim a close beside a poll may hang. */
    for (int i = 0; i < 5 && shimmed(); i++)
        if (all[i] != member)
            rd_kafka_consumer_close(all[i]);
    for (int i = 0; i < 5 && shimmed(); i++)
        join(&w[i], "a thread");
    printf("ok still\n");
    fflush(stdout);
    _exit(0);
}
