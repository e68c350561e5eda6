/*
 * nowait TIMEOUT
 * While another thread sits in a long call, a poll of TIMEOUT ms takes no longer than that: with 0 it never
 * waits. How long is long is the mock broker's business: it answers after 5 s.
 */
#include "calm.h"

static rd_kafka_t *rk;

static void holder(struct thread *t)
{
    int64_t lo, hi;
    here(t);
    rd_kafka_resp_err_t e = rd_kafka_query_watermark_offsets(rk, TOPIC, 0, &lo, &hi, 30000);
    say("holder=%s", rd_kafka_err2name(e));
}

static void polls(const char *kind, rd_kafka_queue_t *q, int timeout, int n)
{
    int timed_out = 0, early = 0;
    double slowest = 0;

    for (int i = 0; i < n; i++) {
        double t0 = now_ms(), took;
        rd_kafka_message_t *m = NULL;
        rd_kafka_event_t *ev = NULL;

        errno = 0;
        if (!strcmp(kind, "consumer_poll"))
            m = rd_kafka_consumer_poll(rk, timeout);
        else if (!strcmp(kind, "consume_queue"))
            m = rd_kafka_consume_queue(q, timeout);
        else if (!strcmp(kind, "queue_poll"))
            ev = rd_kafka_queue_poll(q, timeout);
        else if (!strcmp(kind, "batch"))
            rd_kafka_consume_batch_queue(q, timeout, &m, 1);
        else
            rd_kafka_poll(rk, timeout);
        if (!m && !ev && errno == ETIMEDOUT && rd_kafka_last_error() == RD_KAFKA_RESP_ERR__TIMED_OUT)
            timed_out++;
        if (m || ev)
            die("nothing was produced");
        took = now_ms() - t0;
        if (took > slowest)
            slowest = took;
        if (took < timeout - 5)
            early++;
    }
    say("%s_timed_out=%d", kind, timed_out);
    say("%s_early=%d", kind, early);
    say("%s_slowest_ms=%d", kind, (int)slowest);
}

int main(int argc, char **argv)
{
    static const char *kinds[] = {"consumer_poll", "consume_queue", "queue_poll", "batch", "poll"};
    int timeout = argc > 1 ? atoi(argv[1]) : 0;
    rd_kafka_queue_t *q;
    struct thread h;

    mock_start(1);
    rk = consumer_new(consumer_conf("nowait", NULL));
    q = rd_kafka_queue_get_consumer(rk);
    assign(rk, 1);
    warm(rk, 1);
    rd_kafka_poll_set_consumer(rk);

    /* query_watermark_offsets asks twice, for the first and for the last */
    mock_answer(LIST_OFFSETS, 2, RD_KAFKA_RESP_ERR_NO_ERROR, 5000);
    start(&h, holder, NULL, 0);
    UNTIL(mock_unused(LIST_OFFSETS) == 0, 10000);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        polls(kinds[i], q, timeout, timeout ? 3 : 200);
    say("holder_inside=%d", !h.done);
    join(&h, 30000);

    /* and what comes afterwards comes */
    produce(0, 3);
    take(q, 3);
    say("messages=3");

    rd_kafka_queue_destroy(q);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    mock_stop();
    return 0;
}
