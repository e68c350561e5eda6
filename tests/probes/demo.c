/*
 * demo: what happens to a program that shares one consumer between threads. An ordinary program: linked with
 * librdkafka, and it knows nothing of rdgate. `make demo` runs it without and with.
 *
 *     demo close|destroy|callback|own-lock|share|batch|version
 *
 * Prints "at: ..." before whatever may hang, so that its last line tells where it did, and ends with one line
 * "ok MS what" or "bad MS what", MS being how long the part took that matters.
 */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PARTITIONS = 3, MESSAGES = 3000, ROUNDS = 8, CALLBACKS = 20 };

static rd_kafka_t *producer, *consumer;
static rd_kafka_mock_cluster_t *cluster;
static int64_t began;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static void sleep_ms(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&t, NULL);
}

static void at(const char *what)
{
    printf("at: %s\n", what);
    fflush(stdout);
}

__attribute__((format(printf, 2, 3), noreturn)) static void end(bool ok, const char *what, ...)
{
    va_list args;
    printf("%s %lld ", ok ? "ok" : "bad", (long long)(now_ms() - began));
    va_start(args, what);
    vprintf(what, args);
    va_end(args);
    printf("\n");
    exit(!ok);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK)
        end(false, "%s", why);
}

static rd_kafka_t *new_handle(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
    char why[256];
    rd_kafka_t *rk = rd_kafka_new(type, conf, why, sizeof why);
    if (!rk)
        end(false, "%s", why);
    return rk;
}

static void produce(int from, int to)
{
    for (int i = from; i < to; i++)
        rd_kafka_producev(producer, RD_KAFKA_V_TOPIC("demo"), RD_KAFKA_V_PARTITION(i % PARTITIONS),
                          RD_KAFKA_V_VALUE("hello", 5), RD_KAFKA_V_END);
    if (rd_kafka_flush(producer, 10000))
        end(false, "cannot produce");
}

static void open_cluster(void)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "test.mock.num.brokers", "1");
    set(conf, "log_level", "2");
    producer = new_handle(RD_KAFKA_PRODUCER, conf);
    cluster = rd_kafka_handle_mock_cluster(producer);
    rd_kafka_mock_topic_create(cluster, "demo", PARTITIONS, 1);
}

static rd_kafka_topic_partition_list_t *all_partitions(void)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(PARTITIONS);
    for (int i = 0; i < PARTITIONS; i++)
        rd_kafka_topic_partition_list_add(list, "demo", i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    return list;
}

static void open_consumer(int (*stats_cb)(rd_kafka_t *, char *, size_t, void *))
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster));
    set(conf, "group.id", "demo");
    set(conf, "enable.auto.commit", "false");
    set(conf, "auto.offset.reset", "earliest");
    set(conf, "fetch.wait.max.ms", "10");
    set(conf, "log_level", "2");
    if (stats_cb) {
        set(conf, "statistics.interval.ms", "20");
        rd_kafka_conf_set_stats_cb(conf, stats_cb);
    }
    consumer = new_handle(RD_KAFKA_CONSUMER, conf);
    rd_kafka_poll_set_consumer(consumer);
    rd_kafka_topic_partition_list_t *list = all_partitions();
    rd_kafka_assign(consumer, list);
    rd_kafka_topic_partition_list_destroy(list);
}

static int pause_and_resume(void)
{
    rd_kafka_topic_partition_list_t *list = all_partitions();
    rd_kafka_resp_err_t err = rd_kafka_pause_partitions(consumer, list);
    if (!err)
        err = rd_kafka_resume_partitions(consumer, list);
    rd_kafka_topic_partition_list_destroy(list);
    return err;
}

/* ---- close, destroy: a thread sits in poll(-1) ---- */

static void *poll_for_ever(void *arg)
{
    rd_kafka_message_t *m;
    while ((m = rd_kafka_consumer_poll(consumer, -1)))
        rd_kafka_message_destroy(m);
    return arg;
}

static void run_close(void)
{
    pthread_t poller;
    open_consumer(NULL);
    pthread_create(&poller, NULL, poll_for_ever, NULL);
    sleep_ms(500);
    began = now_ms();
    at("rd_kafka_consumer_close() does not return");
    rd_kafka_resp_err_t err = rd_kafka_consumer_close(consumer);
    at("close has returned, poll(-1) never does");
    pthread_join(poller, NULL);
    at("rd_kafka_destroy() does not return");
    rd_kafka_destroy(consumer);
    end(!err, "poll returned, then close (%s), then destroy", rd_kafka_err2name(err));
}

static void run_destroy(void)
{
    pthread_t poller;
    open_consumer(NULL);
    pthread_create(&poller, NULL, poll_for_ever, NULL);
    sleep_ms(500);
    began = now_ms();
    at("rd_kafka_destroy() never returns, nor does poll(-1)");
    rd_kafka_destroy(consumer);
    at("destroy has returned, poll(-1) never does");
    pthread_join(poller, NULL);
    end(true, "poll returned first, then the handle was freed");
}

/* ---- callback, own-lock: a callback hands work to a pool, and the pool's only thread is busy with us ----
 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, pool = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_moved = PTHREAD_COND_INITIALIZER;
static int asked, done;
static bool own_lock;
static atomic_int callbacks;
static atomic_bool stop;

static void lock_if_own(void)
{
    if (own_lock)
        pthread_mutex_lock(&lock);
}

static void unlock_if_own(void)
{
    if (own_lock)
        pthread_mutex_unlock(&lock);
}

static void *pool_thread(void *arg)
{
    while (!stop) {
        lock_if_own(); /* its own work on the consumer, always */
        pause_and_resume();
        unlock_if_own();
        pthread_mutex_lock(&pool);
        if (done < asked) {
            done++;
            pthread_cond_broadcast(&pool_moved);
        }
        pthread_mutex_unlock(&pool);
    }
    return arg;
}

