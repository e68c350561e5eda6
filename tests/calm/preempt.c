/*
 * preempt KIND TIMEOUT N [MESSAGES]
 * One thread polls once for TIMEOUT ms while another makes N calls that a gate lets in by interrupting the
 * poll. It must last its time, or end with the messages produced meanwhile, as if nobody had called.
 */
#include "calm.h"

#define BATCH 5

static rd_kafka_t *rk;
static rd_kafka_queue_t *q;
static const char *kind;
static int timeout_ms;
static atomic_int taken; /* messages librdkafka has handed to the call in progress */

static const char *result = "none";
static int count = -1;
static char offsets[256];
static double elapsed;
static rd_kafka_resp_err_t last_error;
static int error_no;

static rd_kafka_resp_err_t on_consume(rd_kafka_t *h, rd_kafka_message_t *m, void *opaque)
{
    (void)h, (void)m, (void)opaque;
    atomic_fetch_add(&taken, 1);
    return 0;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *h, const rd_kafka_conf_t *c, void *opaque, char *e, size_t n)
{
    (void)c, (void)opaque, (void)e, (void)n;
    return rd_kafka_interceptor_add_on_consume(h, "calm", on_consume, NULL);
}

static void note(const rd_kafka_message_t *m)
{
    size_t len = strlen(offsets);
    snprintf(offsets + len, sizeof offsets - len, "%s%" PRId32 ":%" PRId64, len ? "," : "", m->partition,
             m->offset);
}

static void consume_cb(rd_kafka_message_t *m, void *opaque)
{
    (void)opaque;
    note(m);
}

static void got_message(rd_kafka_message_t *m)
{
    result = !m ? "null" : m->err ? rd_kafka_err2name(m->err) : "message";
    if (m && !m->err)
        note(m);
    if (m)
        rd_kafka_message_destroy(m);
}

static void poll_once(struct thread *t)
{
    rd_kafka_message_t *batch[BATCH] = {NULL}, *m = NULL;
    rd_kafka_event_t *ev = NULL;
    double t0;

    here(t);
    t0 = now_ms();
    errno = 0;
    if (!strcmp(kind, "consumer_poll"))
        m = rd_kafka_consumer_poll(rk, timeout_ms);
    else if (!strcmp(kind, "consume_queue"))
        m = rd_kafka_consume_queue(q, timeout_ms);
    else if (!strcmp(kind, "queue_poll"))
        ev = rd_kafka_queue_poll(q, timeout_ms);
    else if (!strcmp(kind, "batch"))
        count = (int)rd_kafka_consume_batch_queue(q, timeout_ms, batch, BATCH);
    else if (!strcmp(kind, "poll"))
        count = rd_kafka_poll(rk, timeout_ms);
    else if (!strcmp(kind, "callback"))
        count = rd_kafka_consume_callback_queue(q, timeout_ms, consume_cb, NULL);
    else
        die("what is %s?", kind);
    error_no = errno;
    last_error = rd_kafka_last_error();
    elapsed = now_ms() - t0;

    if (count >= 0) {
        result = "count";
        if (!strcmp(kind, "batch"))
            for (int i = 0; i < count; i++) {
                if (!batch[i])
                    die("a batch of %d without its message %d", (int)count, i);
                note(batch[i]);
                rd_kafka_message_destroy(batch[i]);
            }
    } else if (!strcmp(kind, "queue_poll")) {
        result = ev ? rd_kafka_event_name(ev) : "null";
        if (ev) {
            const rd_kafka_message_t *em = rd_kafka_event_message_next(ev);
            if (em)
                note(em);
            rd_kafka_event_destroy(ev);
        }
    } else {
        got_message(m);
    }
}

/*
 * The calls another thread makes beside a poll, in turn. Partition 1 is assigned and carries nothing.
 * pause and resume leave a barrier on the queue, which counts where callbacks are served: not for those.
 */
static void call(int i, bool counting)
{
    rd_kafka_topic_partition_list_t *l = one(1, 0), *assignment = NULL;
    rd_kafka_resp_err_t e = 0;

    switch (i % 8) {
    case 0:
    case 2: e = counting ? rd_kafka_assignment(rk, &assignment) : rd_kafka_pause_partitions(rk, l); break;
    case 1:
    case 3: e = counting ? rd_kafka_subscription(rk, &assignment) : rd_kafka_resume_partitions(rk, l); break;
    case 4:
    case 5: e = rd_kafka_assignment(rk, &assignment); break;
    case 6: e = rd_kafka_commit(rk, l, 0); break;
    case 7: e = rd_kafka_committed(rk, l, 10000); break;
    }
    if (assignment)
        rd_kafka_topic_partition_list_destroy(assignment);
    if (e)
        die("call %d: %s", i, rd_kafka_err2str(e));
    e = rd_kafka_position(rk, l);
    if (e)
        die("position: %s", rd_kafka_err2str(e));
    rd_kafka_topic_partition_list_destroy(l);
}

int main(int argc, char **argv)
{
    rd_kafka_conf_t *conf;
    struct thread poller;
    bool count_kind;
    int n, messages, calls = 0, sent = 0;
    double t0;

    if (argc < 4)
        die("preempt KIND TIMEOUT N [MESSAGES]");
    kind = argv[1];
    timeout_ms = atoi(argv[2]);
    n = atoi(argv[3]);
    count_kind = !strcmp(kind, "poll") || !strcmp(kind, "callback");
    messages = argc > 4 ? atoi(argv[4]) : 0;

    mock_start(2);
    conf = consumer_conf("preempt", NULL);
    rd_kafka_conf_interceptor_add_on_new(conf, "calm", on_new, NULL);
    if (!strcmp(kind, "poll"))
        rd_kafka_conf_set_consume_cb(conf, consume_cb);
    rk = consumer_new(conf);
    q = rd_kafka_queue_get_consumer(rk);
    assign(rk, 2);
    warm(rk, 1);
    warm_commit(rk);
    if (!strcmp(kind, "poll"))
        rd_kafka_poll_set_consumer(rk);
    atomic_store(&taken, 0);

    start(&poller, poll_once, NULL, 0);
    UNTIL(settled(poller.tid) || poller.done, 10000);
    t0 = now_ms();
    for (; calls < n; calls++) {
        /* spread the calls over the poll, so that some come late */
        while (timeout_ms > 0 && !messages && now_ms() - t0 < (double)calls * timeout_ms / (n + 5) &&
               !poller.done)
            nap();
        UNTIL(asleep(poller.tid) || poller.done, 10000);
        if (poller.done)
            break;
        call(calls, count_kind);
        if (sent < messages && calls >= (sent + 1) * n / (messages + 1)) {
            produce(0, 1);
            sent++;
            UNTIL(taken == sent || poller.done, 20000);
        }
    }
    join(&poller, 60000);

    say("result=%s", result);
    say("count=%d", count);
    say("offsets=%s", offsets);
    say("last_error=%s", rd_kafka_err2name(last_error));
    say("errno=%s", errno_name(error_no));
    say("elapsed_ms=%d", (int)elapsed);
    say("calls=%d", calls);

    rd_kafka_queue_destroy(q);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    mock_stop();
    return 0;
}
