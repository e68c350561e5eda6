/*
 * destroy_loop ROUNDS: a thread loops over poll(10), another destroys the consumer in the middle of it; the
 * loop goes on over the dead handle for a while and must get nothing. Plain librdkafka reads and writes freed
 * memory.
 */
#include "probe.h"

static rd_kafka_t *rk;
static atomic_bool inside, dead;
static atomic_int after;

static void *poller(void *arg)
{
    while (after < 3) {
        bool was_dead = dead;
        inside = true;
        bool got = poll_once(rk, was_dead ? 1 : 10);
        expect(!got, "the poll returned something");
        if (was_dead)
            after++;
    }
    return arg;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    struct worker w;
    step("%d rounds", rounds);
    for (int i = 0; i < rounds; i++) {
        inside = dead = false;
        after = 0;
        rk = consumer_new(consumer_conf(NOWHERE));
        start(&w, poller, NULL);
        eventually(inside, "no poll");
        if (i % 4 == 0)
            until_blocked(&w, &inside);
        rd_kafka_destroy(rk);
        dead = true;
        join(&w, "a poll of a dead handle");
    }
    probe_ok("%d handles destroyed below a poll", rounds);
}
