/*
 * probe.h: what the victims share. A victim is a small program that hangs, crashes or misbehaves on plain
 * librdkafka and must not under the shim. It prints a "# step" line before every step, so that a test can
 * tell where it hung, and ends with "ok ..." (status 0) or "not ok: why" (status 1).
 *
 * Nothing here sleeps to make something happen: eventually() looks until it is so, or fails.
 */
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

#ifdef __cplusplus
#    include <atomic>
using std::atomic_bool;
using std::atomic_int;
#else
#    include <stdatomic.h>
#endif

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#define PROBE __attribute__((unused)) static

/* How long a probe waits for what must happen, before it says "not ok"; a run that is meant to fail sets
 * less. */
PROBE int patience_ms(void)
{
    const char *ms = getenv("PROBE_PATIENCE_MS");
    return ms ? atoi(ms) : 10000;
}

/* ---- Saying ---- */

PROBE __attribute__((format(printf, 1, 2))) void step(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    flockfile(stdout);
    fputs("# ", stdout);
    vprintf(fmt, ap);
    fputc('\n', stdout);
    fflush(stdout);
    funlockfile(stdout);
    va_end(ap);
}

/* Tests ask for it: some misfortunes belong to some versions. */
__attribute__((constructor)) static void say_version(void)
{
    step("librdkafka %s", rd_kafka_version_str());
}

/* Ends at once, without exit handlers: what misbehaved may still hold something they want. */
PROBE __attribute__((format(printf, 1, 2), noreturn)) void probe_fail(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    flockfile(stdout);
    fputs("not ok: ", stdout);
    vprintf(fmt, ap);
    va_end(ap);
    fputc('\n', stdout);
    fflush(stdout);
    _exit(1);
}

PROBE __attribute__((format(printf, 1, 2), noreturn)) void probe_ok(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("ok ", stdout);
    vprintf(fmt, ap);
    fputc('\n', stdout);
    va_end(ap);
    exit(0);
}

#define expect(cond, ...)                                                                                    \
    do {                                                                                                     \
        if (!(cond))                                                                                         \
            probe_fail(__VA_ARGS__);                                                                         \
    } while (0)

#define expect_err(call, wanted)                                                                             \
    do {                                                                                                     \
        rd_kafka_resp_err_t err_ = (call);                                                                   \
        if (err_ != (wanted))                                                                                \
            probe_fail(#call " returned %s, not %s", rd_kafka_err2name(err_), rd_kafka_err2name(wanted));    \
    } while (0)

/* ---- Time ---- */

PROBE int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

PROBE void pause_ms(int ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&ts, NULL);
}

/* Is it so within ms? Looks every millisecond. */
#define within(ms, cond)                                                                                     \
    ({                                                                                                       \
        int64_t until_ = now_ms() + (ms);                                                                    \
        bool so_;                                                                                            \
        while (!(so_ = (cond)) && now_ms() < until_)                                                         \
            pause_ms(1);                                                                                     \
        so_;                                                                                                 \
    })

/* For the stage to be set, which is not what is being tested. */
#define eventually(cond, ...) expect(within(20000, cond), __VA_ARGS__)

/* ---- The shim's log ---- */

/* Does the shim write to a log, which the test names in PROBE_LOG? Without the shim it does not. */
PROBE bool shimmed(void)
{
    return getenv("PROBE_LOG") != NULL;
}

/* How often the text stands in the shim's log, which the test names in PROBE_LOG; -1: there is no log, since
 * this run is without the shim. */
PROBE int said(const char *text)
{
    const char *path = getenv("PROBE_LOG");
    if (!path)
        return -1;
    static char all[256 * 1024];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(all, 1, sizeof all - 1, f) : 0;
    if (f)
        fclose(f);
    all[n] = '\0';
    /* The same in JSON. */
    char json[128] = "";
    if (!strncmp(text, "finding: ", 9))
        snprintf(json, sizeof json, "\"finding\":\"%s\",\"severity\"", text + 9);
    else if (!strcmp(text, "moving again"))
        strcpy(json, "\"moving\":true");
    int times = 0;
    for (char *at = all; (at = strstr(at, text)); at++)
        times++;
    for (char *at = all; json[0] && (at = strstr(at, json)); at++)
        times++;
    return times;
}

