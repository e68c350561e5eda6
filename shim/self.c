/*
 * self.c: this thread's record. It must not allocate from the application's heap, and must not wait.
 */
#include "self.h"
#include "gate.h"
#include "ledger.h"
#include "maps.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread struct self *rdg_self;

#define CHUNK  32
#define CHUNKS 1024
static struct self *chunks[CHUNKS];
static _Atomic int chunks_made;
static struct self *free_list;
static struct lock pool;
static pthread_key_t at_exit;
static _Atomic int key_made;
static _Atomic uint32_t ids;

static void thread_ends(void *p)
{
    struct self *s = p;
    /* Destructors of other keys may still call librdkafka: such a call makes a new record. */
    gate_thread_ends(s);
    ledger_spill(s);
    rdg_self = NULL;
    lock_take(&pool);
    s->live = false;
    s->next_free = free_list;
    free_list = s;
    lock_drop(&pool);
}

static struct self *take(void)
{
    lock_take(&pool);
    if (!key_made) {
        key_made = pthread_key_create(&at_exit, thread_ends) == 0 ? 1 : -1;
    }
    struct self *s = free_list;
    if (s) {
        free_list = s->next_free;
    } else if (chunks_made < CHUNKS) {
        void *p = mmap(NULL, CHUNK * sizeof(struct self), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0);
        if (p != MAP_FAILED) {
            s = p;
            for (int i = 1; i < CHUNK; i++) {
                s[i].next_free = free_list;
                free_list = &s[i];
            }
            chunks[chunks_made] = s;
            atomic_store_explicit(&chunks_made, chunks_made + 1, memory_order_release);
        }
    }
    lock_drop(&pool);
    return s;
}

struct self *self_make(void)
{
    struct self *s = take();
    if (!s)
        return NULL;
    char name[16] = "";
    memset(s, 0, sizeof(*s));
    prctl(PR_GET_NAME, name);
    s->tid = (int)syscall(SYS_gettid);
    s->id = atomic_fetch_add(&ids, 1) + 1;
    s->thread = pthread_self();
    /* librdkafka names its threads rdk:main, rdk:brokerN, rdk:bg (rdkafka.c, rdkafka_broker.c). */
    s->librdkafka = s->unusual = strncmp(name, "rdk:", 4) == 0;
    s->live = true;
    rdg_self = s;
    if (key_made == 1)
        pthread_setspecific(at_exit, s);
    return s;
}

bool self_same_stack(struct self *s, uintptr_t a, uintptr_t b)
{
    if (a - s->stack_from >= s->stack_to - s->stack_from && !maps_range(a, &s->stack_from, &s->stack_to))
        s->stack_from = s->stack_to = 0;
    return a - s->stack_from < s->stack_to - s->stack_from && b - s->stack_from < s->stack_to - s->stack_from;
}

void self_each(void (*f)(struct self *, void *), void *with)
{
    int n = atomic_load_explicit(&chunks_made, memory_order_acquire);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < CHUNK; j++)
            if (chunks[i][j].live)
                f(&chunks[i][j], with);
}

bool self_thread(pthread_t *thread, void *(*body)(void *), void *arg)
{
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    bool small = pthread_attr_setstacksize(&attr, 256 * 1024) == 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* it inherits the mask */
    /* Where the program has much thread-local memory the small stack is too little, and the usual size will
     * do. */
    bool made = (small && pthread_create(thread, &attr, body, arg) == 0) ||
                pthread_create(thread, NULL, body, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return made;
}

void self_after_fork(void)
{
    struct self *mine = rdg_self;
    pool.word = 0;
    free_list = NULL;
    for (int i = 0; i < chunks_made; i++) {
        for (int j = 0; j < CHUNK; j++) {
            struct self *s = &chunks[i][j];
            if (s == mine)
                continue;
            s->live = false;
            s->next_free = free_list;
            free_list = s;
        }
    }
    if (mine)
        mine->tid = (int)syscall(SYS_gettid);
}

void self_hold(bool hold)
{
    if (hold)
        lock_take(&pool);
    else
        lock_drop(&pool);
}
