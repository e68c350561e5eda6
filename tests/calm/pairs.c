/*
 * pairs N: what bindings legitimately do at the same time on one handle, as a table of fifteen. One side (A)
 * is a thread that polls or closes as that binding does, the other (B) is measured: how long each of its
 * calls takes. A's polls have no limit where the binding's have one, so that a B that waits for the end of a
 * poll waits for ever. A must not starve either: what is produced beside B's calls has to reach it.
 *
 *   done=1            both sides came to their end
 *   got=N             messages A got while B worked
 *   wait_p50_us, wait_max_us, calls    of B's calls
 */
#include "calm.h"

#define CALLS 60 /* of B, in each pair */

static rd_kafka_t *rk;
static rd_kafka_queue_t *cq;
static atomic_bool stop;
static atomic_int got;
static double waits[4096];
static int measured;

/* B's calls, one after another. */
#define TIMED(call)                                                                                          \
    do {                                                                                                     \
        double begin_ = now_ms();                                                                            \
        call;                                                                                                \
        if (measured < (int)(sizeof waits / sizeof *waits))                                                  \
            waits[measured++] = now_ms() - begin_;                                                           \
    } while (0)

static int by_length(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void ok(rd_kafka_resp_err_t e, const char *what)
{
    if (e)
        die("%s: %s", what, rd_kafka_err2name(e));
}

static void took(rd_kafka_message_t *m)
{
    if (!m)
        return;
    if (!m->err)
        got++;
    rd_kafka_message_destroy(m);
}

/* ---- A's sides ---- */

/* The last message ends a poll without limit, see finish(). */
static void poll_for_ever(struct thread *t)
{
    here(t);
    while (!stop)
        took(rd_kafka_consumer_poll(rk, t->n));
}

static void queue_poll_for_ever(struct thread *t)
{
    here(t);
    while (!stop) {
        rd_kafka_event_t *ev = rd_kafka_queue_poll(cq, t->n);
        if (ev && rd_kafka_event_type(ev) == RD_KAFKA_EVENT_FETCH)
            got += (int)rd_kafka_event_message_count(ev);
        rd_kafka_event_destroy(ev);
    }
}

/* ---- What they share ---- */

static void open_consumer(rd_kafka_conf_t *conf, int partitions)
{
    rk = consumer_new(conf);
    if (partitions) {
        assign(rk, partitions);
        warm(rk, 1);
        warm_commit(rk);
    }
    cq = rd_kafka_queue_get_consumer(rk);
}

static void begin(struct thread *a, void (*side)(struct thread *), int timeout)
{
    start(a, side, NULL, timeout);
    UNTIL(timeout >= 0 ? a->tid != 0 : settled(a->tid), 10000);
}

/* One message more than A has: it ends its poll. */
static void feed(int n)
{
    int want = got + n;
    produce(0, n);
    UNTIL(got >= want, 30000);
}

static void finish(struct thread *a)
{
    stop = true;
    produce(0, 1);
    join(a, 30000);
}

static void all_closed(void)
{
    rd_kafka_queue_destroy(cq);
    ok(rd_kafka_consumer_close(rk), "close");
    rd_kafka_destroy(rk);
}

static void store(int64_t offset)
{
    rd_kafka_topic_partition_list_t *l = one(0, offset);
    TIMED(ok(rd_kafka_offsets_store(rk, l), "offsets_store"));
    rd_kafka_topic_partition_list_destroy(l);
}

static void commit(int64_t offset, int async)
{
    rd_kafka_topic_partition_list_t *l = one(0, offset);
    TIMED(ok(rd_kafka_commit(rk, l, async), "commit"));
    rd_kafka_topic_partition_list_destroy(l);
}

static void pause_resume(void)
{
    rd_kafka_topic_partition_list_t *l = one(1, 0);
    TIMED(ok(rd_kafka_pause_partitions(rk, l), "pause"));
    TIMED(ok(rd_kafka_resume_partitions(rk, l), "resume"));
    rd_kafka_topic_partition_list_destroy(l);
}

static void reassign(void)
{
    rd_kafka_topic_partition_list_t *l = rd_kafka_topic_partition_list_new(2);
    rd_kafka_topic_partition_list_add(l, TOPIC, 0)->offset = RD_KAFKA_OFFSET_STORED;
    rd_kafka_topic_partition_list_add(l, TOPIC, 1)->offset = RD_KAFKA_OFFSET_STORED;
    TIMED(ok(rd_kafka_assign(rk, l), "assign"));
    rd_kafka_topic_partition_list_destroy(l);
}

static void read_only(void)
{
    rd_kafka_topic_partition_list_t *l = one(0, 0);
    TIMED(ok(rd_kafka_position(rk, l), "position"));
    TIMED((void)rd_kafka_assignment_lost(rk));
    rd_kafka_topic_partition_list_destroy(l);
}

/* ---- The pairs ---- */

/* A callback that only tells another thread, as node's do; that one answers. */
struct job {
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    rd_kafka_resp_err_t what;
    rd_kafka_topic_partition_list_t *partitions;
    bool waits, answered;
} job = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, NULL, false, false};

