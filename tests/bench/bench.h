/*
 * bench.h: what the benchmarks share. A benchmark prints lines `name value`, one per figure; scripts/bench
 * runs it with and without the shim, and compares.
 */
#pragma once

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#define BENCH __attribute__((unused)) static

BENCH __attribute__((noreturn, format(printf, 1, 2))) void die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    _exit(1);
}

BENCH void figure(const char *name, double value)
{
    printf("%s %.3f\n", name, value);
    fflush(stdout);
}

BENCH int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

BENCH double cpu_ns(void) /* of the whole process */
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return ts.tv_sec * 1e9 + ts.tv_nsec;
}

BENCH void sleep_us(long us)
{
    struct timespec ts = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&ts, NULL);
}

/* Is a thread of ours asleep in a futex? */
BENCH bool asleep(int tid)
{
    char path[64], line[32] = "";
    FILE *f;

    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    f = fopen(path, "re");
    if (!f)
        return false;
    if (!fgets(line, sizeof line, f))
        line[0] = 0;
    fclose(f);
    return line[0] >= '0' && line[0] <= '9' && atol(line) == SYS_futex;
}

BENCH int gettid_(void)
{
    return (int)syscall(SYS_gettid);
}

BENCH int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The p-th percentile; sorts. */
BENCH double percentile(double *v, int n, double p)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    int i = (int)(p / 100 * n);
    return v[i < n ? i : n - 1];
}

/* A handle with these "name", "value", ..., NULL. */
BENCH rd_kafka_t *handle(rd_kafka_type_t type, ...)
{
    char error[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *rk;
    const char *name;
    va_list ap;

    va_start(ap, type);
    while ((name = va_arg(ap, const char *)))
        if (rd_kafka_conf_set(conf, name, va_arg(ap, const char *), error, sizeof error) != RD_KAFKA_CONF_OK)
            die("%s", error);
    va_end(ap);
    rk = rd_kafka_new(type, conf, error, sizeof error);
    if (!rk)
        die("rd_kafka_new: %s", error);
    return rk;
}

/* A consumer without a broker: nothing but the calls themselves. */
BENCH rd_kafka_t *lonely_consumer(const char *group)
{
    rd_kafka_t *rk = handle(RD_KAFKA_CONSUMER, "group.id", group, "log_level", "0", NULL);
    rd_kafka_poll_set_consumer(rk);
    return rk;
}

/* A producer whose process is also the cluster. */
BENCH rd_kafka_t *mock(const char **brokers)
{
    rd_kafka_t *rk = handle(RD_KAFKA_PRODUCER, "test.mock.num.brokers", "1", "log_level", "0", "linger.ms",
                            "5", "queue.buffering.max.messages", "1000000", NULL);
    rd_kafka_mock_cluster_t *cluster = rd_kafka_handle_mock_cluster(rk);
    if (!cluster)
        die("no mock cluster");
    *brokers = rd_kafka_mock_cluster_bootstraps(cluster);
    return rk;
}
