/*
 * nowait KIND TIMEOUT
 * While another thread sits in a long call, a poll of TIMEOUT ms takes no longer than that: with 0 it never
 * waits. How long is long is the mock broker's business: it answers after 4 s.
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

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "consumer_poll";
    int timeout = argc > 2 ? atoi(argv[2]) : 0, polls = timeout ? 5 : 200, timed_out = 0, early = 0;
    rd_kafka_queue_t *q;
    struct thread h;
    double slowest = 0;

    mock_start(1);
    rk = consumer_new(consumer_conf("nowait", NULL));
    q = rd_kafka_queue_get_consumer(rk);
    assign(rk, 1);
    warm(rk, 1);
    if (!strcmp(kind, "poll"))
        rd_kafka_poll_set_consumer(rk);

    /* query_watermark_offsets asks twice, for the first and for the last */
    mock_answer(LIST_OFFSETS, 2, RD_KAFKA_RESP_ERR_NO_ERROR, 4000);
    start(&h, holder, NULL, 0);
    UNTIL(mock_unused(LIST_OFFSETS) == 0, 10000);

    for (int i = 0; i < polls; i++) {
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
        else if (!strcmp(kind, "poll"))
            rd_kafka_poll(rk, timeout);
        else
            die("what is %s?", kind);
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
    say("polls=%d", polls);
    say("timed_out=%d", timed_out);
    say("early=%d", early);
    say("holder_inside=%d", !h.done);
    say("slowest_ms=%d", (int)slowest);
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
