/*
 * finalizer WHO: a thread that has nothing to do with a consumer destroys it without closing it, as a
 * collector does (`stranger`); or the thread that made it does, after another has polled it (`maker`), or the
 * one that polled (`poller`). Or nobody does, in the middle of a group (`nobody`) or without one (`loner`).
 */
#include "probe.h"

static rd_kafka_t *rk;

static void *destroyer(void *arg)
{
    rd_kafka_destroy(rk);
    return arg;
}

static void *poller(void *arg)
{
    poll_once(rk, 10);
    if (arg)
        rd_kafka_destroy(rk);
    return arg;
}

int main(int argc, char **argv)
{
    struct worker w;
    const char *who = argc > 1 ? argv[1] : "";
    rk = consumer_new(consumer_conf(NOWHERE));
    if (!strcmp(who, "nobody"))
        subscribe_to(rk, "topic");
    start(&w, poller, !strcmp(who, "poller") ? "" : NULL);
    join(&w, "the poll");
    if (!strcmp(who, "maker")) {
        rd_kafka_destroy(rk);
    } else if (!strcmp(who, "stranger")) {
        start(&w, destroyer, NULL);
        join(&w, "the destroy");
    }
    probe_ok("destroyed by the %s", who);
}
