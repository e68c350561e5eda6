/*
 * delegate: the rebalance callback has another thread answer, and waits for it, while three more threads are
 * at the gate with a commit, a position and a pause. All of them get through without the shim.
 */
#include "probe.h"

enum { COLLIDERS = 3 };

static rd_kafka_t *rk;
static atomic_bool assigned, revoked;
static struct worker colliders[COLLIDERS], delegate;
static atomic_bool inside[COLLIDERS];

static void *collide(void *arg)
{
    int i = (int)(intptr_t)arg;
    rd_kafka_topic_partition_list_t *list = list_at("t", 1, 0);
    inside[i] = true;
    if (i == 0)
        rd_kafka_commit(rk, list, 0);
    else if (i == 1)
        rd_kafka_position(rk, list);
    else
        rd_kafka_pause_partitions(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    return NULL;
}

static void *answer(void *partitions)
{
    expect_err(rd_kafka_assign(rk, (rd_kafka_topic_partition_list_t *)partitions),
               RD_KAFKA_RESP_ERR_NO_ERROR);
    return NULL;
}

static void on_rebalance(rd_kafka_t *handle, rd_kafka_resp_err_t err,
                         rd_kafka_topic_partition_list_t *partitions, void *opaque)
{
    (void)handle, (void)opaque;
    bool assign = err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    step("%s", assign ? "answer the assign" : "answer the revoke");
    for (int i = 0; i < COLLIDERS; i++) {
        inside[i] = false;
        start(&colliders[i], collide, (void *)(intptr_t)i);
        until_blocked_or_back(&colliders[i], &inside[i]);
    }
    start(&delegate, answer, assign ? partitions : NULL);
    join(&delegate, "the delegate's assign");
    *(assign ? &assigned : &revoked) = true;
}

static void join_colliders(void)
{
    join(&colliders[0], "the commit");
    join(&colliders[1], "the position");
    join(&colliders[2], "the pause");
}

int main(void)
{
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 1);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rk = consumer_new(conf);
    subscribe_to(rk, "t");
    eventually((poll_once(rk, 100), assigned), "no assignment");
    join_colliders();
    expect_err(rd_kafka_unsubscribe(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    eventually((poll_once(rk, 100), revoked), "no revoke");
    join_colliders();
    step("close");
    expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    step("destroy");
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("a callback's work was done by another thread");
}