static atomic_int answers;

static void hand_over(rd_kafka_t *handle, rd_kafka_resp_err_t what,
                      rd_kafka_topic_partition_list_t *partitions, void *until_answered)
{
    (void)handle;
    pthread_mutex_lock(&job.mutex);
    if (job.partitions)
        rd_kafka_topic_partition_list_destroy(job.partitions);
    job.partitions = rd_kafka_topic_partition_list_copy(partitions);
    job.what = what;
    job.waits = true;
    job.answered = false;
    pthread_cond_broadcast(&job.moved);
    while (until_answered && !job.answered)
        pthread_cond_wait(&job.moved, &job.mutex);
    pthread_mutex_unlock(&job.mutex);
}

/* Pair 3: more than the answer, while the callback waits for it. */
static atomic_bool more_calls;

static void answer(void)
{
    rd_kafka_topic_partition_list_t *l = job.partitions;
    bool assigning = job.what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    const char *protocol = NULL;

    TIMED(protocol = rd_kafka_rebalance_protocol(rk));
    if (protocol && !strcmp(protocol, "COOPERATIVE")) {
        rd_kafka_error_t *e = NULL;
        TIMED(e = assigning ? rd_kafka_incremental_assign(rk, l) : rd_kafka_incremental_unassign(rk, l));
        if (e)
            die("answer: %s", rd_kafka_error_string(e));
    } else {
        TIMED(ok(rd_kafka_assign(rk, assigning ? l : NULL), "answer"));
    }
    TIMED((void)rd_kafka_assignment_lost(rk));
    if (more_calls && assigning && l->cnt) {
        rd_kafka_topic_partition_list_t *first = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(first, l->elems[0].topic, l->elems[0].partition)->offset = 0;
        for (int i = 0; i < CALLS / 4; i++) {
            TIMED(ok(rd_kafka_pause_partitions(rk, first), "pause"));
            TIMED(ok(rd_kafka_resume_partitions(rk, first), "resume"));
            TIMED(ok(rd_kafka_commit(rk, first, 1), "commit"));
        }
        rd_kafka_topic_partition_list_destroy(first);
    }
    answers++;
}

static void answerer(struct thread *t)
{
    (void)t;
    pthread_mutex_lock(&job.mutex);
    while (!stop) {
        while (!job.waits && !stop) {
            struct timespec soon;
            clock_gettime(CLOCK_REALTIME, &soon);
            soon.tv_sec++;
            pthread_cond_timedwait(&job.moved, &job.mutex, &soon);
        }
        if (!job.waits)
            break;
        job.waits = false;
        pthread_mutex_unlock(&job.mutex); /* it is ours until answered */
        answer();
        pthread_mutex_lock(&job.mutex);
        job.answered = true;
        pthread_cond_broadcast(&job.moved);
    }
    pthread_mutex_unlock(&job.mutex);
}

