/*
 * queues WHICH: two queues of one consumer are two queues. One thread sits in a poll of one, and that neither
 * delays nor starves what another thread does with the other.
 *   private        queue_poll(own queue, -1) beside consumer_poll(100)
 *   partition      a partition's own queue and the consumer's, each polled by its thread
 *   partition_idle the same, with a thread that sits in poll(-1) on either side in turn
 *   commit         commit_queue(tmp) and queue_poll(tmp, -1) beside consumer_poll(-1)
 *   log            the log queue beside consumer_poll(-1)
 *   main           rd_kafka_poll(100), not forwarded, beside consumer_poll(-1)
 */
#include "calm.h"

#define MANY 2000

static rd_kafka_t *rk;
static rd_kafka_queue_t *own, *consumer;
static atomic_int stats;
static atomic_bool stop;

struct seen {
    int messages, disorder, foreign;
    int64_t next;
};

static void consumer_sits(struct thread *t)
{
    rd_kafka_message_t *m;
    here(t);
    m = rd_kafka_consumer_poll(rk, -1);
    say("sitting=%s", !m ? "null" : m->err ? rd_kafka_err2name(m->err) : "message");
    if (m)
        rd_kafka_message_destroy(m);
}

static void own_sits(struct thread *t)
{
    rd_kafka_event_t *ev;
    here(t);
    ev = rd_kafka_queue_poll(own, -1);
    say("own=%s", rd_kafka_event_name(ev));
    if (ev)
        rd_kafka_event_destroy(ev);
}

/* Messages of one partition, in their order, until all are there. */
static void note(struct seen *s, int partition, const rd_kafka_message_t *m)
{
    if (m->err)
        die("message: %s", rd_kafka_message_errstr(m));
    if (m->partition != partition)
        s->foreign++;
    else if (m->offset != s->next)
        s->disorder++;
    s->next = m->offset + 1;
    s->messages++;
}

static void partition_loop(struct thread *t)
{
    struct seen *s = t->arg;
    here(t);
    while (s->messages < MANY && !stop) {
        rd_kafka_message_t *m = rd_kafka_consume_queue(own, 100);
        if (!m)
            continue;
        note(s, 1, m);
        rd_kafka_message_destroy(m);
    }
}

static void consumer_loop(struct thread *t)
{
    struct seen *s = t->arg;
    here(t);
    while (s->messages < MANY && !stop) {
        rd_kafka_event_t *ev = rd_kafka_queue_poll(consumer, 100);
        const rd_kafka_message_t *m;
        if (!ev)
            continue;
        while ((m = rd_kafka_event_message_next(ev)))
            note(s, 0, m);
        rd_kafka_event_destroy(ev);
    }
}

static int stats_cb(rd_kafka_t *h, char *json, size_t len, void *opaque)
{
    (void)h, (void)json, (void)len, (void)opaque;
    stats++;
    return 0;
}

/* n messages through consumer_poll(100) */
static void poll_messages(int n)
{
    double deadline = now_ms() + 30000;
    while (n > 0) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 100);
        if (m && m->err)
            die("message: %s", rd_kafka_message_errstr(m));
        if (m)
            n--;
        if (m)
            rd_kafka_message_destroy(m);
        if (now_ms() > deadline)
            die("%d messages have not come in 30 s", n);
    }
}

static void private_queue(void)
{
    struct thread t;

    own = rd_kafka_queue_new(rk);
    start(&t, own_sits, NULL, 0);
    UNTIL(settled(t.tid), 10000);
    produce(0, 100);
    poll_messages(100);
    say("messages=100");
    for (int i = 0; i < 5; i++) {
        double t0 = now_ms();
        if (rd_kafka_consumer_poll(rk, 100))
            die("more than was produced");
        if (now_ms() - t0 < 95)
            die("poll(100) took %f ms", now_ms() - t0);
    }
    say("own_inside=%d", !t.done);
    rd_kafka_queue_yield(own);
    join(&t, 10000);
    rd_kafka_queue_destroy(own);
}

static void own_partition(void)
{
    own = rd_kafka_queue_get_partition(rk, TOPIC, 1);
    if (!own)
        die("no queue for the partition");
    rd_kafka_queue_forward(own, NULL);
}

static void partition(void)
{
    struct thread a, b;
    struct seen s0 = {.next = 1}, s1 = {.next = 1};

    own_partition();
    start(&a, consumer_loop, &s0, 0);
    start(&b, partition_loop, &s1, 0);
    for (int i = 0; i < MANY; i += 100) {
        produce(0, 100);
        produce(1, 100);
    }
    join(&a, 60000);
    join(&b, 60000);
    say("consumer_messages=%d", s0.messages);
    say("partition_messages=%d", s1.messages);
    say("disorder=%d", s0.disorder + s1.disorder);
    say("foreign=%d", s0.foreign + s1.foreign);
    rd_kafka_queue_destroy(own);
}

