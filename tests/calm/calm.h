/*
 * calm.h: what the calm programs share: a mock cluster, a consumer, a clock, and waiting for conditions.
 * A calm program behaves well without the shim; it prints key=value lines that must be as good with it.
 */
#ifndef CALM_H
#define CALM_H

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#define UNUSED __attribute__((unused))

#define TOPIC  "calm"
#define BROKER 1
/* Kafka's request numbers, for the mock's answers */
#define LIST_OFFSETS  2
#define OFFSET_COMMIT 8
#define OFFSET_FETCH  9

UNUSED __attribute__((noreturn, format(printf, 1, 2))) static void die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "calm: ");
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
    va_end(ap);
    fflush(NULL);
    _exit(2);
}

__attribute__((format(printf, 1, 2))) UNUSED static void say(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
    fflush(stdout);
}

UNUSED static double now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

UNUSED static double thread_cpu_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

UNUSED static void nap(void)
{
    struct timespec ts = {0, 200 * 1000};
    nanosleep(&ts, NULL);
}

/* Wait for a condition; a deadline that passes ends the program. */
#define UNTIL(cond, ms)                                                                                      \
    do {                                                                                                     \
        double deadline_ = now_ms() + (ms);                                                                  \
        while (!(cond)) {                                                                                    \
            if (now_ms() > deadline_)                                                                        \
                die("%s:%d: not within %d ms: %s", __FILE__, __LINE__, (int)(ms), #cond);                    \
            nap();                                                                                           \
        }                                                                                                    \
    } while (0)

/* Is a thread of ours asleep in a futex: a condition, a mutex, the gate? */
UNUSED static bool asleep(pid_t tid)
{
    char path[64], line[32] = "";
    FILE *f;

    if (tid == 0)
        return false;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)tid);
    f = fopen(path, "re");
    if (!f)
        return false;
    if (!fgets(line, sizeof line, f))
        line[0] = 0;
    fclose(f);
    return line[0] >= '0' && line[0] <= '9' && atol(line) == SYS_futex;
}

/* Asleep in two looks 2 ms apart: not just passing a lock. */
UNUSED static bool settled(pid_t tid)
{
    struct timespec ts = {0, 2000 * 1000};

    if (!asleep(tid))
        return false;
    nanosleep(&ts, NULL);
    return asleep(tid);
}

struct thread {
    pthread_t id;
    _Atomic pid_t tid;
    atomic_bool done;
    void (*run)(struct thread *);
    void *arg;
    int n;
};

UNUSED static void *thread_main(void *p)
{
    struct thread *t = p;
    t->run(t);
    atomic_store(&t->done, true);
    return NULL;
}

/* The thread says with here() that its next call is the one that matters. */
UNUSED static void here(struct thread *t)
{
    atomic_store(&t->tid, (pid_t)syscall(SYS_gettid));
}

UNUSED static void start(struct thread *t, void (*run)(struct thread *), void *arg, int n)
{
    memset(t, 0, sizeof *t);
    t->run = run;
    t->arg = arg;
    t->n = n;
    if (pthread_create(&t->id, NULL, thread_main, t))
        die("no thread");
}

UNUSED static void join(struct thread *t, int ms)
{
    UNTIL(atomic_load(&t->done), ms);
    pthread_join(t->id, NULL);
}

static rd_kafka_t *producer;
static rd_kafka_mock_cluster_t *mock;
static const char *bootstrap;

UNUSED static void set(rd_kafka_conf_t *conf, const char *key, const char *value)
{
    char err[256];
    if (rd_kafka_conf_set(conf, key, value, err, sizeof err) != RD_KAFKA_CONF_OK)
        die("%s=%s: %s", key, value, err);
}

/* How long the mock lets a new group wait for more members: from 2.6; before it is 3 s. */
UNUSED static void mock_group_delay(int ms)
{
    void (*delay)(rd_kafka_mock_cluster_t *, int32_t);
    *(void **)&delay = dlsym(RTLD_DEFAULT, "rd_kafka_mock_group_initial_rebalance_delay_ms");
    if (delay)
        delay(mock, ms);
}

/* A producer with a one-broker mock cluster inside, and a topic. */
UNUSED static void mock_start(int partitions)
{
    char err[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_resp_err_t e;

    set(conf, "test.mock.num.brokers", "1");
    set(conf, "linger.ms", "0");
    set(conf, "log_level", "4");
    producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, err, sizeof err);
    if (!producer)
        die("producer: %s", err);
    mock = rd_kafka_handle_mock_cluster(producer);
    if (!mock)
        die("no mock cluster");
    bootstrap = rd_kafka_mock_cluster_bootstraps(mock);
    mock_group_delay(0);
    e = rd_kafka_mock_topic_create(mock, TOPIC, partitions, 1);
    if (e)
        die("topic: %s", rd_kafka_err2str(e));
}

UNUSED static void mock_stop(void)
{
    rd_kafka_destroy(producer);
}