static void group(const char *name, const char *strategy, void *callback_waits, void (*with_group)(void))
{
    rd_kafka_conf_t *conf = consumer_conf(name, "partition.assignment.strategy", strategy, NULL);
    struct thread b;

    rd_kafka_conf_set_rebalance_cb(conf, hand_over);
    rd_kafka_conf_set_opaque(conf, callback_waits);
    open_consumer(conf, 0);
    start(&b, answerer, NULL, 0);
    subscribe(rk);
    UNTIL((took(rd_kafka_consumer_poll(rk, 20)), answers > 0), 30000);
    with_group();
    stop = true;
    join(&b, 10000);
    rd_kafka_queue_destroy(cq);
    rd_kafka_destroy(rk);
    stop = false;
    answers = 0;
}

static void close_now(void)
{
    int before = answers;
    ok(rd_kafka_consumer_close(rk), "close");
    if (answers == before)
        die("close asked nobody");
}

/* A name for each: before 2.6 the mock lets a group that somebody has left wait for him. */
static void close_and_answers(void)
{
    group("eager", "range", NULL, close_now);
    group("cooperative", "cooperative-sticky", NULL, close_now);
}

static void poll_and_calls(void)
{
    struct thread a;

    open_consumer(consumer_conf("pair2", "enable.auto.offset.store", "false", NULL), 2);
    begin(&a, poll_for_ever, -1);
    for (int i = 0; i < CALLS / 6; i++) {
        pause_resume();
        commit(1, 0);
        store(1);
        if (i % 4 == 3)
            reassign();
    }
    feed(1);
    TIMED(ok(rd_kafka_unsubscribe(rk), "unsubscribe")); /* ends the assignment: nothing comes any more */
    reassign();
    finish(&a);
    all_closed();
}

static void callback_and_calls(void)
{
    more_calls = true;
    group("waits", "range", &job, close_now);
}

static void poll_and_log(void)
{
    rd_kafka_conf_t *conf =
        consumer_conf("pair4", "log.queue", "true", "debug", "cgrp", "log_level", "7", NULL);
    rd_kafka_queue_t *logs;
    struct thread a;

    open_consumer(conf, 0);
    logs = rd_kafka_queue_new(rk);
    ok(rd_kafka_set_log_queue(rk, logs), "set_log_queue");
    assign(rk, 2);
    begin(&a, queue_poll_for_ever, -1);
    for (int i = 0; i < CALLS; i++) {
        rd_kafka_event_t *ev = NULL;
        TIMED(ev = rd_kafka_queue_poll(logs, 0));
        rd_kafka_event_destroy(ev);
    }
    for (int i = 0; i < 5; i++) {
        rd_kafka_event_destroy(rd_kafka_queue_poll(logs, 100));
        feed(1);
    }
    finish(&a);
    rd_kafka_queue_destroy(logs);
    all_closed();
}

static void poll_and_reply(void)
{
    rd_kafka_queue_t *replies;
    struct thread a;

    open_consumer(consumer_conf("pair5", NULL), 2);
    replies = rd_kafka_queue_new(rk);
    begin(&a, queue_poll_for_ever, -1);
    for (int i = 0; i < CALLS; i++) {
        rd_kafka_topic_partition_list_t *l = one(0, i);
        rd_kafka_event_t *ev = NULL;
        TIMED({
            ok(rd_kafka_commit_queue(rk, l, replies, NULL, NULL), "commit_queue");
            ev = rd_kafka_queue_poll(replies, -1);
        });
        if (!ev || rd_kafka_event_error(ev))
            die("reply: %s", ev ? rd_kafka_event_error_string(ev) : "none");
        rd_kafka_event_destroy(ev);
        rd_kafka_topic_partition_list_destroy(l);
    }
    feed(1);
    finish(&a);
    rd_kafka_queue_destroy(replies);
    all_closed();
}

