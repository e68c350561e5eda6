/*
 * four_pollers ROUNDS: four threads loop over polls, one of them without waiting, while a fifth closes the
 * consumer, which has an assignment. On plain librdkafka a poller takes the close's own message now and then,
 * and the close never returns.
 */
#include "probe.h"

enum { POLLERS = 4 };

static rd_kafka_t *rk;
static atomic_bool stop;
static atomic_int got;
static rd_kafka_resp_err_t result;

static void *poller(void *timeout_ms)
{
    while (!stop)
        if (poll_once(rk, (int)(intptr_t)timeout_ms))
            got++;
    return NULL;
}

static void *closer(void *arg)
{
    result = rd_kafka_consumer_close(rk);
    return arg;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 200;
    struct worker pollers[POLLERS], close;
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 4);
    mock_produce(&mock, "t", 0, 10);
    step("%d rounds", rounds);
    for (int i = 0; i < rounds; i++) {
        rk = consumer_new(consumer_conf(mock.bootstraps));
        assign_all(rk, "t", 4);
        stop = false;
        got = 0;
        for (int k = 0; k < POLLERS; k++)
            start(&pollers[k], poller, (void *)(intptr_t)(k * 5));
        eventually(got > 0, "no message");
        start(&close, closer, NULL);
        char what[32];
        snprintf(what, sizeof what, "close number %d", i + 1);
        join(&close, what);
        expect(!result, "a close returned %s", rd_kafka_err2name(result));
        stop = true;
        for (int k = 0; k < POLLERS; k++)
            join(&pollers[k], "a poll");
        rd_kafka_destroy(rk);
    }
    mock_close(&mock);
    probe_ok("%d closes beside four pollers", rounds);
}
