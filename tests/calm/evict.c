/*
 * evict KIND: a member of a group that polls is not evicted, whatever other threads do meanwhile.
 * max.poll.interval.ms is 6000; every kind lasts longer.
 *   busy           a call each millisecond beside poll(-1), for 8 s
 *   parked         query_watermark_offsets, which the broker answers after 8 s, beside poll(-1)
 *   parked_finite  the same beside poll(20000)
 *   parked_commit  a commit that the broker lets try three times, 2.7 s each, beside poll(-1)
 *   multiple256    consumer_poll(10240): from librdkafka 2.6 such a poll does not count as one
 *   multiple32     queue_poll(9984) on the consumer queue: likewise
 */
#include "calm.h"

static rd_kafka_t *rk;
static rd_kafka_queue_t *q;
static int timeout_ms = -1;
static bool by_queue;
static atomic_int messages, evictions, errors, rounds;
static _Atomic int64_t last_offset = -1;
static char error_names[256];

static void look(const rd_kafka_message_t *m)
{
    if (!m->err) {
        messages++;
        last_offset = m->offset;
        return;
    }
    if (m->err == RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED)
        evictions++;
    errors++;
    snprintf(error_names + strlen(error_names), sizeof error_names - strlen(error_names), "%s%s",
             error_names[0] ? "," : "", rd_kafka_err2name(m->err));
}

/* Polls until there are two messages, one before and one after what happens beside it. */
static void poller(struct thread *t)
{
    here(t);
    while (last_offset < 1) {
        rounds++;
        if (by_queue) {
            rd_kafka_event_t *ev = rd_kafka_queue_poll(q, timeout_ms);
            const rd_kafka_message_t *m;
            if (ev && rd_kafka_event_type(ev) == RD_KAFKA_EVENT_ERROR) {
                rd_kafka_message_t e = {.err = rd_kafka_event_error(ev)};
                look(&e);
            }
            while (ev && (m = rd_kafka_event_message_next(ev)))
                look(m);
            if (ev)
                rd_kafka_event_destroy(ev);
        } else {
            rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, timeout_ms);
            if (m) {
                look(m);
                rd_kafka_message_destroy(m);
            }
        }
    }
}

static void busy(void)
{
    double end = now_ms() + 8000;
    int calls = 0;

    for (; now_ms() < end; calls++) {
        rd_kafka_topic_partition_list_t *l = one(0, 0);
        rd_kafka_resp_err_t e = 0;
        switch (calls % 3) {
        case 0: e = rd_kafka_commit(rk, NULL, 0); break;
        case 1: e = rd_kafka_position(rk, l); break;
        case 2: e = rd_kafka_pause_partitions(rk, l); break;
        }
        if (e && e != RD_KAFKA_RESP_ERR__NO_OFFSET)
            die("call: %s", rd_kafka_err2name(e));
        rd_kafka_topic_partition_list_destroy(l);
        usleep(1000);
    }
    say("enough_calls=%d", calls > 500);
    rd_kafka_topic_partition_list_t *l = one(0, 0);
    rd_kafka_resume_partitions(rk, l);
    rd_kafka_topic_partition_list_destroy(l);
}

static void parked(void)
{
    int64_t lo, hi;
    double t0 = now_ms();
    mock_answer(LIST_OFFSETS, 2, RD_KAFKA_RESP_ERR_NO_ERROR, 8000);
    say("call=%s", rd_kafka_err2name(rd_kafka_query_watermark_offsets(rk, TOPIC, 0, &lo, &hi, 30000)));
    say("call_ms=%d", (int)(now_ms() - t0));
}

static void parked_commit(void)
{
    rd_kafka_topic_partition_list_t *l = one(0, 1);
    double t0 = now_ms();
    mock_answer(OFFSET_COMMIT, 2, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS, 2700);
    mock_answer(OFFSET_COMMIT, 1, RD_KAFKA_RESP_ERR_NO_ERROR, 2700);
    say("call=%s", rd_kafka_err2name(rd_kafka_commit(rk, l, 0)));
    say("call_ms=%d", (int)(now_ms() - t0));
    rd_kafka_topic_partition_list_destroy(l);
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "", *interval = "6000";
    char *before, *after;
    struct thread t;

    if (!strcmp(kind, "parked_finite"))
        timeout_ms = 20000;
    if (!strcmp(kind, "multiple256")) {
        timeout_ms = 10240;
        interval = "6001";
    }
    if (!strcmp(kind, "multiple32")) {
        timeout_ms = 9984;
        by_queue = true;
    }
    say("version=%d", rd_kafka_version());

    mock_start(1);
    rk = consumer_new(consumer_conf("evict", "session.timeout.ms", "6000", "max.poll.interval.ms", interval,
                                    "heartbeat.interval.ms", "500", NULL));
    q = rd_kafka_queue_get_consumer(rk);
    subscribe(rk);
    produce(0, 1);
    start(&t, poller, NULL, 0);
    UNTIL(messages == 1, 30000);
    before = rd_kafka_memberid(rk);
    rounds = 0;

    if (!strcmp(kind, "busy"))
        busy();
    else if (!strncmp(kind, "parked_commit", 13))
        parked_commit();
    else if (!strncmp(kind, "parked", 6))
        parked();
    else if (!strncmp(kind, "multiple", 8))
        /* until the poll that has begun, and one more, have run out or failed */
        UNTIL(rounds >= 1 || errors, 30000);
    else
        die("what is %s?", kind);

    after = rd_kafka_memberid(rk);
    say("evictions=%d", evictions);
    say("errors=%s", error_names);
    say("same_member=%d", before && after && !strcmp(before, after));
    free(before);
    free(after);
    produce(0, 1);
    join(&t, 40000);
    say("messages=%d", messages);

    rd_kafka_queue_destroy(q);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    mock_stop();
    return 0;
}
