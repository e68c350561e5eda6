/*
 * pool: all calls are made by a pool of two workers. One polls, the other is busy with a call that collides,
 * and the rebalance callback hands its answer to the pool and waits. As long as the collider gets through, a
 * worker comes free for the answer; made to wait for the poll, it never does.
 */
#include "probe.h"

struct job {
    void (*run)(void *);
    void *arg;
    atomic_bool begun, done;
    struct job *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct job *jobs;
static bool closing;

static rd_kafka_t *rk;
static atomic_bool assigned, revoked;

static void submit(struct job *job, void (*run)(void *), void *arg)
{
    job->run = run;
    job->arg = arg;
    job->begun = job->done = false;
    job->next = NULL;
    pthread_mutex_lock(&lock);
    struct job **end = &jobs;
    while (*end)
        end = &(*end)->next;
    *end = job;
    pthread_cond_signal(&more);
    pthread_mutex_unlock(&lock);
}

static void *pool_worker(void *arg)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!jobs && !closing)
            pthread_cond_wait(&more, &lock);
        if (!jobs)
            break;
        struct job *job = jobs;
        jobs = job->next;
        pthread_mutex_unlock(&lock);
        job->begun = true;
        job->run(job->arg);
        job->done = true;
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return arg;
}

static void poll_until(void *flag)
{
    eventually((poll_once(rk, 100), *(atomic_bool *)flag), "no rebalance");
}

static void pause_job(void *arg)
{
    (void)arg;
    pause_all(rk, "t", 1);
}

static void commit_job(void *arg)
{
    (void)arg;
    commit_at(rk, "t", 0, 0);
}

static void answer(void *partitions)
{
    expect_err(rd_kafka_assign(rk, (rd_kafka_topic_partition_list_t *)partitions),
               RD_KAFKA_RESP_ERR_NO_ERROR);
}

static void on_rebalance(rd_kafka_t *handle, rd_kafka_resp_err_t err,
                         rd_kafka_topic_partition_list_t *partitions, void *opaque)
{
    (void)handle, (void)opaque;
    struct job collider, assign;
    bool given = err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    step("%s", given ? "assign beside a pause" : "unassign beside a commit");
    submit(&collider, given ? pause_job : commit_job, NULL);
    eventually(collider.begun, "the second worker never came");
    submit(&assign, answer, given ? partitions : NULL);
    expect(within(patience_ms(), assign.done), "the pool never answered the rebalance");
    expect(within(patience_ms(), collider.done), "the call beside it did not return");
    *(given ? &assigned : &revoked) = true;
}

int main(void)
{
    struct worker workers[2];
    struct job poll;
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 1);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rk = consumer_new(conf);
    subscribe_to(rk, "t");
    for (int i = 0; i < 2; i++)
        start(&workers[i], pool_worker, NULL);
    submit(&poll, poll_until, &assigned);
    eventually(poll.done, "no assignment");
    expect_err(rd_kafka_unsubscribe(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    submit(&poll, poll_until, &revoked);
    eventually(poll.done, "no revoke");

    pthread_mutex_lock(&lock);
    closing = true;
    pthread_cond_broadcast(&more);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 2; i++)
        join(&workers[i], "a worker");
    step("close");
    expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    step("destroy");
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("two workers were enough");
}