static int on_stats(rd_kafka_t *rk, char *json, size_t length, void *opaque)
{
    (void)rk, (void)json, (void)length, (void)opaque;
    if (stop)
        return 0; /* the pool has gone home; close serves callbacks, too */
    at("the callback waits for the pool, the pool for the poll's lock");
    pthread_mutex_lock(&pool);
    int mine = ++asked;
    while (done < mine)
        pthread_cond_wait(&pool_moved, &pool);
    pthread_mutex_unlock(&pool);
    callbacks++;
    return 0;
}

static void run_callback(void)
{
    pthread_t worker;
    open_consumer(on_stats);
    began = now_ms();
    pthread_create(&worker, NULL, pool_thread, NULL);
    while (callbacks < CALLBACKS) {
        lock_if_own();
        rd_kafka_message_t *m = rd_kafka_consumer_poll(consumer, 100);
        unlock_if_own();
        if (m)
            rd_kafka_message_destroy(m);
    }
    stop = true;
    pthread_mutex_lock(&pool);
    done = asked;
    pthread_cond_broadcast(&pool_moved);
    pthread_mutex_unlock(&pool);
    at("the pool's thread does not come back");
    pthread_join(worker, NULL);
    at("rd_kafka_consumer_close() does not return");
    rd_kafka_consumer_close(consumer);
    rd_kafka_destroy(consumer);
    end(true, "%d callbacks waited for another thread's calls", CALLBACKS);
}

/* ---- share: two threads poll and commit, and the service is stopped ---- */

static atomic_int seen;

static void *poll_and_commit(void *arg)
{
    while (!stop) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(consumer, 10);
        if (!m)
            continue;
        if (!m->err) {
            seen++;
            rd_kafka_commit_message(consumer, m, 0);
        }
        rd_kafka_message_destroy(m);
    }
    return arg;
}

static void run_share(void)
{
    produce(0, MESSAGES);
    began = now_ms();
    for (int round = 1; round <= ROUNDS; round++) {
        char where[96];
        pthread_t thread[2];
        stop = false;
        seen = 0;
        open_consumer(NULL);
        for (int i = 0; i < 2; i++)
            pthread_create(&thread[i], NULL, poll_and_commit, NULL);
        while (seen < 20)
            sleep_ms(1);
        snprintf(where, sizeof where, "stop number %d: close does not return", round);
        at(where);
        rd_kafka_consumer_close(consumer);
        snprintf(where, sizeof where, "stop number %d: a poll or commit beside the close never returns",
                 round);
        at(where);
        stop = true;
        for (int i = 0; i < 2; i++)
            pthread_join(thread[i], NULL);
        rd_kafka_destroy(consumer);
    }
    end(true, "started and stopped %d times", ROUNDS);
}

/* ---- batch: one thread takes batches from a steady stream, one pauses and resumes ---- */

static void *produce_steadily(void *arg)
{
    for (int i = 0; i < MESSAGES; i += MESSAGES / 100) {
        produce(i, i + MESSAGES / 100);
        sleep_ms(10);
    }
    return arg;
}

static void *flip(void *arg)
{
    while (!stop) {
        pause_and_resume();
        sleep_ms(20);
    }
    return arg;
}

static void run_batch(void)
{
    pthread_t flipper, source;
    static rd_kafka_message_t *batch[MESSAGES];
    static bool known[PARTITIONS][MESSAGES];
    int got = 0, twice = 0;

    open_consumer(NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(consumer);
    pthread_create(&flipper, NULL, flip, NULL);
    pthread_create(&source, NULL, produce_steadily, NULL);
    began = now_ms();
    at("taking batches");
    for (int64_t last = now_ms(); got < MESSAGES && now_ms() - last < 2500 && now_ms() - began < 7000;) {
        ssize_t n = rd_kafka_consume_batch_queue(queue, 100, batch, MESSAGES);
        for (ssize_t i = 0; i < n; i++) {
            rd_kafka_message_t *m = batch[i];
            if (!m->err && known[m->partition][m->offset])
                twice++;
            else if (!m->err) {
                known[m->partition][m->offset] = true;
                got++;
                last = now_ms();
            }
            rd_kafka_message_destroy(m);
        }
    }
    stop = true;
    pthread_join(flipper, NULL);
    pthread_join(source, NULL);
    if (got == MESSAGES && !twice)
        end(true, "all %d messages, none lost, none twice", MESSAGES);
    end(false, "%d of %d messages never arrived (%d %%)", MESSAGES - got, MESSAGES,
        (MESSAGES - got) * 100 / MESSAGES);
}

int main(int argc, char **argv)
{
    const char *scenario = argc == 2 ? argv[1] : "";
    if (!strcmp(scenario, "version"))
        return puts(rd_kafka_version_str()) < 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    began = now_ms();
    own_lock = !strcmp(scenario, "own-lock");
    open_cluster();
    if (!strcmp(scenario, "close"))
        run_close();
    if (!strcmp(scenario, "destroy"))
        run_destroy();
    if (!strcmp(scenario, "callback") || own_lock)
        run_callback();
    if (!strcmp(scenario, "share"))
        run_share();
    if (!strcmp(scenario, "batch"))
        run_batch();
    fprintf(stderr, "demo close|destroy|callback|own-lock|share|batch|version\n");
    return 2;
}
