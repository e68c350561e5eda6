/*
 * entry.c: start-up, waking up, fork and exit of the shim. Until the process makes its first call of
 * librdkafka nothing happens but finding the real dlsym, and a look whether the executable has a copy inside.
 */
#include "flight.h"
#include "notes.h"
#include "patch.h"
#include "shim.h"
#include "watch.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <unistd.h>

extern char **environ;

struct options rdg_options;
static _Atomic int waking;

static void quiet(const char *sentence)
{
    (void)sentence;
}

__attribute__((constructor)) static void start(void)
{
    real_start();
    options_default(&rdg_options);
    if (getauxval(AT_SECURE))
        rdg_options.mode = OFF; /* another user's environment has nothing to say here */
    else
        options_parse(&rdg_options, environ, quiet);
    if (rdg_options.mode != OFF && rdg_options.patch == PATCH_AUTO)
        patch_executable();
}

static void before_fork(void)
{
    registry_hold(true);
    self_hold(true);
}

static void in_parent(void)
{
    self_hold(false);
    registry_hold(false);
}

static void in_forked_child(void)
{
    patch_after_fork();
    self_after_fork();
    handle_after_fork();
    watch_after_fork();
    flight_after_fork();
}

#define UNCLOSED 8
struct unclosed {
    struct consumer *found[UNCLOSED];
    int count;
};

/* Of a group: who consumes without one owes nobody a goodbye. */
static void is_open(struct consumer *c, void *with)
{
    struct unclosed *u = with;
    if (c->is_consumer && c->subscribed && c->rk && !c->forked && atomic_load(&c->life) == OPEN &&
        u->count < UNCLOSED)
        u->found[u->count++] = c;
}

__attribute__((destructor)) static void stop(void)
{
    struct unclosed u = {.count = 0};
    if (rdg_awake)
        consumers_each(is_open, &u);
    for (int i = 0; i < u.count; i++)
        report(UNCLOSED_AT_EXIT, u.found[i], CALL_rd_kafka_new, NULL, -1);
    flight_end();
    report_exit();
}

void shim_awake(void)
{
    if (atomic_exchange(&waking, 1))
        return; /* another thread does it, or we are in it: its call goes on with what is known */
    if (!getauxval(AT_SECURE)) {
        struct options again;
        options_default(&again);
        options_parse(&again, environ, report_option);
    }
    report_start();
    pthread_atfork(before_fork, in_parent, in_forked_child);
    atomic_store(&rdg_awake, 1);
}
