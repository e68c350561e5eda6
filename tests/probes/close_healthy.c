/*
 * close_healthy ASSIGNOR HOW: a close with nothing wrong. Prints what the application sees of it: each
 * callback with its thread, the result, what is committed, and whether the group was left; a test compares
 * these lines without and with RDGATE_CLOSE_MS.
 *
 * ASSIGNOR  range, cooperative-sticky
 * HOW       callback | nothing | events: how the application learns of a rebalance
 */
#include "probe.h"

static rd_kafka_t *rk;
static atomic_bool assigned, closing;
static pthread_t closer;
static bool incremental;

static void say(const char *what, rd_kafka_resp_err_t err, int n)
{
    if (closing)
        step("%s %s %d, %s", what, rd_kafka_err2name(err), n,
             pthread_equal(pthread_self(), closer) ? "on the closing thread" : "on another thread");
}

static void answer(rd_kafka_resp_err_t err, const rd_kafka_topic_partition_list_t *list)
{
    bool given = err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    if (incremental) {
        rd_kafka_error_t *e =
            given ? rd_kafka_incremental_assign(rk, list) : rd_kafka_incremental_unassign(rk, list);
        expect(!e, "incremental: %s", rd_kafka_error_string(e));
    } else {
        expect_err(rd_kafka_assign(rk, given ? list : NULL), RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    assigned = given;
}

static void on_rebalance(rd_kafka_t *h, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list,
                         void *opaque)
{
    (void)h, (void)opaque;
    say("rebalance", err, list->cnt);
    answer(err, list);
}

static void on_commit(rd_kafka_t *h, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list,
                      void *opaque)
{
    (void)h, (void)opaque;
    say("offset commit", err, list->cnt);
}

/* The mock cluster shows no requests in 2.0.2, so librdkafka's own word is taken. */
static atomic_int left;

static void on_log(const rd_kafka_t *h, int level, const char *fac, const char *text)
{
    (void)h, (void)level;
    if (!strcmp(fac, "LEAVEGROUP") && strstr(text, "response received"))
        left++;
}

int main(int argc, char **argv)
{
    const char *assignor = argc > 1 ? argv[1] : "range", *how = argc > 2 ? argv[2] : "callback";
    bool events = !strcmp(how, "events");
    struct mock mock;
    incremental = !strcmp(assignor, "cooperative-sticky");
    mock_open(&mock);
    mock_topic(&mock, "t", 2);
    for (int p = 0; p < 2; p++)
        mock_produce(&mock, "t", p, 100);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    conf_set(conf, "enable.auto.commit", "true");
    conf_set(conf, "auto.commit.interval.ms", "3600000");
    conf_set(conf, "session.timeout.ms", "300000");
    conf_set(conf, "max.poll.interval.ms", "300000");
    conf_set(conf, "partition.assignment.strategy", assignor);
    conf_set(conf, "debug", "cgrp");
    conf_set(conf, "log_level", "7");
    rd_kafka_conf_set_log_cb(conf, on_log);
    rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
    if (events)
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_REBALANCE);
    else if (!strcmp(how, "callback"))
        rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rk = consumer_new(conf);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);
    expect_err(rd_kafka_poll_set_consumer(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    subscribe_to(rk, "t");
    while (events && !assigned) {
        rd_kafka_event_t *e = rd_kafka_queue_poll(queue, 100);
        if (e && rd_kafka_event_type(e) == RD_KAFKA_EVENT_REBALANCE)
            answer(rd_kafka_event_error(e), rd_kafka_event_topic_partition_list(e));
        if (e)
            rd_kafka_event_destroy(e);
    }
    for (int got = 0; got < 10;) /* the rest stays in the queue: the close must not commit it */
        got += poll_once(rk, 100);
    rd_kafka_topic_partition_list_t *at = list_at("t", 2, RD_KAFKA_OFFSET_INVALID);
    expect_err(rd_kafka_position(rk, at), RD_KAFKA_RESP_ERR_NO_ERROR);
    int64_t position[2] = {at->elems[0].offset, at->elems[1].offset};
    eventually(rd_kafka_queue_length(queue) > 0, "nothing is left in the queue");

    closer = pthread_self();
    closing = true;
    rd_kafka_resp_err_t r = rd_kafka_consumer_close(rk);
    step("close %s, closed %d", rd_kafka_err2name(r), rd_kafka_consumer_closed(rk));
    closing = false;
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
    step("left the group %d times", (int)left);

    conf = consumer_conf(mock.bootstraps);
    conf_set(conf, "partition.assignment.strategy", assignor);
    rk = consumer_new(conf);
    expect_err(rd_kafka_committed(rk, at, 10000), RD_KAFKA_RESP_ERR_NO_ERROR);
    for (int p = 0; p < 2; p++)
        expect(at->elems[p].offset == position[p] || (position[p] < 0 && at->elems[p].offset < 0),
               "partition %d: %d was read and %d committed", p, (int)position[p], (int)at->elems[p].offset);
    step("committed what was read");
    rd_kafka_topic_partition_list_destroy(at);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("closed");
}
