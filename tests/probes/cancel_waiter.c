/*
 * cancel_waiter: a thread that waits for its turn is cancelled. It must end at once, and whoever stands
 * behind it must get his turn. Only with the shim does anybody wait for a turn; without it this passes, too.
 */
#include "probe.h"

static rd_kafka_t *rk;
static atomic_bool inside, waiting;

static void *long_call(void *arg)
{
    int64_t low, high;
    inside = true;
    rd_kafka_query_watermark_offsets(rk, "t", 0, &low, &high, 1000); /* nobody answers */
    return arg;
}

static void *one_pause(void *arg)
{
    waiting = true;
    pause_all(rk, "t", 1);
    return arg;
}

int main(void)
{
    struct worker owner, victim, next;
    rk = consumer_new(consumer_conf(NOWHERE));
    start(&owner, long_call, NULL);
    until_blocked(&owner, &inside);
    start(&victim, one_pause, NULL);
    within(200, victim.done || (waiting && sleeps(victim.tid)));
    start(&next, one_pause, NULL);
    step("cancel");
    pthread_cancel(victim.thread);
    void *result;
    pthread_join(victim.thread, &result);
    expect(!owner.done, "the cancelled thread waited for its turn");
    step("the next one");
    join(&owner, "the long call");
    join(&next, "the pause behind it");
    rd_kafka_destroy(rk);
    probe_ok("the cancelled thread left the line");
}