/* Answer the next n requests of a kind with an error (or none) after rtt milliseconds. */
UNUSED static void mock_answer(int api, int n, rd_kafka_resp_err_t err, int rtt)
{
    while (n-- > 0) {
        rd_kafka_resp_err_t e =
            rd_kafka_mock_broker_push_request_error_rtts(mock, BROKER, (int16_t)api, 1, err, rtt);
        if (e)
            die("mock answer: %s", rd_kafka_err2str(e));
    }
}

/* How many of those answers are still unused? */
UNUSED static size_t mock_unused(int api)
{
    size_t n = 0;
    rd_kafka_mock_broker_error_stack_cnt(mock, BROKER, (int16_t)api, &n);
    return n;
}

UNUSED static void produce(int partition, int n)
{
    for (int i = 0; i < n; i++) {
        rd_kafka_resp_err_t e;
        while ((e = rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(TOPIC), RD_KAFKA_V_PARTITION(partition),
                                      RD_KAFKA_V_VALUE("calm", 4), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                      RD_KAFKA_V_END)) == RD_KAFKA_RESP_ERR__QUEUE_FULL)
            rd_kafka_poll(producer, 10);
        if (e)
            die("produce: %s", rd_kafka_err2str(e));
    }
    if (rd_kafka_flush(producer, 20000))
        die("flush timed out");
}

/* conf for a consumer; more settings as key, value, ..., NULL */
UNUSED static rd_kafka_conf_t *consumer_conf(const char *group, ...)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    const char *key;
    va_list ap;

    set(conf, "bootstrap.servers", bootstrap);
    set(conf, "group.id", group);
    set(conf, "enable.auto.commit", "false");
    set(conf, "auto.offset.reset", "earliest");
    set(conf, "fetch.wait.max.ms", "50");
    va_start(ap, group);
    while ((key = va_arg(ap, const char *)))
        set(conf, key, va_arg(ap, const char *));
    va_end(ap);
    return conf;
}

UNUSED static rd_kafka_t *consumer_new(rd_kafka_conf_t *conf)
{
    char err[256];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, err, sizeof err);
    if (!rk)
        die("consumer: %s", err);
    return rk;
}

UNUSED static rd_kafka_topic_partition_list_t *one(int partition, int64_t offset)
{
    rd_kafka_topic_partition_list_t *l = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(l, TOPIC, partition)->offset = offset;
    return l;
}

/* Assign partitions 0..n-1 from their beginning, without a group. */
UNUSED static void assign(rd_kafka_t *rk, int n)
{
    rd_kafka_topic_partition_list_t *l = rd_kafka_topic_partition_list_new(n);
    rd_kafka_resp_err_t e;

    for (int i = 0; i < n; i++)
        rd_kafka_topic_partition_list_add(l, TOPIC, i)->offset = 0;
    e = rd_kafka_assign(rk, l);
    if (e)
        die("assign: %s", rd_kafka_err2str(e));
    rd_kafka_topic_partition_list_destroy(l);
}

UNUSED static void subscribe(rd_kafka_t *rk)
{
    rd_kafka_topic_partition_list_t *l = one(RD_KAFKA_PARTITION_UA, RD_KAFKA_OFFSET_INVALID);
    rd_kafka_resp_err_t e = rd_kafka_subscribe(rk, l);
    if (e)
        die("subscribe: %s", rd_kafka_err2str(e));
    rd_kafka_topic_partition_list_destroy(l);
}

UNUSED static int assigned(rd_kafka_t *rk)
{
    rd_kafka_topic_partition_list_t *l = NULL;
    int n = 0;
    if (!rd_kafka_assignment(rk, &l) && l) {
        n = l->cnt;
        rd_kafka_topic_partition_list_destroy(l);
    }
    return n;
}

/* One message from q, whatever was produced: then the consumer is known to fetch. */
UNUSED static void take(rd_kafka_queue_t *q, int n)
{
    double deadline = now_ms() + 30000;
    while (n > 0) {
        rd_kafka_message_t *m = rd_kafka_consume_queue(q, 100);
        if (m && !m->err)
            n--;
        if (m)
            rd_kafka_message_destroy(m);
        if (now_ms() > deadline)
            die("no message in 30 s");
    }
}

/* Produce one message to each of n partitions and take them: everything is connected and idle after that. */
UNUSED static void warm(rd_kafka_t *rk, int partitions)
{
    rd_kafka_queue_t *q = rd_kafka_queue_get_consumer(rk);
    for (int i = 0; i < partitions; i++)
        produce(i, 1);
    take(q, partitions);
    rd_kafka_queue_destroy(q);
}

/* Know the coordinator: afterwards commits and committed() go straight to it. */
UNUSED static void warm_commit(rd_kafka_t *rk)
{
    rd_kafka_topic_partition_list_t *l = one(0, 1);
    rd_kafka_resp_err_t e = RD_KAFKA_RESP_ERR__WAIT_COORD;
    UNTIL(!(e = rd_kafka_commit(rk, l, 0)), 30000);
    (void)e;
    rd_kafka_topic_partition_list_destroy(l);
}

UNUSED static const char *errno_name(int e)
{
    static __thread char text[16];
    if (e == 0)
        return "0";
    if (strerrorname_np(e))
        return strerrorname_np(e);
    snprintf(text, sizeof text, "%d", e);
    return text;
}

#endif