static rd_kafka_queue_t *partition_queue(int partition)
{
    rd_kafka_queue_t *q = rd_kafka_queue_get_partition(rk, TOPIC, partition);
    if (!q)
        die("no queue of partition %d", partition);
    rd_kafka_queue_forward(q, NULL);
    return q;
}

static void from_partition(rd_kafka_queue_t *q, int n, int timeout)
{
    int have = 0;
    double deadline = now_ms() + 30000;

    while (have < n) {
        rd_kafka_message_t *m = NULL;
        double begin = now_ms();
        m = rd_kafka_consume_queue(q, timeout);
        if (timeout == 0 && measured < (int)(sizeof waits / sizeof *waits))
            waits[measured++] = now_ms() - begin;
        if (m && !m->err) {
            have++;
            store(m->offset + 1);
        }
        if (m)
            rd_kafka_message_destroy(m);
        if (now_ms() > deadline)
            die("%d of %d messages", have, n);
        if (!m && timeout == 0)
            nap();
    }
}

static atomic_int partitions_done;

static void partition_worker(struct thread *t)
{
    rd_kafka_queue_t *q = t->arg;
    here(t);
    from_partition(q, CALLS, 100);
    partitions_done++;
}

/* The one that polls gets no messages: those go to the partitions' own queues. */
static void poll_and_partitions(void)
{
    struct thread a, worker[2];
    rd_kafka_queue_t *q[2];

    open_consumer(consumer_conf("pair6", "enable.auto.offset.store", "false", NULL), 2);
    for (int i = 0; i < 2; i++)
        q[i] = partition_queue(i);
    begin(&a, queue_poll_for_ever, 100);
    for (int i = 0; i < 2; i++)
        start(&worker[i], partition_worker, q[i], i);
    for (int i = 0; i < 2; i++)
        produce(i, CALLS + 1);
    for (int i = 0; i < 2; i++)
        join(&worker[i], 30000);
    stop = true;
    join(&a, 30000);
    for (int i = 0; i < 2; i++)
        rd_kafka_queue_destroy(q[i]);
    all_closed();
}

static void spinning_poll_and_partition(void)
{
    struct thread a;
    rd_kafka_queue_t *q;

    open_consumer(consumer_conf("pair7", "enable.auto.offset.store", "false", NULL), 2);
    q = partition_queue(1);
    begin(&a, poll_for_ever, 0);
    produce(1, CALLS + 1);
    from_partition(q, CALLS, 0);
    feed(1);
    finish(&a);
    rd_kafka_queue_destroy(q);
    all_closed();
}

static void poll_and_private_queue(void)
{
    struct thread a;
    rd_kafka_queue_t *private, *q;

    open_consumer(consumer_conf("pair8", "enable.auto.offset.store", "false", NULL), 2);
    private = rd_kafka_queue_new(rk);
    q = rd_kafka_queue_get_partition(rk, TOPIC, 1);
    rd_kafka_queue_forward(q, private);
    begin(&a, poll_for_ever, 100);
    produce(1, CALLS + 1);
    from_partition(private, CALLS, 0);
    for (int i = 0; i < CALLS / 2; i++)
        pause_resume(); /* an endless loop of polls starves nobody */
    feed(1);
    finish(&a);
    rd_kafka_queue_destroy(q);
    rd_kafka_queue_destroy(private);
    all_closed();
}

static void worker_pool(struct thread *t)
{
    for (int i = 0; i < CALLS / 4; i++) {
        rd_kafka_topic_partition_list_t *l = one(t->n % 2, i);
        ok(rd_kafka_offsets_store(rk, l), "offsets_store");
        ok(rd_kafka_commit(rk, l, 1), "commit");
        ok(rd_kafka_position(rk, l), "position");
        rd_kafka_topic_partition_list_destroy(l);
    }
}

