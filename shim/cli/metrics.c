/*
 * metrics.c: rdgate metrics. What the flight files say, as Prometheus text for the node_exporter's textfile
 * collector. Alert rules and a dashboard for it are in shim/data.
 */
#include "cli.h"
#include "clean.h"
#include "event.h"
#include "rows.h"
#include "../verdict.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert((int)FINDINGS <= FLIGHT_CODES, "room in the flight file for every code");

static void usage(FILE *to)
{
    fputs("usage: rdgate metrics [options] [PID | FILE]\n\n"
          "Prints what is counted of a process, or of all processes under rdgate, in Prometheus' text "
          "format.\n\n"
          "  -o, --output FILE    write it there, whole or not at all: for the node_exporter's textfile "
          "collector,\n"
          "                       the name has to end in .prom\n\n"
          "Alert rules for Prometheus and a dashboard for Grafana are installed in share/rdgate.\n\n"
          "Exits with 0, also when no process runs under rdgate, 2 for wrong usage, 4 if there is no flight "
          "file that can\n"
          "be read, 1 if it cannot be written.\n",
          to);
}

/* ------------------------------------------------------------------ the format */

static void help(FILE *to, const char *name, const char *type, const char *text)
{
    fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, text, name, type);
}

/* A label's value: cleaned already, backslash and quote escaped. */
static void label(FILE *to, const char *name, const char *value)
{
    fprintf(to, "%s=\"", name);
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            fputc('\\', to);
        fputc(*value, to);
    }
    fputc('"', to);
}

/* Processes of containers may have the same number, and the same series twice would spoil the whole file. */
static void process_labels(FILE *to, int pid, uint64_t elsewhere, const char *program)
{
    if (elsewhere)
        fprintf(to, "{pid=\"%d@%" PRIu64 "\",", pid, elsewhere);
    else
        fprintf(to, "{pid=\"%d\",", pid);
    label(to, "program", program);
}

static void consumer_labels(FILE *to, const struct row *r)
{
    process_labels(to, r->pid, r->elsewhere, r->program);
    fprintf(to, ",gate=\"G%d\",", r->gate);
    label(to, "consumer", r->name);
    fputc(',', to);
    label(to, "group", r->group);
}

static void seconds(FILE *to, int64_t ns)
{
    fprintf(to, "} %.9g\n", (double)ns / 1e9);
}

/* ------------------------------------------------------------------ what there is */

/* A number of every consumer; what is not known (below 0) has no sample. */
static void gauge(FILE *to, const struct rows *r, const char *name, const char *text,
                  int64_t (*value)(const struct row *))
{
    help(to, name, "gauge", text);
    for (int i = 0; i < r->count; i++) {
        int64_t v = value(&r->row[i]);
        if (v < 0)
            continue;
        fputs(name, to);
        consumer_labels(to, &r->row[i]);
        if (strstr(name, "_seconds"))
            seconds(to, v);
        else
            fprintf(to, "} %" PRId64 "\n", v);
    }
}

static int64_t gap(const struct row *r)
{
    return r->gap;
}

static int64_t longest_gap(const struct row *r)
{
    return r->longest_gap;
}

static int64_t limit(const struct row *r)
{
    return r->gap < 0 ? -1 : r->limit;
}

static int64_t unanswered(const struct row *r)
{
    return (r->flags & ROW_REBALANCE) != 0;
}

static int64_t waiters(const struct row *r)
{
    return r->waiting;
}

static int64_t held(const struct row *r)
{
    return r->owner && r->held >= 0 ? r->held : 0;
}

static int64_t waiting(const struct row *r)
{
    return r->waits >= 0 ? r->waits : 0;
}

static int64_t longest(const struct row *r)
{
    return r->longest >= 0 ? r->longest : 0;
}

static int64_t deadlocked(const struct row *r)
{
    return (r->flags & ROW_DEADLOCK) != 0;
}

static void counters(FILE *to, const struct rows *r)
{
    static const struct {
        int count; /* enum flight_counter; -1: polls */
        const char *name, *text;
    } counted[] = {
        {FLIGHT_COUNT_calls, "rdgate_calls_total",
         "Calls on the consumer that are neither polls nor need no turn."},
        {-1, "rdgate_polls_total", "Polls of the consumer, as far as the watchdog has looked."},
        {FLIGHT_COUNT_collisions, "rdgate_collisions_total",
         "Calls that met another thread's call on the consumer."},
        {FLIGHT_COUNT_preemptions, "rdgate_preemptions_total", "Polls that were woken to let a call in."},
        {FLIGHT_COUNT_loans, "rdgate_loans_total", "Calls let in while a callback of the consumer ran."},
        {FLIGHT_COUNT_passed, "rdgate_passed_total",
         "Calls let through after RDGATE_MAX_WAIT_MS at the gate."},
        {FLIGHT_COUNT_refused, "rdgate_refused_total", "Calls that were told no."},
        {FLIGHT_COUNT_callbacks, "rdgate_callbacks_total", "Callbacks of the application that have run."},
        {FLIGHT_COUNT_rebalances, "rdgate_rebalances_total", "Rebalances handed to the application."},
    };
    for (size_t k = 0; k < sizeof(counted) / sizeof(*counted); k++) {
        help(to, counted[k].name, "counter", counted[k].text);
        for (int i = 0; i < r->count; i++) {
            fputs(counted[k].name, to);
            consumer_labels(to, &r->row[i]);
            fprintf(to, "} %" PRIu64 "\n",
                    counted[k].count < 0 ? r->row[i].polls : r->row[i].count[counted[k].count]);
        }
    }
}

