/*
 * gil.c: see gil.h. It reads memory only through the kernel, and must not name a holder unless every field
 * that it reads is as it should be: the watchdog makes deadlocks of it.
 */
#include "gil.h"
#include "peek.h"
#include "real.h"

#include <dlfcn.h>

/* CPython Include/internal/pycore_gil.h, 3.7 to 3.13; the condition variable that waiters sleep in comes
 * next. */
struct gil_words {
    uint64_t interval, last_holder; /* microseconds; a PyThreadState */
    uint32_t locked, padding;
    uint64_t switches;
};

#define RUNTIME_SIZE (1u << 20) /* _PyRuntime is somewhat smaller */
#define INTERVAL     1000000000000u
#define STATE_WORDS  40
#define MOST_TIDS    (1u << 22)

static uintptr_t runtime; /* 0: no Python here */

void gil_start(void)
{
    runtime = (uintptr_t)real_dlsym(RTLD_DEFAULT, "_PyRuntime");
}

/* The thread of a PyThreadState: its pthread_t and its tid stand side by side (3.11 and later). */
static int holder_of(uint64_t state)
{
    uint64_t word[STATE_WORDS];
    if (state % sizeof(*word) || !peek_memory((uintptr_t)state, word, sizeof(word)))
        return 0;
    for (int i = 0; i + 1 < STATE_WORDS; i++)
        if (word[i] > 65536 && word[i] % 64 == 0 && word[i + 1] > 0 && word[i + 1] < MOST_TIDS &&
            peek_lives((int)word[i + 1]))
            return (int)word[i + 1];
    return 0;
}

void gil_look(struct seen_thread *t)
{
    /* Where the futex lies in a pthread_cond_t: glibc 2.25 to 2.40, and 2.41. */
    static const uintptr_t within[] = {40, 44, 32, 36};
    struct gil_words g;
    if (!runtime || t->sleep != SLEEP_FUTEX || t->futex - runtime >= RUNTIME_SIZE)
        return;
    for (int i = 0; i < 4; i++) {
        uintptr_t gil = t->futex - within[i] - sizeof(g);
        if (gil % sizeof(void *) || !peek_memory(gil, &g, sizeof(g)) || g.locked != 1 || !g.interval ||
            g.interval > INTERVAL)
            continue;
        int holder = holder_of(g.last_holder);
        if (holder && holder != t->tid) {
            t->sleep = SLEEP_MUTEX;
            t->gil = true;
            t->futex = gil;
            t->mutex_owner = holder;
        }
        return;
    }
}
