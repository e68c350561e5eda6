/*
 * waiters served    20 threads call pause beside one poll(-1): all are served, and the poll is still a poll.
 * waiters ordered   20 threads commit one after another while a long call is in front of them: the broker's
 *                   answers, which come in the order in which librdkafka got the commits, tell who was first.
 */
#include "calm.h"

#define WAITERS 20
#define ROUNDS  25

static rd_kafka_t *rk;
static rd_kafka_queue_t *replies;
static atomic_int served;
static _Atomic double cpu_ms[WAITERS];

static void poller(struct thread *t)
{
    rd_kafka_message_t *m;
    here(t);
    m = rd_kafka_consumer_poll(rk, -1);
    say("poll=%s", !m ? "null" : m->err ? rd_kafka_err2name(m->err) : "message");
    if (m)
        say("offset=%" PRId64, m->offset);
    if (m)
        rd_kafka_message_destroy(m);
}

static void pauser(struct thread *t)
{
    for (int i = 0; i < ROUNDS; i++) {
        rd_kafka_topic_partition_list_t *l = one(1, 0);
        rd_kafka_resp_err_t e = i % 2 ? rd_kafka_resume_partitions(rk, l) : rd_kafka_pause_partitions(rk, l);
        if (e || l->elems[0].err)
            die("pause: %s %s", rd_kafka_err2name(e), rd_kafka_err2name(l->elems[0].err));
        rd_kafka_topic_partition_list_destroy(l);
        t->n++;
    }
    atomic_fetch_add(&served, 1);
}

static void holder(struct thread *t)
{
    int64_t lo, hi;
    here(t);
    rd_kafka_resp_err_t e = rd_kafka_query_watermark_offsets(rk, TOPIC, 0, &lo, &hi, 60000);
    say("holder=%s", rd_kafka_err2name(e));
}

static void committer(struct thread *t)
{
    rd_kafka_topic_partition_list_t *l = one(0, 1000 + t->n);
    rd_kafka_resp_err_t e;
    double cpu = thread_cpu_ms();

    here(t);
    e = rd_kafka_commit_queue(rk, l, replies, NULL, NULL);
    if (e)
        die("commit_queue: %s", rd_kafka_err2name(e));
    cpu_ms[t->n] = thread_cpu_ms() - cpu;
    atomic_fetch_add(&served, 1);
    rd_kafka_topic_partition_list_destroy(l);
}

int main(int argc, char **argv)
{
    bool ordered = argc > 1 && !strcmp(argv[1], "ordered");
    struct thread p, h, w[WAITERS];
    double cpu = 0;
    int inversions = 0;
    char order[512] = "";

    mock_start(2);
    rk = consumer_new(consumer_conf("waiters", NULL));
    assign(rk, 2);
    warm(rk, 1);
    warm_commit(rk);

    start(&p, poller, NULL, 0);
    UNTIL(settled(p.tid), 10000);

    if (ordered) {
        replies = rd_kafka_queue_new(rk);
        mock_answer(LIST_OFFSETS, 2, RD_KAFKA_RESP_ERR_NO_ERROR, 4000);
        start(&h, holder, NULL, 0);
        UNTIL(mock_unused(LIST_OFFSETS) == 0, 10000);
        for (int i = 0; i < WAITERS; i++) {
            start(&w[i], committer, NULL, i);
            /* the next one comes when this one is known to wait, or has been let through */
            UNTIL(w[i].done || settled(w[i].tid), 30000);
        }
        say("holder_inside=%d", !h.done);
        join(&h, 60000);
    } else {
        for (int i = 0; i < WAITERS; i++)
            start(&w[i], pauser, NULL, 0);
    }
    for (int i = 0; i < WAITERS; i++)
        join(&w[i], 60000);
    say("served=%d", served);
    say("poll_inside=%d", !p.done);

    if (ordered) {
        int64_t last = 0;
        for (int i = 0; i < WAITERS; i++) {
            rd_kafka_event_t *ev = rd_kafka_queue_poll(replies, 30000);
            rd_kafka_topic_partition_list_t *l;
            int64_t offset;
            if (!ev || rd_kafka_event_error(ev))
                die("reply %d: %s", i, ev ? rd_kafka_event_error_string(ev) : "none");
            l = rd_kafka_event_topic_partition_list(ev);
            offset = l->elems[0].offset;
            snprintf(order + strlen(order), sizeof order - strlen(order), "%s%" PRId64, i ? "," : "",
                     offset - 1000);
            if (offset < last)
                inversions++;
            last = offset;
            cpu += cpu_ms[i];
            rd_kafka_event_destroy(ev);
        }
        say("inversions=%d", inversions);
        say("order=%s", order);
        say("cpu_ms=%d", (int)cpu);
        rd_kafka_queue_destroy(replies);
    }

    produce(0, 1);
    join(&p, 30000);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    mock_stop();
    return 0;
}
