/*
 * trace.c: rdgate trace. The events of a flight file as a picture: for Chrome's and Perfetto's viewers, or as
 * one page of HTML that needs no network. What is drawn is decided by timeline.c, how by trace.html.
 */
#include "cli.h"
#include "clean.h"
#include "event.h"
#include "rows.h"
#include "timeline.h"
#include "../verdict.h"

#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The page, as it is in the source tree. */
__asm__(".section .rodata\n"
        "trace_page:\n"
        ".incbin \"shim/cli/trace.html\"\n"
        "trace_page_end:\n"
        ".byte 0\n"
        ".previous\n");
extern const char trace_page[], trace_page_end[];

static size_t until_end(const char *from)
{
    return (size_t)((uintptr_t)trace_page_end - (uintptr_t)from);
}

struct trace {
    const struct flight *f;
    const struct flight_event **events;
    size_t count;
    uint64_t lost;
    struct timeline line;
    FILE *to;
};

static void usage(FILE *to)
{
    fputs("usage: rdgate trace --html | --chrome [-o FILE] PID | FILE\n\n"
          "Draws what a process under rdgate did last, or had done when it died: who held which consumer, "
          "who waited,\n"
          "callbacks, what was let in meanwhile, findings.\n\n"
          "  --html               one page that shows it in any browser, without a network\n"
          "  --chrome             trace events for ui.perfetto.dev, chrome://tracing or speedscope\n"
          "  -o, --output FILE    write it there and not to the standard output\n\n"
          "Exits with 0, 2 for wrong usage, 4 if there is no flight file that can be read, 1 if it cannot be "
          "written.\n",
          to);
}

static json_t *text_of(const char *from)
{
    char cleaned[512];
    clean(cleaned, sizeof(cleaned), from, false);
    return json_string(cleaned);
}

static void name_of_consumer(const struct trace *t, int consumer, char *to, size_t size)
{
    const struct timeline_consumer *c = &t->line.consumer[consumer];
    const struct flight_consumer *row = &t->f->file->consumer[c->row];
    if (row->state != FLIGHT_FREE && row->generation == c->generation && *row->name)
        snprintf(to, size, "%s", row->name);
    else
        snprintf(to, size, "consumer G%d, an earlier one", c->row + 1);
}

static const char *name_of_span(const struct span *s)
{
    return s->kind == SPAN_OWED       ? "rebalance not answered"
           : s->kind == SPAN_CALLBACK ? callback_name(s->what)
                                      : rdg_calls[s->what < CALL_COUNT ? s->what : 0].name;
}

static double micro(int64_t ns)
{
    return (double)ns / 1000;
}

/* ------------------------------------------------------------------ findings */

/* A finding, from its event, its record, or both. */
struct found {
    int64_t at;
    unsigned finding, severity;
    int consumer, thread;
    const char *summary, *text, *call;
};

