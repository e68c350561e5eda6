/*
 * notes.c: findings said on the spot. It must not wait: a line that would block
 * (a full pipe) is dropped and counted, and nothing of the process is held or called while it is written.
 */
#include "notes.h"
#include "flight.h"
#include "gate.h"
#include "options.h"
#include "page.h"
#include "peek.h"
#include "report.h"
#include "say.h"
#include "see.h"
#include "shim.h"
#include "stack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic long written, dropped;
static int log_fd = STDERR_FILENO;

/* In pieces that a pipe takes whole, so that no write waits for a reader. */
static void put(const char *bytes, size_t n)
{
    int saved = errno;
    while (n) {
        size_t piece = n < PIPE_BUF ? n : PIPE_BUF;
        struct pollfd p = {log_fd, POLLOUT, 0};
        ssize_t done = poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) ? write(log_fd, bytes, piece) : -1;
        if (done <= 0) {
            dropped++;
            break;
        }
        bytes += done;
        n -= (size_t)done;
    }
    errno = saved;
}

/* A line that is no finding: about options, or that we are in. */
static void line(struct text *t)
{
    char bytes[2048];
    struct page p = {.bytes = bytes, .size = sizeof(bytes) - 1};
    if (rdg_options.format == FORMAT_JSON) {
        struct snapshot s;
        see_process(&s);
        page_raw(&p, "{\"v\":1,\"time\":\"");
        page_time(&p, s.time);
        page_raw(&p, "\",\"pid\":");
        page_number(&p, s.pid);
        page_raw(&p, ",\"message\":\"");
        p.json = true;
        page_escaped(&p, text_end(t), sizeof(t->bytes));
        p.json = false;
        page_raw(&p, "\"}");
    } else {
        page_raw(&p, "rdgate: [");
        page_number(&p, getpid());
        page_raw(&p, "] ");
        page_raw(&p, text_end(t));
    }
    bytes[p.used++] = '\n';
    put(bytes, p.used);
}

/* The next report's number; 0: the budget is used up. */
static long next_number(void)
{
    long n = ++written;
    if (n <= rdg_options.reports)
        return n;
    if (n == rdg_options.reports + 1) {
        struct text t = {0};
        text_number(&t, rdg_options.reports);
        text_add(&t, " findings written, further ones are only counted (RDGATE_REPORTS)");
        line(&t);
    }
    return 0;
}

/* Room for one report and what it is made of: not on the stack of a thread that we do not know, and not from
 * the heap, which the application may be in the middle of. */
struct scratch {
    struct seen_consumer consumer;
    struct seen_thread thread[2];
    char bytes[32 * 1024];
};

