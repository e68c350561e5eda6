/*
 * close_given_up KIND [DESTROY]: a close that cannot end. It must be given up, say so, and leave a handle
 * that can be destroyed. Plain librdkafka waits for ever, or as long as the session timeout, which is long
 * here.
 *
 * KIND     revoke       the rebalance callback does not answer the revoke
 *          event        a revoke event was polled before the close and is never answered
 *          coordinator  the broker is gone, and an offset waits to be committed
 *          late         the revoke is answered by another thread, after the close was given up; a second
 * close then succeeds two          as revoke, and two threads close at once none         no close at all: the
 * destroy is what cannot end DESTROY  leave        without closing: with NO_CONSUMER_CLOSE, as C++, Python
 * and .NET do
 */
#include "probe.h"

static rd_kafka_t *rk;
static bool answers, event;
static atomic_bool assigned;
static atomic_int revoked;

static void on_rebalance(rd_kafka_t *h, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list,
                         void *opaque)
{
    (void)opaque;
    if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        for (int i = 0; i < list->cnt; i++)
            list->elems[i].offset = 0;
        rd_kafka_assign(h, list);
        assigned = true;
    } else {
        revoked++;
        if (answers)
            rd_kafka_assign(h, NULL);
    }
}

static rd_kafka_resp_err_t results[2];
static atomic_bool inside[2];

static void *closer(void *arg)
{
    int i = (int)(intptr_t)arg;
    inside[i] = true;
    results[i] = rd_kafka_consumer_close(rk);
    return NULL;
}

static void *destroyer(void *leave)
{
    if (leave)
        rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    else
        rd_kafka_destroy(rk);
    return NULL;
}

static bool event_came(rd_kafka_queue_t *queue, rd_kafka_resp_err_t which)
{
    rd_kafka_event_t *e = rd_kafka_queue_poll(queue, 100);
    bool rebalance =
        e && rd_kafka_event_type(e) == RD_KAFKA_EVENT_REBALANCE && rd_kafka_event_error(e) == which;
    if (rebalance && which == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS)
        expect_err(rd_kafka_assign(rk, rd_kafka_event_topic_partition_list(e)), RD_KAFKA_RESP_ERR_NO_ERROR);
    if (e)
        rd_kafka_event_destroy(e);
    return rebalance;
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "revoke";
    bool late = !strcmp(kind, "late"), two = !strcmp(kind, "two"), none = !strcmp(kind, "none");
    bool leave = argc > 2 && !strcmp(argv[2], "leave");
    bool coordinator = !strcmp(kind, "coordinator");
    event = !strcmp(kind, "event");
    answers = coordinator;
    struct worker w[2], d;
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 1);
    mock_produce(&mock, "t", 0, 10);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    conf_set(conf, "session.timeout.ms", "300000");
    conf_set(conf, "max.poll.interval.ms", "300000");
    conf_set(conf, "enable.auto.commit", "true");
    if (event)
        rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_REBALANCE);
    else
        rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rk = consumer_new(conf);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);
    subscribe_to(rk, "t");
    if (event) {
        eventually(event_came(queue, RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS), "no assign event");
        expect_err(rd_kafka_unsubscribe(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
        eventually(event_came(queue, RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS), "no revoke event");
    } else {
        eventually((poll_once(rk, 100), assigned), "no assignment");
        eventually(poll_once(rk, 100), "no message");
    }
    if (coordinator)
        expect_err(rd_kafka_mock_broker_set_down(mock.cluster, 1), RD_KAFKA_RESP_ERR_NO_ERROR);

    if (!none) {
        step("close");
        int64_t began = now_ms();
        for (int i = 0; i < (two ? 2 : 1); i++) {
            start(&w[i], closer, (void *)(intptr_t)i);
            until_blocked_or_back(&w[i], &inside[i]);
        }
        for (int i = 0; i < (two ? 2 : 1); i++) {
            join(&w[i], "the close");
            step("close: %s", rd_kafka_err2name(results[i]));
            expect_err(results[i], RD_KAFKA_RESP_ERR__TIMED_OUT);
        }
        expect(now_ms() - began < patience_ms(), "given up too late");
        expect(!rd_kafka_consumer_closed(rk), "closed, but not according to close");
        step("poll, commit");
        expect(!poll_once(rk, 100), "a poll after the close brought something");
        if (answers)
            expect_err(commit_at(rk, "t", 1, 1), RD_KAFKA_RESP_ERR__DESTROY);
    }
    if (late) {
        step("answer, close again");
        expect_err(rd_kafka_assign(rk, NULL), RD_KAFKA_RESP_ERR_NO_ERROR);
        expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
        expect(rd_kafka_consumer_closed(rk), "not closed");
    }
    rd_kafka_queue_destroy(queue);
    step("destroy");
    int64_t began = now_ms();
    start(&d, destroyer, leave ? &leave : NULL);
    join(&d, "the destroy");
    step("destroyed after %d ms", (int)(now_ms() - began));
    if (!event && !two)
        expect(revoked == 1, "revoked %d times", (int)revoked);
    expect(rd_kafka_consumer_poll(rk, 0) == NULL, "a poll of the dead brought something");
    if (coordinator)
        probe_ok("given up, in the end"); /* the mock cluster is not asked to close: it is down */
    mock_close(&mock);
    probe_ok("given up");
}
