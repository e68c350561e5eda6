/*
 * notes.c: findings said on the spot. It must not wait: a line that would block
 * (a full pipe) is dropped and counted, and nothing of the process is held or called while it is written.
 */
#include "notes.h"
#include "gate.h"
#include "options.h"
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static _Atomic long written, dropped;
static int log_fd = STDERR_FILENO;

static const struct {
    const char *code, *says;
} words[] = {
    [GATE_PASSED] = {"gate-passed", "was let through beside"},
    [COLLISION] = {"collision", "met"},
    [DESTROY_DRAINED] = {"destroy-drained", "came while calls were inside and waited for them"},
    [HANDLE_LEAKED] =
        {"handle-leaked",
         "could not wait until all calls were out: the handle is left alone, its memory is lost"},
    [USE_AFTER_CLOSE] = {"use-after-close", "came after the consumer was closed and was refused"},
    [USE_AFTER_DESTROY] = {"use-after-destroy", "came after the handle was destroyed and was refused"},
    [DOUBLE_CLOSE] = {"double-close", "came after the consumer was closed"},
    [DOUBLE_DESTROY] = {"double-destroy", "came after the handle was destroyed and was ignored"},
    [USE_AFTER_FORK] = {"use-after-fork",
                        "on a handle of the parent process, whose threads do not exist here"},
    [OWNER_GONE] = {"owner-gone", "its thread has ended inside this call; the gate is free again"},
    [CALLBACK_ESCAPED] =
        {"callback-escaped",
         "was left by an exception or longjmp out of a callback; the gate is free again, librdkafka may "
         "not be"},
};

static void line(struct text *t)
{
    int saved = errno;
    struct pollfd p = {log_fd, POLLOUT, 0};
    text_add(t, "\n");
    if (poll(&p, 1, 0) == 1 && (p.revents & POLLOUT)) {
        if (write(log_fd, t->bytes, t->used) < 0)
            dropped++;
    } else {
        dropped++;
    }
    errno = saved;
}

static void begin(struct text *t, const char *what)
{
    text_add(t, "rdgate: [");
    text_number(t, getpid());
    text_add(t, "] ");
    text_add(t, what);
}

static void name_thread(struct text *t, int tid)
{
    char name[20] = "";
    struct text path = {0};
    text_add(&path, "/proc/self/task/");
    text_number(&path, tid);
    text_add(&path, "/comm");
    int fd = open(text_end(&path), O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t n = read(fd, name, sizeof(name) - 1);
        name[n > 0 ? n - 1 : 0] = 0;
        close(fd);
    }
    text_add(t, "thread ");
    text_number(t, tid);
    if (name[0]) {
        text_add(t, " \"");
        text_escaped(t, name, 16);
        text_add(t, "\"");
    }
}

static void name_consumer(struct text *t, const struct consumer *c)
{
    text_add(t, " on consumer \"");
    text_escaped(t, c->name, 64);
    text_add(t, "\"");
    if (c->group[0]) {
        text_add(t, " of group \"");
        text_escaped(t, c->group, 64);
        text_add(t, "\"");
    }
}

void report(enum finding f, struct consumer *c, int call, const struct visit *other, int64_t ms)
{
    int saved = errno;
    long n = ++written;
    if (n > rdg_options.reports + 1) {
        errno = saved;
        return;
    }
    struct text t = {0};
    if (n > rdg_options.reports) {
        begin(&t, "");
        text_number(&t, rdg_options.reports);
        text_add(&t, " findings written, further ones are only counted (RDGATE_REPORTS)");
        line(&t);
        errno = saved;
        return;
    }
    begin(&t, "finding: ");
    text_add(&t, words[f].code);
    text_add(&t, ": ");
    text_add(&t, rdg_calls[call].name);
    name_consumer(&t, c);
    text_add(&t, ", ");
    name_thread(&t, other && other->call == call && (f == OWNER_GONE || f == CALLBACK_ESCAPED)
                        ? other->self->tid
                        : (rdg_self ? rdg_self->tid : getpid()));
    text_add(&t, ", ");
    text_add(&t, words[f].says);
    if (other && (f == GATE_PASSED || f == COLLISION || f == HANDLE_LEAKED)) {
        text_add(&t, f == HANDLE_LEAKED ? "; still inside: " : " ");
        text_add(&t, rdg_calls[other->call].name);
        text_add(&t, " of ");
        name_thread(&t, other->self->tid);
        if (atomic_load(&other->window))
            text_add(&t, " (in a callback of the application)");
    }
    if (ms >= 0) {
        text_add(&t, " after ");
        text_duration(&t, ms);
    }
    if ((f == USE_AFTER_CLOSE || f == USE_AFTER_DESTROY || f == DOUBLE_CLOSE || f == DOUBLE_DESTROY) &&
        c->killer_call) {
        text_add(&t, "; ");
        text_add(&t, c->killer_call);
        text_add(&t, " was called ");
        text_duration(&t, (now_ns() - c->killed_at) / 1000000);
        text_add(&t, " ago by thread ");
        text_number(&t, c->killer_tid);
    }
    line(&t);
    errno = saved;
}

void report_once(enum finding f, struct consumer *c, int call, const struct visit *other, int64_t ms)
{
    if (atomic_fetch_or(&c->reported, 1u << f) & (1u << f))
        return;
    report(f, c, call, other, ms);
}

void report_option(const char *sentence)
{
    struct text t = {0};
    begin(&t, sentence);
    line(&t);
}

void report_library(const struct library *lib)
{
    if (!rdg_options.verbose)
        return;
    struct text t = {0};
    begin(&t, "librdkafka ");
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

void report_uncovered(const char *where, const char *why)
{
    if (++written > rdg_options.reports)
        return;
    struct text t = {0};
    begin(&t, "finding: not-covered: librdkafka is inside ");
    text_escaped(&t, where, 256);
    text_add(&t, " and its calls do not come through us: ");
    text_add(&t, why);
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
    begin(&t, "exit: ");
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
        begin(&t, "loaded librdgate " RDGATE_VERSION ", ");
        text_number(&t, CALL_COUNT);
        text_add(&t, " calls known");
        line(&t);
    }
}
