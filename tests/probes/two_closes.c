/*
 * two_closes: two threads close one consumer at once. Plain librdkafka never answers the second. An
 * auto-commit against a slow broker keeps the first close busy until the second has come.
 */
#include "probe.h"

static rd_kafka_t *rk;
static atomic_bool inside[2];
static rd_kafka_resp_err_t results[2];

static void *closer(void *arg)
{
    int i = (int)(intptr_t)arg;
    inside[i] = true;
    results[i] = rd_kafka_consumer_close(rk);
    return NULL;
}

int main(void)
{
    struct worker first, second;
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 1);
    mock_produce(&mock, "t", 0, 1);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    conf_set(conf, "enable.auto.commit", "true");
    rk = consumer_new(conf);
    assign_all(rk, "t", 1);
    eventually(poll_once(rk, 100), "no message");
    find_coordinator(rk, "t");
    rd_kafka_mock_broker_set_rtt(mock.cluster, 1, 500);

    step("close, twice");
    start(&first, closer, (void *)0);
    until_blocked(&first, &inside[0]);
    start(&second, closer, (void *)1);
    until_blocked(&second, &inside[1]);
    expect(!first.done, "the first close was too fast for the second");
    join(&first, "the first close");
    join(&second, "the second close");
    for (int i = 0; i < 2; i++)
        expect(!results[i] || results[i] == RD_KAFKA_RESP_ERR__DESTROY, "a close returned %s",
               rd_kafka_err2name(results[i]));
    expect(!results[0] || !results[1], "neither close succeeded");
    expect(rd_kafka_consumer_closed(rk), "not closed");
    step("destroy");
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("both closes returned");
}
