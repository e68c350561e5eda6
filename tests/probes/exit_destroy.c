/*
 * exit_destroy: the process exits while a thread sits in poll(-1), and an exit handler destroys the consumer,
 * as a static destructor or an interpreter's finalizer does. Plain librdkafka never comes back from it.
 */
#include "probe.h"

static rd_kafka_t *rk;
static atomic_bool inside;

static void *poller(void *arg)
{
    inside = true;
    poll_once(rk, -1);
    pause(); /* until the process is gone */
    return arg;
}

static void finalizer(void)
{
    step("destroy");
    rd_kafka_destroy(rk);
    step("destroyed");
    printf("ok destroyed at exit\n");
}

int main(void)
{
    struct worker w;
    rk = consumer_new(consumer_conf(NOWHERE));
    atexit(finalizer);
    start(&w, poller, NULL);
    until_blocked(&w, &inside);
    exit(0);
}