static void partition_idle(void)
{
    struct thread t;
    struct seen s1 = {.next = 1};

    own_partition();
    /* the partition's thread sits; the consumer's messages come */
    start(&t, own_sits, NULL, 0);
    UNTIL(settled(t.tid), 10000);
    produce(0, 100);
    poll_messages(100);
    say("own_inside=%d", !t.done);
    produce(1, 1);
    join(&t, 30000);
    s1.next++;

    /* the consumer's thread sits; the partition's messages come */
    start(&t, consumer_sits, NULL, 0);
    UNTIL(settled(t.tid), 10000);
    produce(1, 100);
    while (s1.messages < 100) {
        rd_kafka_message_t *m = rd_kafka_consume_queue(own, 30000);
        if (!m)
            die("%d of 100 messages", s1.messages);
        note(&s1, 1, m);
        rd_kafka_message_destroy(m);
    }
    say("partition_messages=%d", s1.messages);
    say("disorder=%d", s1.disorder);
    say("consumer_inside=%d", !t.done);
    produce(0, 1);
    join(&t, 30000);
    rd_kafka_queue_destroy(own);
}

static void commit(void)
{
    struct thread t;

    warm_commit(rk);
    start(&t, consumer_sits, NULL, 0);
    UNTIL(settled(t.tid), 10000);
    for (int i = 0; i < 20; i++) {
        rd_kafka_queue_t *tmp = rd_kafka_queue_new(rk);
        rd_kafka_topic_partition_list_t *l = one(0, i);
        rd_kafka_resp_err_t e = rd_kafka_commit_queue(rk, l, tmp, NULL, NULL);
        rd_kafka_event_t *ev;
        if (e)
            die("commit_queue: %s", rd_kafka_err2str(e));
        ev = rd_kafka_queue_poll(tmp, -1);
        if (rd_kafka_event_type(ev) != RD_KAFKA_EVENT_OFFSET_COMMIT || rd_kafka_event_error(ev))
            die("answer: %s %s", rd_kafka_event_name(ev), rd_kafka_event_error_string(ev));
        rd_kafka_event_destroy(ev);
        rd_kafka_topic_partition_list_destroy(l);
        rd_kafka_queue_destroy(tmp);
    }
    say("answers=20");
    say("consumer_inside=%d", !t.done);
    produce(0, 1);
    join(&t, 30000);
}

static void log_queue(void)
{
    struct thread t;
    int logs = 0;

    start(&t, consumer_sits, NULL, 0);
    UNTIL(settled(t.tid), 10000);
    /* debug=fetch logs each time round, while the consumer's thread sits */
    while (logs < 20) {
        rd_kafka_event_t *ev = rd_kafka_queue_poll(own, 30000);
        const char *fac, *text;
        int level;
        if (!ev)
            die("no log for 30 s");
        if (rd_kafka_event_log(ev, &fac, &text, &level) == 0)
            logs++;
        rd_kafka_event_destroy(ev);
    }
    say("logs=%d", logs);
    say("consumer_inside=%d", !t.done);
    produce(0, 1);
    join(&t, 30000);
}

static void main_queue(void)
{
    struct thread t;

    start(&t, consumer_sits, NULL, 0);
    UNTIL(settled(t.tid), 10000);
    stats = 0;
    for (double deadline = now_ms() + 30000; stats < 5 && now_ms() < deadline;)
        rd_kafka_poll(rk, 100);
    say("stats=%d", stats >= 5 ? 5 : stats);
    say("consumer_inside=%d", !t.done);
    produce(0, 1);
    join(&t, 30000);
}

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "";
    bool log = !strcmp(which, "log");
    rd_kafka_conf_t *conf;

    mock_start(2);
    conf = consumer_conf("queues", NULL);
    if (log) {
        set(conf, "log.queue", "true");
        set(conf, "debug", "fetch");
    }
    if (!strcmp(which, "main")) {
        set(conf, "statistics.interval.ms", "100");
        rd_kafka_conf_set_stats_cb(conf, stats_cb);
    }
    rk = consumer_new(conf);
    if (log) {
        own = rd_kafka_queue_new(rk);
        rd_kafka_set_log_queue(rk, own);
    }
    consumer = rd_kafka_queue_get_consumer(rk);
    assign(rk, 2);
    warm(rk, 2);

    if (!strcmp(which, "private"))
        private_queue();
    else if (!strcmp(which, "partition"))
        partition();
    else if (!strcmp(which, "partition_idle"))
        partition_idle();
    else if (!strcmp(which, "commit"))
        commit();
    else if (log)
        log_queue();
    else if (!strcmp(which, "main"))
        main_queue();
    else
        die("what is %s?", which);

    rd_kafka_queue_destroy(consumer);
    rd_kafka_consumer_close(rk);
    if (log) {
        rd_kafka_set_log_queue(rk, NULL);
        rd_kafka_queue_destroy(own);
    }
    rd_kafka_destroy(rk);
    mock_stop();
    return 0;
}