/* Every second bucket from 16 us to 4 s: 200 consumers shall not be 5000 series. */
static void histogram(FILE *to, const struct rows *r)
{
    help(to, "rdgate_gate_wait_seconds", "histogram",
         "How long calls waited for their turn on the consumer.");
    for (int i = 0; i < r->count; i++) {
        const struct row *row = &r->row[i];
        uint64_t sum = 0;
        for (int b = 0; b < FLIGHT_BUCKETS; b++) {
            sum += row->histogram[b];
            if (b != FLIGHT_BUCKETS - 1 && (b < 4 || b > 22 || b % 2))
                continue;
            fputs("rdgate_gate_wait_seconds_bucket", to);
            consumer_labels(to, row);
            if (b == FLIGHT_BUCKETS - 1)
                fprintf(to, ",le=\"+Inf\"} %" PRIu64 "\n", sum);
            else
                fprintf(to, ",le=\"%g\"} %" PRIu64 "\n", (double)(1 << b) / 1e6, sum);
        }
        fputs("rdgate_gate_wait_seconds_sum", to);
        consumer_labels(to, row);
        fprintf(to, "} %.9g\n", (double)row->waited_ns / 1e9);
        fputs("rdgate_gate_wait_seconds_count", to);
        consumer_labels(to, row);
        fprintf(to, "} %" PRIu64 "\n", sum);
    }
}

static void debts(FILE *to, const struct rows *r)
{
    static const char *const kinds[DEBTS] = {"message", "event", "list", "topic", "queue"};
    help(to, "rdgate_consumer_objects", "gauge",
         "Objects of librdkafka that the application has got and not given back.");
    for (int i = 0; i < r->count; i++)
        for (int k = 0; k < DEBTS; k++) {
            fputs("rdgate_consumer_objects", to);
            consumer_labels(to, &r->row[i]);
            fprintf(to, ",kind=\"%s\"} %d\n", kinds[k], r->row[i].debt[k]);
        }
}

static void info(FILE *to, const struct rows *r)
{
    help(to, "rdgate_consumer_info", "gauge", "Always 1; life is open, closing, closed or destroying.");
    for (int i = 0; i < r->count; i++) {
        fputs("rdgate_consumer_info", to);
        consumer_labels(to, &r->row[i]);
        fprintf(to, ",life=\"%s\",", life_name(r->row[i].life));
        label(to, "librdkafka", r->row[i].version);
        fputs("} 1\n", to);
    }
}

static void processes(FILE *to, const struct rows *r)
{
    static const char *const modes[] = {"serialize", "lifetime", "refuse", "observe", "off"};
    help(to, "rdgate_processes", "gauge", "Processes whose flight files were read.");
    fprintf(to, "rdgate_processes %d\n", r->processes);
    help(to, "rdgate_unreadable_files", "gauge", "Flight files that could not be read.");
    fprintf(to, "rdgate_unreadable_files %d\n", r->unreadable);
    help(to, "rdgate_process_info", "gauge", "Always 1; version and mode of the shim in the process.");
    for (int i = 0; i < r->processes; i++) {
        const struct row_process *p = &r->process[i];
        fputs("rdgate_process_info", to);
        process_labels(to, p->pid, p->elsewhere, p->program);
        fputc(',', to);
        label(to, "version", p->shim);
        fprintf(to, ",mode=\"%s\"} 1\n", p->mode < 5 ? modes[p->mode] : "unknown");
    }
    help(to, "rdgate_recording_start_time_seconds", "gauge", "When the process began to record, since 1970.");
    for (int i = 0; i < r->processes; i++) {
        fputs("rdgate_recording_start_time_seconds", to);
        process_labels(to, r->process[i].pid, r->process[i].elsewhere, r->process[i].program);
        fprintf(to, "} %.3f\n", (double)r->process[i].began_ms / 1000);
    }
    help(to, "rdgate_last_look_timestamp_seconds", "gauge",
         "When the watchdog of the process looked last, since 1970.");
    for (int i = 0; i < r->processes; i++) {
        fputs("rdgate_last_look_timestamp_seconds", to);
        process_labels(to, r->process[i].pid, r->process[i].elsewhere, r->process[i].program);
        fprintf(to, "} %.3f\n", (double)r->process[i].looked_ms / 1000);
    }
    help(to, "rdgate_findings_total", "counter", "Findings of the watchdog and the gate, by code.");
    for (int i = 0; i < r->processes; i++)
        for (unsigned k = 0; k < FINDINGS; k++) {
            fputs("rdgate_findings_total", to);
            process_labels(to, r->process[i].pid, r->process[i].elsewhere, r->process[i].program);
            fprintf(to, ",finding=\"%s\"} %" PRIu32 "\n", finding_code(k), r->process[i].found[k]);
        }
    help(to, "rdgate_consumers_lost_total", "counter", "Consumers that found no room in the flight file.");
    for (int i = 0; i < r->processes; i++) {
        fputs("rdgate_consumers_lost_total", to);
        process_labels(to, r->process[i].pid, r->process[i].elsewhere, r->process[i].program);
        fprintf(to, "} %" PRIu32 "\n", r->process[i].consumers_lost);
    }
}

