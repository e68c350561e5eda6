/*
 * collisions: while one thread sits in a poll, another makes one call of each of several kinds beside it;
 * librdkafka allows them all. What each returned is printed.
 */
#include "probe.h"

static rd_kafka_t *rk;
static atomic_bool inside;

static void *poller(void *arg)
{
    inside = true;
    poll_once(rk, -1);
    return arg;
}

int main(void)
{
    struct worker w;
    rd_kafka_topic_partition_list_t *list = NULL;
    rk = consumer_new(consumer_conf(NOWHERE));
    start(&w, poller, NULL);
    until_blocked(&w, &inside);
    step("pause: %s", rd_kafka_err2name(pause_all(rk, "t", 1)));
    step("assignment: %s", rd_kafka_err2name(rd_kafka_assignment(rk, &list)));
    rd_kafka_topic_partition_list_destroy(list);
    step("subscription: %s", rd_kafka_err2name(rd_kafka_subscription(rk, &list)));
    rd_kafka_topic_partition_list_destroy(list);
    step("unsubscribe: %s", rd_kafka_err2name(rd_kafka_unsubscribe(rk)));
    char *id = rd_kafka_memberid(rk);
    step("memberid: %s", id ? id : "none");
    free(id);
    step("poll: %s", poll_once(rk, 0) ? "a message" : "nothing");
    step("offsets_store, which may be called beside anything: %s",
         rd_kafka_err2name(rd_kafka_offsets_store(rk, list = list_at("t", 1, 1))));
    rd_kafka_topic_partition_list_destroy(list);
    expect(!w.done, "the poll returned early");
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);
    rd_kafka_queue_yield(queue);
    join(&w, "the poll");
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
    probe_ok("all met");
}
