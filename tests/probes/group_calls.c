/*
 * group_calls ROUNDS: six threads repeat calls that ask the group and wait for its answer without limit,
 * while the consumer is closed. What plain librdkafka has in hand when the group ends is never answered.
 */
#include "probe.h"

static rd_kafka_t *rk;
static atomic_bool stop;

static void ask(int which, rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_topic_partition_list_t *out = NULL;
    switch (which) {
    case 0: rd_kafka_commit(rk, list, 0); break;
    case 1: rd_kafka_assignment(rk, &out); break;
    case 2: rd_kafka_subscription(rk, &out); break;
    case 3: rd_kafka_unsubscribe(rk); break;
    case 4: rd_kafka_mem_free(rk, rd_kafka_memberid(rk)); break;
    case 5: rd_kafka_rebalance_protocol(rk); break;
    }
    if (out)
        rd_kafka_topic_partition_list_destroy(out);
}

static const char *const names[] = {"commit",      "assignment", "subscription",
                                    "unsubscribe", "memberid",   "rebalance_protocol"};
enum { ASKERS = sizeof names / sizeof *names };

static atomic_int asked[ASKERS];

static void *asker(void *arg)
{
    int which = (int)(intptr_t)arg;
    rd_kafka_topic_partition_list_t *list = list_at("t", 1, 0);
    while (!stop) {
        ask(which, list);
        asked[which]++;
    }
    rd_kafka_topic_partition_list_destroy(list);
    return NULL;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 1);
    step("%d rounds", rounds);
    for (int round = 0; round < rounds; round++) {
        struct worker askers[ASKERS];
        rk = consumer_new(consumer_conf(mock.bootstraps));
        assign_all(rk, "t", 1);
        stop = false;
        for (int i = 0; i < ASKERS; i++) {
            asked[i] = 0;
            start(&askers[i], asker, (void *)(intptr_t)i);
        }
        for (int i = 0; i < ASKERS; i++)
            eventually(asked[i] > 0, "the first %s did not return", names[i]);
        expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
        stop = true;
        for (int i = 0; i < ASKERS; i++) {
            char what[64];
            snprintf(what, sizeof what, "%s beside close number %d", names[i], round + 1);
            join(&askers[i], what);
        }
        rd_kafka_destroy(rk);
    }
    mock_close(&mock);
    probe_ok("%d closes, and every question was answered", rounds);
}