static void poll_and_workers(void)
{
    struct thread a, worker[3];

    open_consumer(consumer_conf("pair9", "enable.auto.offset.store", "false", NULL), 2);
    begin(&a, poll_for_ever, -1);
    for (int i = 0; i < 3; i++)
        start(&worker[i], worker_pool, NULL, i);
    for (int i = 0; i < CALLS / 6; i++) {
        store(i);
        commit(i, 1);
        read_only();
        pause_resume();
        feed(1); /* the listener gets its messages meanwhile */
    }
    for (int i = 0; i < 3; i++)
        join(&worker[i], 30000);
    finish(&a);
    all_closed();
}

static atomic_int stats;

static int count_stats(rd_kafka_t *handle, char *json, size_t size, void *opaque)
{
    (void)handle, (void)json, (void)size, (void)opaque;
    stats++;
    return 0;
}

/* No rd_kafka_poll_set_consumer: callbacks come through a queue of their own. */
static void poll_and_main_queue(void)
{
    struct thread a;
    rd_kafka_conf_t *conf = consumer_conf("pair10", "statistics.interval.ms", "10", NULL);

    rd_kafka_conf_set_stats_cb(conf, count_stats);
    open_consumer(conf, 2);
    begin(&a, poll_for_ever, -1);
    for (int i = 0; i < CALLS; i++)
        TIMED(rd_kafka_poll(rk, 0));
    for (int before = stats; stats < before + 3;)
        rd_kafka_poll(rk, 100);
    feed(1);
    finish(&a);
    all_closed();
}

static atomic_int background;
static atomic_bool call_back;

static void on_background(rd_kafka_t *handle, rd_kafka_event_t *ev, void *opaque)
{
    (void)opaque;
    if (call_back) { /* librdkafka's own thread, into the handle */
        rd_kafka_topic_partition_list_t *l = one(1, 0);
        TIMED(ok(rd_kafka_pause_partitions(handle, l), "pause"));
        TIMED(ok(rd_kafka_resume_partitions(handle, l), "resume"));
        TIMED(ok(rd_kafka_position(handle, l), "position"));
        rd_kafka_topic_partition_list_destroy(l);
    }
    rd_kafka_event_destroy(ev);
    background++;
}

static void on_log(const rd_kafka_t *handle, int level, const char *facility, const char *text)
{
    (void)level, (void)facility, (void)text;
    if (handle)
        (void)rd_kafka_name(handle);
}

static void admin(int rounds)
{
    rd_kafka_queue_t *q = rd_kafka_queue_get_background(rk);

    for (int i = 0; i < rounds; i++) {
        int before = background;
        rd_kafka_topic_partition_list_t *l = one(0, 0);
        rd_kafka_ListConsumerGroupOffsets_t *list = rd_kafka_ListConsumerGroupOffsets_new("pairs", l);
        TIMED(rd_kafka_ListConsumerGroupOffsets(rk, &list, 1, NULL, q));
        UNTIL(background > before, 30000);
        rd_kafka_ListConsumerGroupOffsets_destroy(list);
        rd_kafka_topic_partition_list_destroy(l);
    }
    rd_kafka_queue_destroy(q);
}

static void with_background(const char *name, bool calls, int rounds)
{
    struct thread a;
    rd_kafka_conf_t *conf = consumer_conf(name, "debug", "cgrp", "log_level", "7", NULL);

    rd_kafka_conf_set_background_event_cb(conf, on_background);
    rd_kafka_conf_set_log_cb(conf, on_log);
    open_consumer(conf, 2);
    call_back = calls;
    begin(&a, poll_for_ever, -1);
    admin(rounds);
    feed(1);
    finish(&a);
    all_closed();
}

static void poll_and_admin(void)
{
    with_background("pair11", false, CALLS / 6);
}

static void on_event(rd_kafka_t *handle, void *opaque)
{
    (void)handle, (void)opaque;
}