static void write_metrics(FILE *to, const struct rows *r)
{
    processes(to, r);
    if (!r->count)
        return;
    info(to, r);
    counters(to, r);
    histogram(to, r);
    gauge(to, r, "rdgate_gate_waiters", "Threads that wait for their turn on the consumer.", waiters);
    gauge(to, r, "rdgate_gate_waiting_seconds", "How long the first of them has waited; 0 without.", waiting);
    gauge(to, r, "rdgate_gate_wait_longest_seconds", "The longest wait so far.", longest);
    gauge(to, r, "rdgate_gate_held_seconds", "How long the call that is inside has been there; 0 without.",
          held);
    gauge(to, r, "rdgate_gate_deadlocked",
          "1 while threads on this consumer are proven to wait for each other.", deadlocked);
    gauge(to, r, "rdgate_consumer_rebalance_unanswered",
          "1 while a rebalance was delivered and is not answered.", unanswered);
    gauge(to, r, "rdgate_consumer_poll_gap_seconds",
          "Time since the last poll; only of subscribed consumers that are open.", gap);
    gauge(to, r, "rdgate_consumer_poll_gap_longest_seconds", "The longest time between two polls so far.",
          longest_gap);
    gauge(to, r, "rdgate_consumer_poll_limit_seconds", "The consumer's max.poll.interval.ms.", limit);
    debts(to, r);
}

/* Beside the file first, so that whoever reads it finds it whole. */
static int write_file(const char *path, const struct rows *r)
{
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) + 1 : 0;
    char *partial;
    if (asprintf(&partial, "%.*s.rdgate-XXXXXX", length, path) < 0)
        return 1;
    int fd = mkstemp(partial);
    FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
    bool good = to != NULL;
    if (good) {
        write_metrics(to, r);
        good = !ferror(to) && fflush(to) == 0 && fchmod(fd, 0644) == 0 && fsync(fd) == 0;
        int e = errno;
        good &= fclose(to) == 0;
        errno = good ? 0 : e ? e : errno;
        good = good && rename(partial, path) == 0;
    }
    if (!good) {
        fprintf(stderr, "rdgate metrics: %s cannot be written: %s\n", path, strerror(errno));
        if (fd >= 0)
            unlink(partial);
    }
    free(partial);
    return !good;
}

static int run(const char *what, const char *output)
{
    struct rows r = {0};
    int result = 0;
    if (what) {
        struct flight f;
        if (!flight_open(&f, what, r.why)) {
            fprintf(stderr, "rdgate metrics: %s\n", r.why);
            return EXIT_NO_FLIGHT;
        }
        rows_add(&r, &f);
        flight_shut(&f);
    } else {
        rows_add_all(&r);
    }
    if (r.failed) {
        fputs("rdgate metrics: out of memory\n", stderr);
        result = 1;
    } else if (output) {
        result = write_file(output, &r);
    } else {
        write_metrics(stdout, &r);
        result = fflush(stdout) != 0;
    }
    if (r.unreadable)
        fprintf(stderr, "rdgate metrics: %s%s\n", r.why, r.unreadable > 1 ? " (and others)" : "");
    rows_free(&r);
    return result;
}

int cli_metrics(int argc, char **argv)
{
    const char *what = NULL, *output = NULL;
    setlocale(LC_CTYPE, "C.UTF-8"); /* the format is UTF-8, whatever the terminal speaks */
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            usage(stdout);
            return 0;
        }
        if (strncmp(arg, "--output=", 9) == 0 && arg[9]) {
            output = arg + 9;
        } else if ((strcmp(arg, "--output") == 0 || strcmp(arg, "-o") == 0) && i + 1 < argc && *argv[i + 1]) {
            output = argv[++i];
        } else if (*arg == '-' || what) {
            if (*arg == '-')
                fprintf(stderr, "rdgate metrics: no option %s, or it needs a value (rdgate metrics --help)\n",
                        arg);
            else
                fputs("rdgate metrics: one process, or none for all\n", stderr);
            return EXIT_USAGE;
        } else {
            what = arg;
        }
    }
    return run(what, output);
}
