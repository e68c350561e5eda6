/*
 * inside reentry|delegate|crowd
 * What an application does inside its callbacks: rebalance, offset commit, statistics, consume.
 *   reentry   calls the same consumer
 *   delegate  has another thread call it, and waits for the answer, as event loops and interpreters do
 *   crowd     the same, while three more threads call without pause
 */
#include "calm.h"

#define MESSAGES 60

static rd_kafka_t *rk;
static bool delegate;
static atomic_int rebalances, commits, statistics, consumed, answers, served;
static atomic_bool stop, closing;

/* One task at a time for one worker. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void (*task)(void *);
static void *task_arg;

static void worker(struct thread *t)
{
    (void)t;
    pthread_mutex_lock(&lock);
    while (!stop) {
        if (task) {
            pthread_mutex_unlock(&lock);
            task(task_arg);
            pthread_mutex_lock(&lock);
            task = NULL;
            answers++;
            pthread_cond_broadcast(&changed);
        } else {
            pthread_cond_wait(&changed, &lock);
        }
    }
    pthread_mutex_unlock(&lock);
}

static void perform(void (*f)(void *), void *arg)
{
    if (!delegate) {
        f(arg);
        answers++;
        return;
    }
    pthread_mutex_lock(&lock);
    task = f;
    task_arg = arg;
    pthread_cond_broadcast(&changed);
    while (task)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void check(const char *what, rd_kafka_resp_err_t e)
{
    if (e)
        die("%s: %s", what, rd_kafka_err2name(e));
}

/* Calls of several classes */
static void calls(void *arg)
{
    rd_kafka_topic_partition_list_t *l = one(1, 0), *a = NULL;

    (void)arg;
    check("pause", rd_kafka_pause_partitions(rk, l));
    check("resume", rd_kafka_resume_partitions(rk, l));
    check("position", rd_kafka_position(rk, l));
    check("assignment", rd_kafka_assignment(rk, &a));
    rd_kafka_topic_partition_list_destroy(a);
    check("subscription", rd_kafka_subscription(rk, &a));
    rd_kafka_topic_partition_list_destroy(a);
    rd_kafka_topic_partition_list_destroy(l);
}

static void answer(void *list)
{
    check("assign", rd_kafka_assign(rk, list));
}

static void rebalance_cb(rd_kafka_t *h, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *l, void *o)
{
    (void)h, (void)o;
    perform(answer, err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? l : NULL);
    if (!closing)
        perform(calls, NULL);
    rebalances++;
}

static void commit_cb(rd_kafka_t *h, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *l, void *o)
{
    (void)h, (void)err, (void)l, (void)o;
    if (!closing)
        perform(calls, NULL);
    commits++;
}

static int stats_cb(rd_kafka_t *h, char *json, size_t len, void *o)
{
    (void)h, (void)json, (void)len, (void)o;
    if (!closing)
        perform(calls, NULL);
    statistics++;
    return 0;
}

static void commit_async(void *arg)
{
    check("commit", rd_kafka_commit_message(rk, arg, 1));
}

static void consume_cb(rd_kafka_message_t *m, void *o)
{
    (void)o;
    if (m->err)
        die("message: %s", rd_kafka_message_errstr(m));
    if (m->offset != consumed)
        die("offset %" PRId64 " after %d messages", m->offset, consumed);
    consumed++;
    if (consumed % 5 == 0) {
        perform(commit_async, m);
        perform(calls, NULL);
    }
}

static void bystander(struct thread *t)
{
    while (!stop) {
        calls(NULL);
        t->n++;
        usleep(1000);
    }
    served++;
}

int main(int argc, char **argv)
{
    bool crowd = argc > 1 && !strcmp(argv[1], "crowd");
    struct thread w, b[3];
    rd_kafka_conf_t *conf;
    double deadline;

    delegate = crowd || (argc > 1 && !strcmp(argv[1], "delegate"));
    mock_start(2);
    conf = consumer_conf("inside", "statistics.interval.ms", "100", "session.timeout.ms", "6000", NULL);
    rd_kafka_conf_set_rebalance_cb(conf, rebalance_cb);
    rd_kafka_conf_set_offset_commit_cb(conf, commit_cb);
    rd_kafka_conf_set_stats_cb(conf, stats_cb);
    rd_kafka_conf_set_consume_cb(conf, consume_cb);
    rk = consumer_new(conf);
    rd_kafka_poll_set_consumer(rk);
    start(&w, worker, NULL, 0);
    subscribe(rk);
    produce(0, MESSAGES);
    deadline = now_ms() + 30000;
    if (crowd) {
        /* a group that is still joining has no assignment to pause */
        while (rebalances == 0 && now_ms() < deadline)
            rd_kafka_poll(rk, 100);
        for (int i = 0; i < 3; i++)
            start(&b[i], bystander, NULL, 0);
    }
    while ((consumed < MESSAGES || statistics < 10 || commits < MESSAGES / 5) && now_ms() < deadline)
        rd_kafka_poll(rk, -1);

    say("messages=%d", consumed);
    say("commits=%d", commits);
    say("rebalances=%d", rebalances);
    say("enough_statistics=%d", statistics >= 10);
    say("enough_answers=%d", answers >= MESSAGES / 5 * 3 + 10 + 2);
    closing = true;
    if (crowd) {
        stop = true;
        for (int i = 0; i < 3; i++)
            join(&b[i], 30000);
        say("served=%d", served);
        stop = false;
    }
    say("close=%s", rd_kafka_err2name(rd_kafka_consumer_close(rk)));
    say("rebalances_closed=%d", rebalances);
    pthread_mutex_lock(&lock);
    stop = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    join(&w, 10000);
    rd_kafka_destroy(rk);
    mock_stop();
    return 0;
}
