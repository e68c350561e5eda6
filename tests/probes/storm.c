/*
 * storm [SECONDS [SEED [THREADS]]]: threads call whatever they like on one consumer, among them callbacks
 * that call back, while it is closed and destroyed under them, and go on calling the dead handle; then the
 * next one. On plain librdkafka this crashes or hangs within the first rounds. Nothing is asked of the
 * results but that every call returns, and the dead stay dead. The seed is printed; it draws the same calls
 * for each thread.
 */
#include "probe.h"

enum { MOST_THREADS = 16 };

static rd_kafka_t *rk;
static rd_kafka_queue_t *queue;
static atomic_bool stop, dead;
static atomic_int calls, nested;
static atomic_int doing[MOST_THREADS]; /* what each thread is in, to be said when one does not return */

static void one_call(unsigned *seed, atomic_int *where)
{
    rd_kafka_topic_partition_list_t *list = list_at("t", 3, RD_KAFKA_OFFSET_INVALID), *out = NULL;
    rd_kafka_message_t *batch[5];
    rd_kafka_event_t *event;
    int what = rand_r(seed) % 17, t = rand_r(seed) % 20;
    *where = what + 1;
    switch (what) {
    case 0:
    case 1:
    case 2:
    case 3: poll_once(rk, t); break;
    case 4: poll_once(rk, 0); break;
    case 5:
        event = rd_kafka_queue_poll(queue, t);
        if (event && rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE)
            rd_kafka_assign(rk, NULL);
        if (event)
            rd_kafka_event_destroy(event);
        break;
    case 6: {
        ssize_t n = rd_kafka_consume_batch_queue(queue, t, batch, 5);
        while (n > 0)
            rd_kafka_message_destroy(batch[--n]);
        break;
    }
    case 7: rd_kafka_pause_partitions(rk, list); /* fall through */
    case 8: rd_kafka_resume_partitions(rk, list); break;
    case 9: rd_kafka_commit(rk, NULL, 1); break;
    case 10: rd_kafka_position(rk, list); break;
    case 11: rd_kafka_committed(rk, list, t); break;
    case 12:
        rd_kafka_assignment(rk, &out);
        if (out)
            rd_kafka_topic_partition_list_destroy(out);
        break;
    case 13: rd_kafka_offsets_store(rk, list); break;
    case 14: {
        char *id = rd_kafka_memberid(rk);
        free(id);
        break;
    }
    case 15: rd_kafka_assignment_lost(rk); break;
    case 16: rd_kafka_consumer_closed(rk); break;
    }
    rd_kafka_topic_partition_list_destroy(list);
    calls++;
    *where = 0;
}

static int on_stats(rd_kafka_t *h, char *json, size_t len, void *opaque)
{
    static __thread unsigned seed = 1;
    (void)h, (void)json, (void)len, (void)opaque;
    if (nested++ % 3 == 0) {
        rd_kafka_topic_partition_list_t *list = list_at("t", 3, RD_KAFKA_OFFSET_INVALID);
        rd_kafka_position(rk, list);
        rd_kafka_pause_partitions(rk, list);
        rd_kafka_resume_partitions(rk, list);
        rd_kafka_topic_partition_list_destroy(list);
        if (rand_r(&seed) % 2)
            pause_ms(1);
    }
    return 0;
}

struct caller {
    unsigned seed;
    int number;
};

static void *caller(void *arg)
{
    struct caller *me = arg;
    while (!stop)
        one_call(&me->seed, &doing[me->number]);
    return arg;
}

int main(int argc, char **argv)
{
    int seconds = argc > 1 ? atoi(argv[1]) : 3;
    unsigned seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : (unsigned)now_ms();
    int threads = argc > 3 ? atoi(argv[3]) : 6;
    struct worker w[MOST_THREADS];
    struct caller who[MOST_THREADS];
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 3);
    for (int p = 0; p < 3; p++)
        mock_produce(&mock, "t", p, 500);
    step("seed %u, %d threads", seed, threads);
    int rounds = 0;
    for (int64_t end = now_ms() + 1000 * seconds; now_ms() < end; rounds++) {
        rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
        rd_kafka_conf_set_stats_cb(conf, on_stats);
        conf_set(conf, "statistics.interval.ms", "3");
        conf_set(conf, "enable.auto.offset.store", "false");
        rk = consumer_new(conf);
        if (rand_r(&seed) % 2)
            rd_kafka_poll_set_consumer(rk);
        queue = rd_kafka_queue_get_consumer(rk);
        assign_all(rk, "t", 3);
        stop = dead = false;
        for (int i = 0; i < threads; i++) {
            who[i] = (struct caller){seed * 31 + (unsigned)(rounds * threads + i), i};
            start(&w[i], caller, &who[i]);
        }
        int64_t until = now_ms() + 20 + (int)(rand_r(&seed) % 80);
        while (now_ms() < until)
            threads ? pause_ms(1)
                    : one_call(&seed, &doing[0]); /* none: one thread alone, as librdkafka likes it */
        int how = rand_r(&seed) % 4;
        if (how < 3)
            rd_kafka_consumer_close(rk);
        if (how == 1)
            pause_ms((int)(rand_r(&seed) % 10));
        if (how != 2)
            rd_kafka_destroy(rk);
        else
            rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        dead = true;
        pause_ms(5);
        stop = true;
        for (int i = 0; i < threads; i++) {
            char what[64];
            snprintf(what, sizeof what, "call %d of thread %d in round %d", (int)doing[i] - 1, i, rounds);
            join(&w[i], what);
        }
        rd_kafka_queue_destroy(queue);
    }
    mock_close(&mock);
    probe_ok("%d calls on %d consumers, %d callbacks", (int)calls, rounds, (int)nested);
}