static int by_at(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* The caller frees it. */
static struct found *find_findings(const struct trace *t, size_t *count)
{
    const struct flight_finding *kept[FLIGHT_FINDINGS];
    int n = flight_findings(t->f, kept);
    struct found *all = calloc(t->line.marks + (size_t)n + 1, sizeof(*all));
    *count = 0;
    for (size_t i = 0; all && i < t->line.marks; i++) {
        const struct mark *m = &t->line.mark[i];
        if (m->event->kind != FLIGHT_FINDING)
            continue;
        struct found *to = &all[(*count)++];
        *to = (struct found){.at = m->at,
                             .finding = (unsigned)m->event->code,
                             .severity = finding_severity((unsigned)m->event->code),
                             .consumer = m->consumer,
                             .thread = m->thread,
                             .call = rdg_calls[m->event->call].name,
                             .summary = ""};
        for (int k = 0; k < n; k++)
            if (kept[k] && (int64_t)kept[k]->number == m->event->value) {
                to->summary = kept[k]->summary;
                to->text = kept[k]->text;
                kept[k] = NULL;
            }
    }
    for (int k = 0; all && k < n; k++) { /* those whose event is overwritten, or that concern no consumer */
        if (!kept[k] || !kept[k]->time)
            continue;
        struct found *to = &all[(*count)++];
        *to = (struct found){.at = kept[k]->time,
                             .finding = kept[k]->finding,
                             .severity = kept[k]->severity,
                             .consumer = -1,
                             .thread = -1,
                             .call = "",
                             .summary = kept[k]->summary,
                             .text = kept[k]->text};
        for (int c = 0; c < t->line.consumers; c++)
            if (t->line.consumer[c].row == kept[k]->consumer)
                to->consumer = c;
    }
    if (all)
        qsort(all, *count, sizeof(*all), by_at);
    return all;
}

/* ------------------------------------------------------------------ Chrome's trace events */

static bool first_event;

/* Takes the event over. */
static void put_event(FILE *to, json_t *event)
{
    if (!event)
        return;
    fputs(first_event ? "\n" : ",\n", to);
    first_event = false;
    json_dumpf(event, to, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(event);
}

static void put_name(FILE *to, const char *what, int pid, int tid, const char *name, int order)
{
    put_event(to, json_pack("{s:s, s:s, s:i, s:i, s:{s:o}}", "ph", "M", "name", what, "pid", pid, "tid", tid,
                            "args", "name", text_of(name)));
    if (order >= 0)
        put_event(to, json_pack("{s:s, s:s, s:i, s:i, s:{s:i}}", "ph", "M", "name", "thread_sort_index",
                                "pid", pid, "tid", tid, "args", "sort_index", order));
}

static const char *const category[SPAN_KINDS] = {"poll",     "call", "close",    "guard",
                                                 "callback", "wait", "rebalance"};

static json_t *span_args(const struct trace *t, const struct span *s)
{
    char name[128];
    name_of_consumer(t, s->consumer, name, sizeof(name));
    json_t *args = json_pack("{s:o}", "consumer", text_of(name));
    if (s->kind == SPAN_WAIT && s->other >= 0) {
        char whom[64];
        thread_words(whom, sizeof(whom), t->f, t->line.thread[s->other].tid);
        json_object_set_new(args, "waits for", text_of(whom));
    }
    if (s->flags & SPAN_BEFORE)
        json_object_set_new(args, "began", json_string("earlier; when was not recorded"));
    if (s->flags & SPAN_OPEN)
        json_object_set_new(args, "ended", json_string("not yet"));
    if (s->flags & SPAN_REFUSED)
        json_object_set_new(args, "refused", json_true());
    return args;
}

static void put_span(const struct trace *t, const struct span *s, int pid, int tid, const char *name)
{
    put_event(t->to, json_pack("{s:s, s:o, s:s, s:f, s:f, s:i, s:i, s:o}", "ph", "X", "name", text_of(name),
                               "cat", category[s->kind], "ts", micro(s->begin - t->line.begin), "dur",
                               micro(s->end - s->begin), "pid", pid, "tid", tid, "args", span_args(t, s)));
}

/* Three tracks for each consumer: who holds it, who was let in, what is owed; and how many wait. */
static void put_gates(const struct trace *t, int pid)
{
    char name[192], words[96];
    put_name(t->to, "process_name", pid, 0, "gates of the consumers", -1);
    for (int c = 0; c < t->line.consumers; c++) {
        name_of_consumer(t, c, words, sizeof(words));
        put_name(t->to, "thread_name", pid, 3 * c + 1, words, 3 * c + 1);
        snprintf(name, sizeof(name), "%s, let in", words);
        put_name(t->to, "thread_name", pid, 3 * c + 2, name, 3 * c + 2);
        snprintf(name, sizeof(name), "%s, owed", words);
        put_name(t->to, "thread_name", pid, 3 * c + 3, name, 3 * c + 3);
    }
    for (size_t i = 0; i < t->line.spans; i++) {
        const struct span *s = &t->line.span[i];
        if (s->kind == SPAN_OWED) {
            put_span(t, s, pid, 3 * s->consumer + 3, name_of_span(s));
        } else if (s->kind <= SPAN_END && s->thread >= 0 && !(s->flags & (SPAN_REFUSED | SPAN_NESTED))) {
            thread_words(words, sizeof(words), t->f, t->line.thread[s->thread].tid);
            snprintf(name, sizeof(name), "%s: %s", words, name_of_span(s));
            put_span(t, s, pid, 3 * s->consumer + (s->flags & SPAN_BORROWED ? 2 : 1), name);
        }
    }
}

struct step {
    int64_t at;
    int by, consumer;
};

static int by_step(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : x->by - y->by;
}

static bool put_waiters(const struct trace *t, int pid)
{
    size_t n = 0;
    struct step *step = calloc(2 * t->line.spans + 1, sizeof(*step));
    int *waiting = calloc((size_t)t->line.consumers + 1, sizeof(*waiting));
    for (size_t i = 0; step && waiting && i < t->line.spans; i++) {
        const struct span *s = &t->line.span[i];
        if (s->kind != SPAN_WAIT || s->begin == s->end)
            continue;
        step[n++] = (struct step){s->begin, 1, s->consumer};
        step[n++] = (struct step){s->end, -1, s->consumer};
    }
    bool good = step && waiting;
    if (good)
        qsort(step, n, sizeof(*step), by_step);
    for (size_t i = 0; good && i < n; i++) {
        char name[160], consumer[128];
        name_of_consumer(t, step[i].consumer, consumer, sizeof(consumer));
        snprintf(name, sizeof(name), "waiting: %s", consumer);
        waiting[step[i].consumer] += step[i].by;
        put_event(t->to, json_pack("{s:s, s:o, s:f, s:i, s:{s:i}}", "ph", "C", "name", text_of(name), "ts",
                                   micro(step[i].at - t->line.begin), "pid", pid, "args", "waiting",
                                   waiting[step[i].consumer]));
    }
    free(step);
    free(waiting);
    return good;
}

static bool write_chrome(const struct trace *t)
{
    const struct flight_header *h = &t->f->file->header;
    int pid = h->pid, gates = 1 << 22; /* no process has that number */
    char words[256];
    first_event = true;
    fprintf(t->to,
            "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"rdgate\":\"%s\",\"began_ms\":%lld,\"lost\":%llu},"
            "\"traceEvents\":[",
            RDGATE_VERSION, (long long)flight_wall_ms(t->f, t->line.begin), (unsigned long long)t->lost);
    put_name(t->to, "process_name", pid, 0, h->program, -1);
    for (int i = 0; i < t->line.threads; i++) {
        thread_words(words, sizeof(words), t->f, t->line.thread[i].tid);
        put_name(t->to, "thread_name", pid, t->line.thread[i].tid, words, i);
    }
    for (size_t i = 0; i < t->line.spans; i++) {
        const struct span *s = &t->line.span[i];
        if (s->thread < 0)
            continue;
        snprintf(words, sizeof(words), "%s%s", s->kind == SPAN_WAIT ? "waits: " : "", name_of_span(s));
        put_span(t, s, pid, t->line.thread[s->thread].tid, words);
    }
    put_gates(t, gates);
    bool good = put_waiters(t, gates);
    for (size_t i = 0; i < t->line.marks; i++) {
        const struct mark *m = &t->line.mark[i];
        event_words(words, sizeof(words), t->f, m->event);
        put_event(t->to, json_pack("{s:s, s:s, s:o, s:s, s:f, s:i, s:i}", "ph", "i", "s",
                                   m->event->kind == FLIGHT_FINDING ? "g" : "t", "name", text_of(words),
                                   "cat", m->event->kind == FLIGHT_FINDING ? "finding" : "event", "ts",
                                   micro(m->at - t->line.begin), "pid", pid, "tid",
                                   m->thread >= 0 ? t->line.thread[m->thread].tid : pid));
    }
    fputs("\n]}\n", t->to);
    return good;
}

/* ------------------------------------------------------------------ the page */

static void push(json_t *array, long long number)
{
    json_array_append_new(array, json_integer(number));
}

/* Columns of numbers rather than objects: an event is some 20 bytes, and quickly read. Starts are
 * differences. */
static json_t *spans_json(const struct trace *t)
{
    static const char *const names[] = {"start", "length", "thread", "consumer", "name",
                                        "kind",  "depth",  "flags",  "other"};
    json_t *column[9], *all = json_object();
    for (int i = 0; i < 9; i++)
        json_object_set_new(all, names[i], column[i] = json_array());
    int64_t last = 0;
    for (size_t i = 0; i < t->line.spans; i++) {
        const struct span *s = &t->line.span[i];
        int64_t begin = (s->begin - t->line.begin) / 1000;
        push(column[0], begin - last);
        push(column[1], (s->end - t->line.begin) / 1000 - begin);
        push(column[2], s->thread);
        push(column[3], s->consumer);
        push(column[4], s->kind == SPAN_OWED       ? CALL_COUNT + CB_COUNT
                        : s->kind == SPAN_CALLBACK ? CALL_COUNT + s->what
                                                   : s->what);
        push(column[5], s->kind);
        push(column[6], s->depth);
        push(column[7], s->flags);
        push(column[8], s->other);
        last = begin;
    }
    return all;
}

/* Marks have their words in `names`, each of them once. */
static json_t *marks_json(const struct trace *t, json_t *names)
{
    static const char *const fields[] = {"at", "thread", "consumer", "name"};
    json_t *column[4], *all = json_object(), *known = json_object();
    for (int i = 0; i < 4; i++)
        json_object_set_new(all, fields[i], column[i] = json_array());
    int64_t last = 0;
    for (size_t i = 0; i < t->line.marks; i++) {
        const struct mark *m = &t->line.mark[i];
        char words[256], cleaned[256];
        if (m->event->kind == FLIGHT_FINDING || m->at < t->line.begin)
            continue;
        event_words(words, sizeof(words), t->f, m->event);
        clean(cleaned, sizeof(cleaned), words, false);
        json_t *number = json_object_get(known, cleaned);
        long long at = (m->at - t->line.begin) / 1000;
        if (!number) {
            json_object_set_new(known, cleaned, json_integer((long long)json_array_size(names)));
            json_array_append_new(names, json_string(cleaned));
            number = json_object_get(known, cleaned);
        }
        push(column[0], at - last);
        push(column[1], m->thread);
        push(column[2], m->consumer);
        push(column[3], json_integer_value(number));
        last = at;
    }
    json_decref(known);
    return all;
}

static json_t *names_json(void)
{
    json_t *names = json_array();
    for (int i = 0; i < CALL_COUNT; i++)
        json_array_append_new(names, json_string(rdg_calls[i].name));
    for (int i = 0; i < CB_COUNT; i++)
        json_array_append_new(names, json_string(callback_name(i)));
    json_array_append_new(names, json_string("rebalance not answered"));
    return names;
}

static json_t *threads_json(const struct trace *t)
{
    json_t *all = json_array();
    for (int i = 0; i < t->line.threads; i++) {
        char name[16];
        thread_name(name, t->f, t->line.thread[i].tid);
        json_array_append_new(all,
                              json_pack("{s:i, s:o}", "tid", t->line.thread[i].tid, "name", text_of(name)));
    }
    return all;
}

static json_t *consumers_json(const struct trace *t)
{
    json_t *all = json_array();
    for (int i = 0; i < t->line.consumers; i++) {
        const struct timeline_consumer *c = &t->line.consumer[i];
        const struct flight_consumer *row = &t->f->file->consumer[c->row];
        bool same = row->generation == c->generation && row->state != FLIGHT_FREE;
        char name[128];
        name_of_consumer(t, i, name, sizeof(name));
        json_array_append_new(all, json_pack("{s:o, s:o, s:i, s:s}", "name", text_of(name), "group",
                                             text_of(same ? row->group : ""), "gate", c->row + 1, "life",
                                             !same                       ? "gone"
                                             : row->state == FLIGHT_GONE ? "gone"
                                                                         : life_name(row->now.life)));
    }
    return all;
}

static json_t *report_json_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *cleaned = malloc(size);
    json_t *lines = json_array();
    /* Line by line, since a line's end is a control character, too. */
    for (const char *p = text; cleaned && *p;) {
        size_t n = strcspn(p, "\n");
        char line[256];
        snprintf(line, sizeof(line), "%.*s", (int)(n < 250 ? n : 250), p);
        clean(cleaned, size, line, false);
        json_array_append_new(lines, json_string(cleaned));
        p += n + (p[n] == '\n');
    }
    free(cleaned);
    return lines;
}

static json_t *findings_json(const struct trace *t)
{
    size_t count;
    struct found *all = find_findings(t, &count);
    json_t *list = json_array();
    for (size_t i = 0; all && i < count; i++)
        json_array_append_new(list,
                              json_pack("{s:I, s:s, s:s, s:i, s:i, s:s, s:o, s:o}", "at",
                                        (json_int_t)((all[i].at - t->line.begin) / 1000), "code",
                                        finding_code(all[i].finding), "severity",
                                        severity_name(all[i].severity), "consumer", all[i].consumer, "thread",
                                        all[i].thread, "call", all[i].call, "text", text_of(all[i].summary),
                                        "report", report_json_text(all[i].text ? all[i].text : "")));
    free(all);
    return list;
}

/* No '<' in the JSON, so that nothing in it can end the script that it lies in. */
static int without_tags(const char *bytes, size_t size, void *to)
{
    for (size_t i = 0; i < size; i++)
        if ((bytes[i] == '<' ? fputs("\\u003c", to) : fputc(bytes[i], to)) == EOF)
            return -1;
    return 0;
}

static bool write_page(const struct trace *t)
{
    static const char place[] = "@DATA@";
    const struct flight_header *h = &t->f->file->header;
    const char *at = memmem(trace_page, until_end(trace_page), place, strlen(place));
    json_t *names = names_json(), *marks = marks_json(t, names);
    json_t *all =
        json_pack("{s:i, s:s, s:o, s:i, s:b, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "v", 1,
                  "tool", "rdgate " RDGATE_VERSION, "program", text_of(h->program), "pid", h->pid, "alive",
                  t->f->fate == FLIGHT_RUNS || t->f->fate == FLIGHT_ASLEEP, "began",
                  (json_int_t)flight_wall_ms(t->f, t->line.begin), "length",
                  (json_int_t)((t->line.end - t->line.begin) / 1000), "events", (json_int_t)t->count, "lost",
                  (json_int_t)(t->lost & INT64_MAX), "names", names, "threads", threads_json(t), "consumers",
                  consumers_json(t), "spans", spans_json(t), "marks", marks, "findings", findings_json(t));
    if (!all || !at)
        return false;
    fwrite(trace_page, 1, (size_t)(at - trace_page), t->to);
    bool good = json_dump_callback(all, without_tags, t->to, JSON_COMPACT) == 0;
    at += strlen(place);
    fwrite(at, 1, until_end(at), t->to);
    json_decref(all);
    return good;
}

/* ------------------------------------------------------------------ the command */

static int run(const char *what, const char *output, bool (*write)(const struct trace *))
{
    struct flight f;
    char why[FLIGHT_WHY];
    if (!flight_open(&f, what, why)) {
        fprintf(stderr, "rdgate trace: %s\n", why);
        return EXIT_NO_FLIGHT;
    }
    struct trace t = {.f = &f, .to = stdout};
    bool good = (t.events = calloc(FLIGHT_MOST_EVENTS, sizeof(const struct flight_event *)));
    if (good)
        t.count = flight_events(&f, -1, t.events, FLIGHT_MOST_EVENTS, &t.lost);
    int64_t looked = f.torn ? 0 : f.file->header.looked;
    good = good && timeline_make(&t.line, t.events, t.count, f.file->thread, FLIGHT_THREADS, looked, f.now);
    if (!good)
        fputs("rdgate trace: out of memory\n", stderr);
    if (good && output && !(t.to = fopen(output, "we"))) {
        fprintf(stderr, "rdgate trace: %s: %s\n", output, strerror(errno));
        good = false;
    }
    if (good) {
        good = write(&t);
        good &= !ferror(t.to) && (t.to == stdout ? fflush(t.to) : fclose(t.to)) == 0;
        if (!good)
            fprintf(stderr, "rdgate trace: it could not be written: %s\n", strerror(errno));
    }
    timeline_free(&t.line);
    free(t.events);
    flight_shut(&f);
    return !good;
}

int cli_trace(int argc, char **argv)
{
    const char *what = NULL, *output = NULL;
    bool (*write)(const struct trace *) = NULL;
    setlocale(LC_CTYPE, "C.UTF-8"); /* both formats are UTF-8, whatever the terminal speaks */
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            usage(stdout);
            return 0;
        }
        if (strcmp(arg, "--html") == 0) {
            write = write_page;
        } else if (strcmp(arg, "--chrome") == 0) {
            write = write_chrome;
        } else if (strncmp(arg, "--output=", 9) == 0 && arg[9]) {
            output = arg + 9;
        } else if ((strcmp(arg, "--output") == 0 || strcmp(arg, "-o") == 0) && i + 1 < argc && *argv[i + 1]) {
            output = argv[++i];
        } else if (*arg == '-') {
            fprintf(stderr, "rdgate trace: no option %s, or it needs a value (rdgate trace --help)\n", arg);
            return EXIT_USAGE;
        } else if (what) {
            fputs("rdgate trace: one process or file\n", stderr);
            return EXIT_USAGE;
        } else {
            what = arg;
        }
    }
    if (!what || !write) {
        usage(stderr);
        return EXIT_USAGE;
    }
    return run(what, output, write);
}