/* Waits until the shim has said it; without the shim, goes on. */
PROBE void until_said(const char *text)
{
    eventually(said(text) != 0, "the shim never said: %s", text);
}

/* ---- Threads ---- */

struct worker {
    pthread_t thread;
    void *(*body)(void *);
    void *arg;
    atomic_int tid;
    atomic_bool done;
};

PROBE void *worker_main(void *arg)
{
    struct worker *w = (struct worker *)arg;
    w->tid = (int)syscall(SYS_gettid);
    void *result = w->body(w->arg);
    w->done = true;
    return result;
}

PROBE void start(struct worker *w, void *(*body)(void *), void *arg)
{
    w->body = body;
    w->arg = arg;
    w->tid = 0;
    w->done = false;
    if (pthread_create(&w->thread, NULL, worker_main, w) != 0)
        probe_fail("pthread_create");
}

/* The worker must end in time; what names the thing it was doing. */
PROBE void join(struct worker *w, const char *what)
{
    expect(within(patience_ms(), w->done), "%s did not return", what);
    pthread_join(w->thread, NULL);
}

/* Does the thread sleep in the kernel now? */
PROBE bool sleeps(int tid)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    size_t n = fread(line, 1, sizeof line - 1, f);
    fclose(f);
    line[n] = '\0';
    const char *name_end = strrchr(line, ')');
    return name_end && name_end[1] == ' ' && name_end[2] == 'S';
}

/* Waits until a worker that raised *inside just before a call is asleep in it: seen asleep 20 times in a row.
 */
PROBE void until_blocked(struct worker *w, atomic_bool *inside)
{
    eventually(*inside, "a worker never began its call");
    int in_a_row = 0;
    eventually((in_a_row = sleeps(w->tid) ? in_a_row + 1 : 0) >= 20, "a worker never blocked in its call");
}

/* The same, or its call has returned: where the call may be let through. */
PROBE void until_blocked_or_back(struct worker *w, atomic_bool *inside)
{
    eventually(*inside, "a worker never began its call");
    int in_a_row = 0;
    eventually(w->done || (in_a_row = sleeps(w->tid) ? in_a_row + 1 : 0) >= 20,
               "a worker neither blocked in its call nor came back");
}

/* ---- A mock cluster, with a producer that owns it ---- */

struct mock {
    rd_kafka_t *producer;
    rd_kafka_mock_cluster_t *cluster;
    const char *bootstraps;
};

PROBE void conf_set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK)
        probe_fail("%s", why);
}

PROBE rd_kafka_t *new_handle(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
    char why[256];
    rd_kafka_t *rk = rd_kafka_new(type, conf, why, sizeof why);
    if (!rk)
        probe_fail("rd_kafka_new: %s", why);
    return rk;
}

/* One broker: fewest threads, no routing. */
PROBE void mock_open(struct mock *m)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    conf_set(conf, "test.mock.num.brokers", "1");
    conf_set(conf, "log_level", "2");
    conf_set(conf, "linger.ms", "0");
    m->producer = new_handle(RD_KAFKA_PRODUCER, conf);
    m->cluster = rd_kafka_handle_mock_cluster(m->producer);
    m->bootstraps = rd_kafka_mock_cluster_bootstraps(m->cluster);

    /* The first join of a group waits 3 s; newer mocks let us ask for less. */
    void (*join_delay)(rd_kafka_mock_cluster_t *, int32_t) =
        (void (*)(rd_kafka_mock_cluster_t *, int32_t))dlsym(RTLD_DEFAULT,
                                                            "rd_kafka_mock_group_initial_rebalance_delay_ms");
    if (join_delay)
        join_delay(m->cluster, 100);
}

