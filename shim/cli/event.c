/*
 * event.c: an event of the flight file in words, the same ones for every subcommand.
 */
#include "event.h"
#include "../verdict.h"

#include <stdio.h>
#include <string.h>

const char *callback_name(int callback)
{
    static const char *const names[] = {
#define X(name) #name,
        FOR_CALLBACKS(X)
#undef X
    };
    return callback >= 0 && callback < CB_COUNT ? names[callback] : "a callback";
}

const char *finding_code(unsigned finding)
{
    static const char *const codes[] = {
#define FINDING(NAME, code, severity) code,
#include "../findings.def"
    };
    return finding < FINDINGS ? codes[finding] : "unknown";
}

unsigned finding_severity(unsigned finding)
{
    enum { INFO = SEVERITY_INFO, WARNING = SEVERITY_WARNING, ERROR = SEVERITY_ERROR };
    static const uint8_t severities[] = {
#define FINDING(NAME, code, severity) severity,
#include "../findings.def"
    };
    return finding < FINDINGS ? severities[finding] : INFO;
}

const char *severity_name(unsigned severity)
{
    static const char *const names[] = {"info", "warning", "error"};
    return severity <= SEVERITY_ERROR ? names[severity] : "info";
}

void duration_words(char *to, size_t size, int64_t ns)
{
    double s = (double)ns / 1e9;
    if (ns < 0)
        snprintf(to, size, "-");
    else if (ns < 1000000)
        snprintf(to, size, "%.0fus", s * 1e6);
    else if (ns < 10000000)
        snprintf(to, size, "%.1fms", s * 1e3);
    else if (ns < 1000000000)
        snprintf(to, size, "%.0fms", s * 1e3);
    else if (s < 100)
        snprintf(to, size, "%.1fs", s);
    else if (s < 7200)
        snprintf(to, size, "%dm%02ds", (int)s / 60, (int)s % 60);
    else
        snprintf(to, size, "%.0fh", s / 3600);
}

void thread_name(char to[16], const struct flight *f, int tid)
{
    char path[64];
    *to = 0;
    for (int i = 0; tid > 0 && i < FLIGHT_THREADS; i++)
        if (f->file->thread[i].tid == tid)
            memcpy(to, f->file->thread[i].name, 16);
    if (*to || tid <= 0)
        return;
    /* Not seen by the watchdog; if it is still there, it can be asked. */
    snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", f->pid, tid);
    FILE *comm = f->fate == FLIGHT_RUNS && f->pid ? fopen(path, "re") : NULL;
    if (comm) {
        if (!fgets(to, 16, comm))
            *to = 0;
        to[strcspn(to, "\n")] = 0;
        fclose(comm);
    } else if (tid == f->file->header.pid) { /* the main thread has its name from the program */
        snprintf(to, 16, "%.15s", f->file->header.program);
    }
}

void thread_words(char *to, size_t size, const struct flight *f, int tid)
{
    char name[16];
    thread_name(name, f, tid);
    if (tid <= 0)
        snprintf(to, size, "the watchdog");
    else
        snprintf(to, size, "%s%s%d", name, *name ? "/" : "thread ", tid);
}

/* Appends; what does not fit is cut. */
__attribute__((format(printf, 3, 4))) static void add(char *to, size_t size, const char *format, ...)
{
    size_t used = strlen(to);
    __builtin_va_list args;
    __builtin_va_start(args, format);
    if (used + 1 < size)
        vsnprintf(to + used, size - used, format, args);
    __builtin_va_end(args);
}

static const char *rebalance_name(int code)
{
    return code == CODE_ASSIGN ? "an assignment" : code == CODE_REVOKE ? "a revocation" : "a rebalance";
}

static void poll_words(char *to, size_t size, const struct flight_event *e)
{
    snprintf(to, size, "%s returns", rdg_calls[e->call].name);
    if (e->flags & FLIGHT_FAILED)
        add(to, size, " with error %d", e->code);
    if (e->flags & FLIGHT_CUT_SHORT)
        add(to, size, " early, as the consumer closes");
    if (e->flags & FLIGHT_PREEMPTED)
        add(to, size, ", was woken for a call meanwhile");
    if (e->flags & FLIGHT_REFUSED)
        add(to, size, ", was refused");
}

static void wait_words(char *to, size_t size, const struct flight_event *e)
{
    char time[32];
    duration_words(time, sizeof(time), e->value);
    snprintf(to, size, "%s %s after %s at the gate", rdg_calls[e->call].name,
             e->flags & FLIGHT_TIMED_OUT  ? "gives up, its timeout is over,"
             : e->flags & FLIGHT_REFUSED  ? "is refused"
             : e->flags & FLIGHT_LET_PAST ? "is let through at the limit"
                                          : "goes in",
             time);
}

void event_words(char *to, size_t size, const struct flight *f, const struct flight_event *e)
{
    char other[64] = "another thread";
    const char *call = rdg_calls[e->call].name;
    if (e->other)
        thread_words(other, sizeof(other), f, e->other);
    switch (e->kind) {
    case FLIGHT_BORN: snprintf(to, size, "the consumer is made by %s", call); break;
    case FLIGHT_CALL_BEGINS: snprintf(to, size, "%s", call); break;
    case FLIGHT_CALL_ENDS: snprintf(to, size, "%s returns %d", call, e->code); break;
    case FLIGHT_POLL: poll_words(to, size, e); break;
    case FLIGHT_WAIT_BEGINS:
        snprintf(to, size, "%s waits at the gate", call);
        if (e->other)
            add(to, size, " for %s in %s", other, rdg_calls[e->other_call].name);
        break;
    case FLIGHT_WAIT_ENDS: wait_words(to, size, e); break;
    case FLIGHT_PREEMPTS: snprintf(to, size, "%s wakes the poll of %s", call, other); break;
    case FLIGHT_CALLBACK_BEGINS: snprintf(to, size, "%s > %s", call, callback_name(e->callback - 1)); break;
    case FLIGHT_CALLBACK_ENDS:
        snprintf(to, size, "%s > %s is over", call, callback_name(e->callback - 1));
        break;
    case FLIGHT_LOAN: snprintf(to, size, "%s is let in while a callback runs", call); break;
    case FLIGHT_REBALANCE:
        snprintf(to, size, "gets %s", rebalance_name(e->code));
        if (e->value >= 0)
            add(to, size, " of %lld partition%s", (long long)e->value, e->value == 1 ? "" : "s");
        if (e->flags & FLIGHT_BY_EVENT)
            add(to, size, ", as an event");
        break;
    case FLIGHT_ANSWER: snprintf(to, size, "answers with %s, which returns %d", call, e->code); break;
    case FLIGHT_COLLISION:
        snprintf(to, size, "%s meets %s of %s", call, rdg_calls[e->other_call].name, other);
        break;
    case FLIGHT_FINDING: snprintf(to, size, "finding: %s", finding_code((unsigned)e->code)); break;
    case FLIGHT_CLOSED: snprintf(to, size, "the consumer is closed, %s returns %d", call, e->code); break;
    case FLIGHT_DESTROYED: snprintf(to, size, "the consumer is destroyed by %s", call); break;
    case FLIGHT_ABANDONED:
        snprintf(to, size, "%s is left without returning: %s", call, finding_code((unsigned)e->code));
        break;
    default: snprintf(to, size, "?");
    }
}
