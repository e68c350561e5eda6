/*
 * escape longjmp|throw stats|rebalance: a callback is left by a long jump or an exception, across
 * librdkafka's frames. librdkafka survives that; a gate that believes its owner still inside never opens
 * again. Other threads' calls and the close must get through.
 */
#include "probe.h"

#include <csetjmp>

static rd_kafka_t *rk;
static bool by_throw, by_stats, escaped;
static jmp_buf back;

static void escape()
{
    escaped = true;
    if (by_throw)
        throw 42;
    longjmp(back, 1);
}

static int on_stats(rd_kafka_t *, char *, size_t, void *)
{
    if (by_stats && !escaped)
        escape();
    return 0;
}

static void on_rebalance(rd_kafka_t *handle, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list,
                         void *)
{
    if (!by_stats && !escaped)
        escape();
    rd_kafka_assign(handle, err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? list : nullptr);
}

/* Polls until a callback is left, and says whether the poll was left with it. */
static bool poll_out()
{
    if (setjmp(back))
        return true;
    try {
        eventually((poll_once(rk, 100), escaped), "no callback");
    } catch (int) {
        return true;
    }
    return false;
}

static void *other(void *)
{
    rd_kafka_topic_partition_list_t *list = list_at("t", 1, 0);
    rd_kafka_pause_partitions(rk, list);
    rd_kafka_commit(rk, list, 0);
    rd_kafka_resume_partitions(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    return nullptr;
}

static void *closer(void *)
{
    expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    return nullptr;
}

int main(int argc, char **argv)
{
    by_throw = argc > 1 && !strcmp(argv[1], "throw");
    by_stats = argc <= 2 || !strcmp(argv[2], "stats");
    struct worker w;
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 1);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    rd_kafka_conf_set_stats_cb(conf, on_stats);
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    conf_set(conf, "statistics.interval.ms", "20");
    rk = consumer_new(conf);
    expect_err(rd_kafka_poll_set_consumer(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    if (by_stats)
        assign_all(rk, "t", 1);
    else
        subscribe_to(rk, "t");

    step("poll");
    expect(poll_out(), "the callback was not left");
    step("call from another thread");
    start(&w, other, nullptr);
    join(&w, "the other thread's call");
    if (!by_stats) /* what the callback owed */
        expect_err(rd_kafka_assign(rk, nullptr), RD_KAFKA_RESP_ERR_NO_ERROR);
    step("poll again");
    poll_once(rk, 50);
    step("close");
    start(&w, closer, nullptr);
    join(&w, "the close");
    step("destroy");
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("the consumer outlived its escaped callback");
}