PROBE void mock_topic(struct mock *m, const char *topic, int partitions)
{
    expect_err(rd_kafka_mock_topic_create(m->cluster, topic, partitions, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
}

/* n messages a partition, numbered from 0. */
PROBE void mock_produce(struct mock *m, const char *topic, int partition, int n)
{
    for (int i = 0; i < n; i++) {
        char value[16];
        int len = snprintf(value, sizeof value, "%d", i);
        rd_kafka_resp_err_t err = rd_kafka_producev(
            m->producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
            RD_KAFKA_V_VALUE(value, (size_t)len), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
        expect_err(err, RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    expect_err(rd_kafka_flush(m->producer, 10000), RD_KAFKA_RESP_ERR_NO_ERROR);
}

PROBE void mock_close(struct mock *m)
{
    rd_kafka_destroy(m->producer);
}

/* ---- Consumers ---- */

/* A port nobody listens on: such a consumer is made and destroyed in milliseconds. */
#define NOWHERE "127.0.0.1:1"

PROBE rd_kafka_conf_t *consumer_conf(const char *bootstraps)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    conf_set(conf, "bootstrap.servers", bootstraps);
    conf_set(conf, "group.id", "victims");
    conf_set(conf, "auto.offset.reset", "earliest");
    conf_set(conf, "enable.auto.commit", "false");
    conf_set(conf, "session.timeout.ms", "6000");
    conf_set(conf, "heartbeat.interval.ms", "200");
    conf_set(conf, "log_level", "2");
    return conf;
}

PROBE rd_kafka_t *consumer_new(rd_kafka_conf_t *conf)
{
    return new_handle(RD_KAFKA_CONSUMER, conf);
}

/* Partitions 0..n-1 of a topic, from offset. */
PROBE rd_kafka_topic_partition_list_t *list_at(const char *topic, int n, int64_t offset)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(n);
    for (int i = 0; i < n; i++)
        rd_kafka_topic_partition_list_add(list, topic, i)->offset = offset;
    return list;
}

PROBE void assign_all(rd_kafka_t *rk, const char *topic, int n)
{
    rd_kafka_topic_partition_list_t *list =
        list_at(topic, n, 0); /* BEGINNING would ask the broker, and take 0.5 s */
    expect_err(rd_kafka_assign(rk, list), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(list);
}

PROBE void subscribe_to(rd_kafka_t *rk, const char *topic)
{
    rd_kafka_topic_partition_list_t *list = list_at(topic, 1, RD_KAFKA_OFFSET_INVALID);
    list->elems[0].partition = RD_KAFKA_PARTITION_UA;
    expect_err(rd_kafka_subscribe(rk, list), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(list);
}

PROBE rd_kafka_resp_err_t commit_at(rd_kafka_t *rk, const char *topic, int64_t offset, int async)
{
    rd_kafka_topic_partition_list_t *list = list_at(topic, 1, offset);
    rd_kafka_resp_err_t err = rd_kafka_commit(rk, list, async);
    rd_kafka_topic_partition_list_destroy(list);
    return err;
}

/* The group's coordinator is known once a commit has come back. */
PROBE void find_coordinator(rd_kafka_t *rk, const char *topic)
{
    expect_err(commit_at(rk, topic, 0, 0), RD_KAFKA_RESP_ERR_NO_ERROR);
}

PROBE rd_kafka_resp_err_t pause_all(rd_kafka_t *rk, const char *topic, int n)
{
    rd_kafka_topic_partition_list_t *list = list_at(topic, n, RD_KAFKA_OFFSET_INVALID);
    rd_kafka_resp_err_t err = rd_kafka_pause_partitions(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    return err;
}

/* Polls once and throws away what comes; says whether something came. */
PROBE bool poll_once(rd_kafka_t *rk, int timeout_ms)
{
    rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, timeout_ms);
    if (m)
        rd_kafka_message_destroy(m);
    return m != NULL;
}