static void poll_and_io_events(void)
{
    struct thread a;
    int fds[2];

    if (pipe(fds))
        die("pipe");
    open_consumer(consumer_conf("pair12", NULL), 2);
    begin(&a, poll_for_ever, -1);
    for (int i = 0; i < CALLS / 4; i++) {
        rd_kafka_queue_t *q = NULL;
        TIMED(q = rd_kafka_queue_get_main(rk));
        TIMED(rd_kafka_queue_io_event_enable(q, fds[1], "1", 1));
        TIMED(rd_kafka_queue_io_event_enable(q, -1, NULL, 0));
        TIMED(rd_kafka_queue_cb_event_enable(q, on_event, NULL));
        rd_kafka_queue_cb_event_enable(q, NULL, NULL);
        rd_kafka_queue_destroy(q);
    }
    feed(1);
    finish(&a);
    all_closed();
    close(fds[0]);
    close(fds[1]);
}

static void well(rd_kafka_error_t *e, const char *what)
{
    if (e)
        die("%s: %s", what, rd_kafka_error_string(e));
}

static void poll_and_transaction(void)
{
    struct thread a;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *other;
    char err[256];

    set(conf, "bootstrap.servers", bootstrap);
    set(conf, "transactional.id", "pairs");
    other = rd_kafka_new(RD_KAFKA_PRODUCER, conf, err, sizeof err);
    if (!other)
        die("producer: %s", err);
    well(rd_kafka_init_transactions(other, 30000), "init_transactions");
    open_consumer(consumer_conf("pair13", NULL), 2);
    begin(&a, poll_for_ever, -1);
    for (int i = 0; i < CALLS / 6; i++) {
        rd_kafka_topic_partition_list_t *l = one(0, i);
        rd_kafka_consumer_group_metadata_t *metadata = NULL;
        well(rd_kafka_begin_transaction(other), "begin");
        TIMED(metadata = rd_kafka_consumer_group_metadata(rk));
        TIMED(well(rd_kafka_send_offsets_to_transaction(other, l, metadata, 30000), "send_offsets"));
        TIMED(well(rd_kafka_commit_transaction(other, 30000), "commit"));
        rd_kafka_consumer_group_metadata_destroy(metadata);
        rd_kafka_topic_partition_list_destroy(l);
    }
    feed(1);
    finish(&a);
    all_closed();
    rd_kafka_destroy(other);
}

static void poll_and_own_threads(void)
{
    with_background("pair14", true, CALLS / 6);
}

/* Not legitimate, but everywhere: without the shim it hangs or crashes. */
static void poll_and_finalizer(void)
{
    for (int i = 0; i < CALLS / 6; i++) {
        struct thread a;
        stop = false;
        open_consumer(consumer_conf("pair15", NULL), 0);
        assign(rk, 2);
        rd_kafka_queue_destroy(cq);
        start(&a, poll_for_ever, NULL, -1);
        UNTIL(settled(a.tid), 10000);
        stop = true;
        if (i % 2)
            TIMED(ok(rd_kafka_consumer_close(rk), "close"));
        TIMED(rd_kafka_destroy(rk));
        join(&a, 30000);
    }
}

static void (*const pairs[])(void) = {
    close_and_answers,
    poll_and_calls,
    callback_and_calls,
    poll_and_log,
    poll_and_reply,
    poll_and_partitions,
    spinning_poll_and_partition,
    poll_and_private_queue,
    poll_and_workers,
    poll_and_main_queue,
    poll_and_admin,
    poll_and_io_events,
    poll_and_transaction,
    poll_and_own_threads,
    poll_and_finalizer,
};

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 0;

    if (n < 1 || n > (int)(sizeof pairs / sizeof *pairs))
        die("which pair? 1 to %zu", sizeof pairs / sizeof *pairs);
    mock_start(2);
    pairs[n - 1]();
    mock_stop();
    qsort(waits, (size_t)measured, sizeof *waits, by_length);
    say("done=1");
    say("got=%d", got);
    say("calls=%d", measured);
    if (measured) {
        say("wait_p50_us=%.0f", waits[measured / 2] * 1e3);
        say("wait_max_us=%.0f", waits[measured - 1] * 1e3);
    }
    return 0;
}
