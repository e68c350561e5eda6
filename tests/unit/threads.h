/*
 * threads.h: what the unit tests that look at other threads share: threads that do one thing, and waiting for
 * them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int my_tid(void)
{
    return (int)syscall(SYS_gettid);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void breathe(void)
{
    struct timespec t = {0, 1000000};
    nanosleep(&t, NULL);
}

struct start {
    void (*body)(void *);
    void *with;
    _Atomic int tid;
};

static void *thread(void *p)
{
    struct start *s = p;
    void (*body)(void *) = s->body;
    void *with = s->with;
    atomic_store(&s->tid, my_tid());
    body(with);
    return NULL;
}

static pthread_t last_thread;

/* Returns its tid, once it runs. What it was given is never freed: it may look at it to the end. */
static int start(void (*body)(void *), void *with)
{
    struct start *s = calloc(1, sizeof(*s));
    if (!s)
        abort();
    s->body = body;
    s->with = with;
    if (pthread_create(&last_thread, NULL, thread, s))
        abort();
    while (!atomic_load(&s->tid))
        breathe();
    return s->tid;
}