static struct scratch *scratch_make(void)
{
    void *p = mmap(NULL, sizeof(struct scratch), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* number: 0: within no budget, only for the flight file. */
static void say(struct scratch *k, const struct snapshot *s, const struct verdict *v, struct consumer *c,
                long number)
{
    if (number && rdg_options.format == FORMAT_JSON)
        put(k->bytes, report_json(k->bytes, sizeof(k->bytes), s, v, number));
    size_t n = report_text(k->bytes, sizeof(k->bytes), s, v, number);
    if (number && rdg_options.format == FORMAT_TEXT)
        put(k->bytes, n);
    flight_finding(c, v, number, k->bytes, n);
}

long notes_report(const struct snapshot *s, const struct verdict *v, struct consumer *c)
{
    int saved = errno;
    long n = next_number();
    struct scratch *k = n || flight_path() ? scratch_make() : NULL;
    if (k) {
        say(k, s, v, c, n);
        munmap(k, sizeof(*k));
    }
    errno = saved;
    return n;
}

void notes_moving(const struct snapshot *s, const struct verdict *v, long of, int64_t lasted)
{
    struct scratch *k = scratch_make();
    if (!k)
        return;
    put(k->bytes, rdg_options.format == FORMAT_JSON
                      ? report_moving_json(k->bytes, sizeof(k->bytes), s, v, of, lasted)
                      : report_moving_text(k->bytes, sizeof(k->bytes), s, v, of, lasted));
    munmap(k, sizeof(*k));
}

static void see_call_of(const struct visit *v, struct seen_thread *t, int64_t clock)
{
    struct seen_call *call = &t->call[t->calls++];
    see_call(v, call, clock);
    call->consumer = 0;
    place_name(call->caller.address - 1, &call->caller); /* the call, not what follows it */
}

/* A thread with its call, which may not have become a visit. */
static void see_party(struct seen_thread *t, const struct self *s, const struct visit *v, int call,
                      int64_t clock)
{
    t->tid = s ? s->tid : (int)syscall(SYS_gettid);
    peek_name(t->tid, t->name);
    t->sleep = SLEEP_UNKNOWN;
    t->syscall = -1;
    t->asleep = -1;
    if (v && v->call == call) {
        see_call_of(v, t, clock);
        return;
    }
    t->calls = 1;
    t->call[0] = (struct seen_call){.call = (uint16_t)call,
                                    .class = rdg_calls[call].class,
                                    .state = SEEN_INSIDE,
                                    .age = -1,
                                    .waiting = -1,
                                    .callback_age = -1};
}

void report_variant(enum finding f, enum note note, struct consumer *c, int call, const struct visit *other,
                    int64_t ms)
{
    int saved = errno;
    long n = next_number();
    struct scratch *k = n || flight_path() ? scratch_make() : NULL;
    if (k) {
        int64_t clock = now_ns() / 1000000;
        struct snapshot s = {.consumers = c ? 1 : 0, .consumer = &k->consumer, .thread = k->thread};
        struct verdict v = {
            .finding = f, .consumer = c ? 0 : -1, .call = (uint16_t)call, .age = ms, .note = note};
        see_process(&s);
        if (c)
            see_consumer(c, &k->consumer, clock);
        /* What became of another thread's call is about that thread alone. */
        bool theirs = other && (f == OWNER_GONE || f == CALLBACK_ESCAPED);
        const struct self *me = theirs ? other->self : rdg_self;
        const struct visit *mine = theirs ? other : me ? me->top : NULL;
        if (c && f != REBALANCE_UNANSWERED) { /* which is about a call that nobody makes */
            see_party(&k->thread[s.threads], me, mine, call, clock);
            v.party[v.parties++] = (short)s.threads++;
        }
        if (other && !theirs) {
            see_party(&k->thread[s.threads], other->self, other, other->call, clock);
            v.party[v.parties++] = (short)s.threads++;
        }
        say(k, &s, &v, c, n);
        munmap(k, sizeof(*k));
    }
    errno = saved;
}

void report(enum finding f, struct consumer *c, int call, const struct visit *other, int64_t ms)
{
    report_variant(f, NOTE_NONE, c, call, other, ms);
}

bool report_first(enum finding f, struct consumer *c)
{
    return !(atomic_fetch_or(&c->reported, 1u << f) & (1u << f));
}

void report_once(enum finding f, struct consumer *c, int call, const struct visit *other, int64_t ms)
{
    if (report_first(f, c))
        report(f, c, call, other, ms);
}

void report_not_covered(void)
{
    struct snapshot s = {0};
    struct verdict v = {.finding = NOT_COVERED, .consumer = -1, .call = CALL_COUNT, .age = -1};
    see_process(&s);
    notes_report(&s, &v, NULL);
}

void report_flight(const char *path, int error)
{
    if (!rdg_options.verbose)
        return;
    struct text t = {0};
    text_add(&t, path ? "flight file " : "no flight file: ");
    if (path) {
        text_escaped(&t, path, 500);
    } else {
        text_add(&t, error == ENOSPC   ? "no space left"
                     : error == EROFS  ? "the file system is read-only"
                     : error == EFBIG  ? "RLIMIT_FSIZE is too small"
                     : error == EPERM  ? "the directory is not ours alone"
                     : error == ENOENT ? "there is no directory for it"
                                       : "error ");
        if (error != ENOSPC && error != EROFS && error != EFBIG && error != EPERM && error != ENOENT)
            text_number(&t, error);
    }
    line(&t);
}

void report_uncovered(enum note note, const char *where, const char *why)
{
    struct snapshot s = {0};
    struct verdict v = {.finding = NOT_COVERED,
                        .consumer = -1,
                        .call = CALL_COUNT,
                        .age = -1,
                        .note = note,
                        .about = where,
                        .reason = why};
    int saved = errno;
    see_process(&s);
    notes_report(&s, &v, NULL);
    errno = saved;
}

void report_option(const char *sentence)
{
    struct text t = {0};
    text_add(&t, sentence);
    line(&t);
}

void report_library(const struct library *lib)
{
    struct text t = {0};
    if (rdg_options.close_ms && (!lib->rd_kafka_queue_yield || !lib->rd_kafka_consumer_closed)) {
        text_add(&t, "option RDGATE_CLOSE_MS has no effect on librdkafka ");
        text_escaped(&t, lib->text, sizeof(lib->text));
        text_add(&t, ", which is older than 1.9");
        report_option(text_end(&t));
        t = (struct text){0};
    }
    if (!rdg_options.verbose)
        return;
    text_add(&t, "librdkafka ");
    text_escaped(&t, lib->text, sizeof(lib->text));
    text_add(&t, " in ");
    text_escaped(&t, lib->path, sizeof(lib->path));
    int n = 0;
    for (int i = 0; i < CALL_COUNT; i++)
        n += lib->calls[i] != NULL;
    text_add(&t, ", ");
    text_number(&t, n);
    text_add(&t, lib->patched ? " functions, patched at their entries" : " functions");
    line(&t);
}

void report_reached(const struct library *lib)
{
    struct text t = {0};
    if (!rdg_options.verbose)
        return;
    text_add(&t, "librdkafka ");
    text_escaped(&t, lib->text, sizeof(lib->text));
    text_add(&t, " is reached through dlsym");
    line(&t);
}

void report_exit(void)
{
    if (!rdg_options.verbose || !rdg_awake)
        return;
    struct text t = {0};
    uint64_t gated = 0, passed = 0;
    for (int i = 0; i < library_count(); i++) {
        gated += library_at(i)->counted[0];
        passed += library_at(i)->counted[1];
    }
    text_add(&t, "exit: ");
    text_number(&t, (int64_t)gated);
    text_add(&t, " calls gated, ");
    text_number(&t, (int64_t)passed);
    text_add(&t, " passed, ");
    text_number(&t, written);
    text_add(&t, " findings");
    if (dropped) {
        text_add(&t, ", ");
        text_number(&t, dropped);
        text_add(&t, " lines lost");
    }
    line(&t);
}

void report_start(void)
{
    if (strcmp(rdg_options.log, "stderr") != 0) {
        struct text path = {0};
        for (const char *p = rdg_options.log; *p; p++) {
            if (p[0] == '%' && p[1] == 'p') {
                text_number(&path, getpid());
                p++;
            } else {
                char c[2] = {*p, 0};
                text_add(&path, c);
            }
        }
        int fd =
            open(text_end(&path), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
        if (fd >= 0) {
            log_fd = fd;
        } else {
            struct text t = {0};
            text_add(&t, "option RDGATE_LOG: cannot open ");
            text_escaped(&t, path.bytes, 200);
            text_add(&t, ", writing to stderr");
            report_option(text_end(&t));
        }
    }
    if (rdg_options.verbose) {
        struct text t = {0};
        text_add(&t, "loaded librdgate " RDGATE_VERSION ", ");
        text_number(&t, CALL_COUNT);
        text_add(&t, " calls known");
        line(&t);
    }
}
