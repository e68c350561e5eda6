/*
 * collide: one thread sits in a poll, another pauses a partition. What comes of it is said, and is a matter
 * of the mode: see tests/modes.bats.
 */
#include "probe.h"

static rd_kafka_t *rk;
static atomic_bool inside;

static void *poller(void *arg)
{
    inside = true;
    expect(!poll_once(rk, 1000), "a message");
    return arg;
}

int main(void)
{
    struct worker w;
    rk = consumer_new(consumer_conf(NOWHERE));
    start(&w, poller, NULL);
    until_blocked(&w, &inside);
    printf("pause: %s\n", rd_kafka_err2name(pause_all(rk, "t", 1)));
    printf("the poll is still there: %s\n", w.done ? "no" : "yes");
    join(&w, "the poll");
    rd_kafka_destroy(rk);
    probe_ok("done");
}
