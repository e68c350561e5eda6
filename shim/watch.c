/*
 * watch.c: the watchdog thread: looks at every consumer and every thread that is in a call four times a
 * second, and hands what it saw to verdict.c and report.c. It must never allocate from the heap, enter the
 * dynamic loader, use stdio, take a lock that the application may hold, or call librdkafka.
 *
 * AGE. Nobody but the watchdog reads a clock. Each visit has a sequence number, written by its thread alone;
 * what has the same number as at the last look has stood still since then. So ages are exact to one look.
 *
 * LOOKING. A look first walks over the records, which costs a few loads for each thread and consumer. Only if
 * something has stood still for a while is a snapshot made: gates are asked who waits for whom (under their
 * mu, and only where threads have met), threads are looked at through /proc. What a thread writes meanwhile
 * may make a snapshot wrong; a call is taken into it only if its number is the same before and after, and a
 * deadlock is believed only if the next look finds the same one.
 */
#include "watch.h"
#include "flight.h"
#include "gil.h"
#include "handle.h"
#include "ledger.h"
#include "notes.h"
#include "options.h"
#include "peek.h"
#include "see.h"
#include "shim.h"
#include "stack.h"
#include "verdict.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_MS      250
#define IDLE_MS      500  /* between two looks while nothing stands still */
#define STANDS_MS    400  /* worth a closer look */
#define GRACE_MS     1000 /* an answer that another thread gives takes a few 100 ms */
#define STOPPED_MS   3000 /* since the last look: this thread was not let run */
#define ANSWER_MS    200  /* for a thread to give its stack */
#define SNAP_THREADS 64
#define SNAP_THINGS  32 /* consumers */
#define SNAP_EDGES   128
#define ACTIVE       32
#define NOTED        8

/* A finding that still holds. */
struct active {
    uint64_t key; /* 0: free */
    const struct consumer *of;
    struct verdict verdict;
    struct seen_consumer consumer;
    struct seen_thread thread;
    int64_t since;
    long number, look;
    bool told; /* reported, or found not worth it */
};

struct sleeper {
    int tid, sleep;
    uintptr_t futex;
    int64_t since;
};

/* All that a closer look needs; made when the first is taken. */
struct desk {
    struct snapshot snapshot;
    struct consumer *consumer[SNAP_THINGS];
    struct seen_consumer seen_consumer[SNAP_THINGS];
    const struct self *self[SNAP_THREADS];
    uint64_t numbers[SNAP_THREADS][SEEN_CALLS]; /* the visits' sequence numbers */
    struct seen_thread thread[SNAP_THREADS];
    struct edge edge[SNAP_EDGES];
    struct gate_edge gate_edge[SNAP_EDGES];
    struct verdict verdict[ACTIVE];
    struct active active[ACTIVE];
    struct sleeper sleeper[SNAP_THREADS], sleeper_before[SNAP_THREADS];
    struct place frame[PARTIES][SEEN_FRAMES];
};

_Atomic int rdg_uncounted;

static struct lock starting;
static pthread_t thread;
static bool running; /* with `starting` */
static int born_in;
static _Atomic uint32_t wake, leave;
static struct desk *desk;
static long looks;
static int64_t now_ms;

/* ------------------------------------------------------------------ walking over the records */

struct walk {
    int64_t gap;                  /* ms that this thread did not run */
    bool close;                   /* something stands still */
    struct consumer *note[NOTED]; /* rebalances to be noted */
    int notes;
};

static bool idle_poll(const struct visit *v)
{
    return v->class == POLL && atomic_load_explicit(&v->state, memory_order_relaxed) == INSIDE &&
           !atomic_load_explicit(&v->window, memory_order_relaxed);
}

static void walk_thread(struct self *s, void *with)
{
    struct walk *w = with;
    int used = s->used;
    for (int i = 0; i < used && i < VISITS; i++) {
        struct visit *v = &s->visits[i];
        struct watched *old = &s->watched[i];
        uint32_t n = atomic_load_explicit(&v->sequence, memory_order_relaxed);
        uint32_t windows = atomic_load_explicit(&v->windows, memory_order_relaxed);
        old->since += w->gap;
        old->callback_since += w->gap;
        if (old->sequence != n || old->since == w->gap) {
            old->sequence = n;
            old->since = now_ms;
        }
        if (old->windows != windows || old->callback_since == w->gap ||
            !atomic_load_explicit(&v->window, memory_order_relaxed)) {
            old->windows = windows;
            old->callback_since = now_ms;
        }
        struct consumer *c = v->consumer;
        if (c && v->class == POLL && !v->alien)
            c->polling_at = looks;
        if (now_ms - old->since >= STANDS_MS && !idle_poll(v))
            w->close = true;
    }
    flight_look_thread(s);
}

/* Only a member of a group is: of everybody else polls_since is now. */
static bool poll_is_late(const struct consumer *c)
{
    return atomic_load(&c->life) == OPEN && c->subscribed && c->max_poll_ms > 0 &&
           now_ms - c->polls_since >= (int64_t)c->max_poll_ms / 10 * 8;
}

static void walk_consumer(struct consumer *c, void *with)
{
    struct walk *w = with;
    int life = atomic_load(&c->life);
    c->desk = -1;
    if (!c->is_consumer || !c->rk || c->forked || life == GONE)
        return;
    uint32_t polls = atomic_load_explicit(&c->polls, memory_order_relaxed);
    c->polling = c->polling_at == looks;
    if (polls != c->polls_seen || c->polling_at == looks || !c->subscribed) {
        c->polls_seen = polls;
        c->polls_since = now_ms;
    }
    flight_look_consumer(c, now_ms);
    w->close |= poll_is_late(c);
    struct rebalance *r = &c->rebalance;
    r->at += w->gap;
    /* A close that runs is looked at as a call; after close_queue the application polls, and no call stands.
     */
    if (atomic_load(&c->unanswered) && (r->returned || r->event) && (life == OPEN || life == CLOSING_QUEUE) &&
        now_ms - r->at >= GRACE_MS) {
        w->close |= now_ms - r->at >= rdg_options.stuck_ms;
        if (r->returned && !r->noted && w->notes < NOTED)
            w->note[w->notes++] = c;
    }
}

/* ------------------------------------------------------------------ the snapshot */

static short take_consumer(struct consumer *c)
{
    struct snapshot *s = &desk->snapshot;
    if (!c)
        return -1;
    if (c->desk >= 0 && c->desk < s->consumers && desk->consumer[c->desk] == c)
        return (short)c->desk;
    if (s->consumers == SNAP_THINGS)
        return -1;
    c->desk = s->consumers++;
    desk->consumer[c->desk] = c;
    see_consumer(c, &desk->seen_consumer[c->desk], now_ms);
    return (short)c->desk;
}

static bool take_call(struct self *s, int i, struct seen_call *call, uint64_t *number)
{
    const struct visit *v = &s->visits[i];
    uint32_t before = atomic_load_explicit(&v->sequence, memory_order_acquire);
    see_call(v, call, now_ms);
    call->age = now_ms - s->watched[i].since;
    if (call->callback)
        call->callback_age = now_ms - s->watched[i].callback_since;
    struct consumer *c = v->consumer;
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&v->sequence, memory_order_relaxed) != before ||
        s->watched[i].sequence != before || s->used <= i)
        return false;
    *number = (uint64_t)s->id << 32 | before;
    call->consumer = take_consumer(c);
    return true;
}

static int64_t asleep_since(const struct seen_thread *t, int i)
{
    struct sleeper *now = &desk->sleeper[i];
    *now = (struct sleeper){t->tid, t->sleep, t->futex, now_ms};
    for (int k = 0; k < SNAP_THREADS; k++) {
        const struct sleeper *b = &desk->sleeper_before[k];
        if (b->tid == now->tid && b->sleep == now->sleep && b->futex == now->futex)
            now->since = b->since;
    }
    return now->since < now_ms ? now_ms - now->since : -1; /* seen once is not seen for long */
}

static short take_thread(int tid, struct self *s)
{
    struct snapshot *snap = &desk->snapshot;
    for (int i = 0; i < snap->threads; i++)
        if (desk->thread[i].tid == tid)
            return (short)i;
    if (snap->threads == SNAP_THREADS)
        return -1;
    int n = snap->threads++;
    struct seen_thread *t = &desk->thread[n];
    memset(t, 0, sizeof(*t));
    t->tid = tid;
    desk->self[n] = s;
    if (s) {
        int used = s->used;
        for (int i = 0; i < used && i < VISITS && t->calls < SEEN_CALLS; i++)
            if (take_call(s, i, &t->call[t->calls], &desk->numbers[n][t->calls]))
                t->calls++;
    }
    peek_thread(tid, t);
    gil_look(t);
    t->asleep = asleep_since(t, n);
    return (short)n;
}

static void see_thread(struct self *s, void *with)
{
    (void)with;
    bool wanted = false;
    int used = s->used;
    for (int i = 0; i < used && i < VISITS; i++) {
        struct consumer *c = s->visits[i].consumer;
        wanted |= now_ms - s->watched[i].since >= STANDS_MS && !idle_poll(&s->visits[i]);
        wanted |= c && c->desk >= 0;
    }
    if (wanted)
        take_thread(s->tid, s);
}

struct find_self {
    int tid;
    struct self *found;
};

static void is_self(struct self *s, void *with)
{
    struct find_self *f = with;
    if (s->tid == f->tid)
        f->found = s;
}

static void want_consumer(struct consumer *c, void *with)
{
    (void)with;
    if (!c->is_consumer || !c->rk || c->forked)
        return;
    bool owes = atomic_load(&c->unanswered) && now_ms - c->rebalance.at >= GRACE_MS;
    if ((poll_is_late(c) || owes) && c->desk < 0 && desk->snapshot.consumers < SNAP_THINGS) {
        c->desk = desk->snapshot.consumers++; /* filled in afterwards: the registry is locked here */
        desk->consumer[c->desk] = c;
    }
}

static void add_edge(enum edge_kind kind, short from, short to, short consumer, uintptr_t mutex)
{
    struct snapshot *s = &desk->snapshot;
    if (from >= 0 && to >= 0 && from != to && s->edges < SNAP_EDGES)
        desk->edge[s->edges++] = (struct edge){(uint8_t)kind, from, to, consumer, mutex};
}

static void see_edges(void)
{
    struct snapshot *s = &desk->snapshot;
    for (int i = 0; i < s->consumers; i++) {
        int n = gate_edges(desk->consumer[i], desk->gate_edge, SNAP_EDGES);
        for (int k = 0; k < n; k++) {
            const struct gate_edge *e = &desk->gate_edge[k];
            add_edge((enum edge_kind)e->kind, take_thread(e->from->tid, (struct self *)e->from),
                     take_thread(e->to->tid, (struct self *)e->to), (short)i, 0);
        }
    }
    /* The owner of a mutex may be any thread of the process, and sleep on the next one. */
    for (int i = 0; i < s->threads; i++) {
        const struct seen_thread *t = &desk->thread[i];
        /* A wait with a limit is no edge of a deadlock; the one for the interpreter lock is begun again and
         * again. */
        if (t->sleep != SLEEP_MUTEX || t->mutex_owner <= 0 || t->mutex_elsewhere || (t->timed && !t->gil))
            continue;
        struct find_self f = {t->mutex_owner, NULL};
        self_each(is_self, &f);
        add_edge(EDGE_MUTEX, (short)i, take_thread(t->mutex_owner, f.found), -1, t->futex);
    }
}

static void look_closer(void)
{
    struct snapshot *s = &desk->snapshot;
    see_process(s);
    s->consumers = s->threads = s->edges = 0;
    s->consumer = desk->seen_consumer;
    s->thread = desk->thread;
    s->edge = desk->edge;
    memcpy(desk->sleeper_before, desk->sleeper, sizeof(desk->sleeper));
    memset(desk->sleeper, 0, sizeof(desk->sleeper));
    consumers_each(want_consumer, NULL);
    for (int i = 0; i < s->consumers; i++)
        see_consumer(desk->consumer[i], &desk->seen_consumer[i], now_ms);
    self_each(see_thread, NULL);
    self_each(see_thread,
              NULL); /* whoever is in a call on a consumer that was taken after it was looked at */
    see_edges();
}

/* ------------------------------------------------------------------ saying it */

static uint64_t mix(uint64_t h, uint64_t x)
{
    h ^= x + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdu;
}

/* The same stall has the same key at every look. */
static uint64_t key_of(const struct verdict *v)
{
    const struct consumer *c = v->consumer >= 0 ? desk->consumer[v->consumer] : NULL;
    uint64_t h = mix(v->finding, (uintptr_t)c);
    uint64_t parties = 0;
    switch (v->finding) {
    case POLL_GAP:
    case POLL_EXCEEDED: parties = c ? c->polls_seen : 0; break;
    case REBALANCE_UNANSWERED: parties = mix(c ? c->rebalance.number : 0, (uint64_t)v->note); break;
    case DEADLOCK:
        for (int i = 0; i < v->parties && i < PARTIES; i++) {
            const struct seen_thread *t = &desk->thread[v->party[i]];
            uint64_t one = (uint64_t)t->tid;
            for (int k = 0; k < t->calls; k++)
                one = mix(one, desk->numbers[v->party[i]][k]);
            parties += mix(one, 1); /* wherever the loop begins */
        }
        break;
    default:
        /* The call that stands, whatever is called inside it, and whoever waits for it. */
        if (v->parties > 0)
            parties = mix((uint64_t)desk->thread[v->party[0]].tid,
                          v->level >= 0 && v->level < SEEN_CALLS ? desk->numbers[v->party[0]][v->level] : 0);
    }
    h = mix(h, parties);
    return h ? h : 1;
}

static struct active *find_active(uint64_t key)
{
    for (int i = 0; i < ACTIVE; i++)
        if (desk->active[i].key == key)
            return &desk->active[i];
    return NULL;
}

static void take_frames(struct seen_thread *t, const struct self *s, struct place *to, bool ask)
{
    uintptr_t at[SEEN_FRAMES];
    int n = 0;
    bool waits = t->calls && t->call[t->calls - 1].state == SEEN_WAITING;
    if (waits && s) {
        uint32_t number = atomic_load(&s->stack_number);
        for (n = 0; n < s->stack_frames && n < SEEN_FRAMES; n++)
            at[n] = s->stack[n];
        if (number & 1 || number != atomic_load(&s->stack_number))
            n = 0;
        t->stack_from = STACK_BY_ITSELF;
    }
    if (!n && ask) {
        n = stack_of(t->tid, at, SEEN_FRAMES, ANSWER_MS);
        t->stack_from = n < 0 ? STACK_SILENT : STACK_ASKED;
    }
    t->frames = 0;
    for (int i = 0; i < n; i++)
        place_name(at[i], &to[t->frames++]);
    t->frame = n > 0 ? to : NULL;
    if (n == 0)
        t->stack_from = STACK_NONE;
}

/* What only a report needs is found out only for a report: names of places, stacks. */
static void enrich(const struct verdict *v)
{
    bool ask = rdg_options.owner_stack != OWNER_STACK_NEVER &&
               (v->finding == DEADLOCK || rdg_options.owner_stack == OWNER_STACK_ALWAYS);
    for (int i = 0; i < v->parties && i < PARTIES; i++) {
        struct seen_thread *t = &desk->thread[v->party[i]];
        for (int k = 0; k < t->calls; k++)
            if (t->call[k].caller.address)
                place_name(t->call[k].caller.address - 1,
                           &t->call[k].caller); /* the call, not what follows it */
        take_frames(t, desk->self[v->party[i]], desk->frame[i], ask);
    }
}

static void on_deadlock(const struct verdict *v)
{
    int what = rdg_options.on_deadlock;
    if ((what & 255) == ON_DEADLOCK_EXIT)
        _exit(what >> 8);
    if (what == ON_DEADLOCK_ABORT) {
        /* The first thread of the core dump shall be the interesting one. */
        signal(SIGABRT, SIG_DFL);
        if (v->parties > 0)
            syscall(SYS_tgkill, getpid(), desk->thread[v->party[0]].tid, SIGABRT);
        static _Atomic uint32_t never;
        futex_wait(&never, 0, now_ns() + 2000000000LL, 0);
        abort();
    }
}

/* A loop through a destroy that waits at the gate is of our own making: without us it would not have waited.
 */
static void let_go(const struct verdict *v)
{
    if (rdg_options.mode == OBSERVE)
        return;
    for (int i = 0; i < v->parties && i < PARTIES; i++) {
        int n = v->party[i], k = desk->thread[n].calls - 1;
        if (desk->self[n] && k >= 0)
            gate_let_go(desk->self[n], k, (uint32_t)desk->numbers[n][k]);
    }
}

static bool covered_by_deadlock(const struct verdict *v)
{
    if (v->finding != STUCK_CALL && v->finding != CLOSE_STUCK && v->finding != DESTROY_STUCK)
        return false;
    for (int i = 0; i < ACTIVE; i++) {
        const struct active *a = &desk->active[i];
        if (a->key && a->verdict.finding == DEADLOCK && a->look == looks && v->parties > 0)
            for (int k = 0; k < a->verdict.parties && k < PARTIES; k++)
                if (a->verdict.party[k] == v->party[0])
                    return true;
    }
    return false;
}

static void judge(void)
{
    struct limits limits = {.stuck_ms = rdg_options.stuck_ms};
    int n = verdicts(&desk->snapshot, &limits, desk->verdict, ACTIVE);
    unsigned loop = 0;
    for (int i = 0; i < n && loop < 2; i++)
        if (desk->verdict[i].finding == DEADLOCK)
            loop = find_active(key_of(&desk->verdict[i])) ? 2 : 1;
    flight_snapshot(&desk->snapshot, desk->consumer, loop);
    for (int i = 0; i < n; i++) {
        const struct verdict *v = &desk->verdict[i];
        uint64_t key = key_of(v);
        struct active *a = find_active(key);
        bool again = a != NULL;
        if (!a && !(a = find_active(0)))
            continue;
        if (!again) {
            memset(a, 0, sizeof(*a));
            a->key = key;
            a->of = v->consumer >= 0 ? desk->consumer[v->consumer] : NULL;
            a->since = now_ms - (v->age > 0 ? v->age : 0);
        }
        a->look = looks;
        a->verdict = *v;
        if (a->told || (v->finding == DEADLOCK && !again) || covered_by_deadlock(v))
            continue;
        enrich(v);
        a->told = true;
        a->number = notes_report(&desk->snapshot, v, v->consumer >= 0 ? desk->consumer[v->consumer] : NULL);
        if (v->consumer >= 0)
            a->consumer = desk->seen_consumer[v->consumer];
        if (v->parties > 0)
            a->thread = desk->thread[v->party[0]];
        a->thread.frame = NULL;
        a->thread.frames = 0;
        if (v->finding == DEADLOCK) {
            on_deadlock(v);
            let_go(v);
        }
    }
}

/* What was stuck and is not any more. Not said if the same consumer is stuck in another way by now. */
static void forget(void)
{
    for (int i = 0; i < ACTIVE; i++) {
        struct active *a = &desk->active[i];
        if (!a->key || a->look == looks)
            continue;
        bool still = false;
        for (int k = 0; k < ACTIVE; k++)
            still |= desk->active[k].key && desk->active[k].look == looks && desk->active[k].of == a->of;
        enum finding f = a->verdict.finding;
        if (a->number && !still &&
            (f == DEADLOCK || f == STUCK_CALL || f == CLOSE_STUCK || f == DESTROY_STUCK)) {
            struct snapshot s = {
                .consumers = 1, .threads = 1, .consumer = &a->consumer, .thread = &a->thread};
            see_process(&s);
            struct verdict v = a->verdict;
            v.consumer = 0;
            v.parties = 1;
            v.party[0] = 0;
            v.edges = 0;
            for (int k = 0; k < a->thread.calls; k++)
                a->thread.call[k].consumer = a->thread.call[k].consumer == a->verdict.consumer ? 0 : -1;
            notes_moving(&s, &v, a->number, now_ms - a->since);
        }
        a->key = 0;
    }
}

/* ------------------------------------------------------------------ librdkafka that we do not see */

static int library_threads(void)
{
    int n = 0;
    int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    static char entries[4096];
    long got;
    while ((got = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0) {
        for (long at = 0; at < got;) {
            /* struct linux_dirent64: ino 8, off 8, reclen 2, type 1, name */
            unsigned short length;
            memcpy(&length, entries + at + 16, sizeof(length));
            const char *name = entries + at + 19;
            int tid = 0;
            for (; *name >= '0' && *name <= '9'; name++)
                tid = tid * 10 + (*name - '0');
            char comm[16] = "";
            if (tid)
                peek_name(tid, comm);
            n += strcmp(comm, "rdk:main") == 0;
            at += length;
        }
    }
    close(fd);
    return n;
}

static void count_handle(struct consumer *c, void *with)
{
    if (!c->forked && (c->rk || c->expected))
        ++*(int *)with;
}

/* Each handle has one thread of this name. Tombstones count as handles, so that one that is just being
 * destroyed is no surprise. */
static bool look_for_others(void)
{
    static bool before, said;
    int handles = 0;
    if (said)
        return false;
    consumers_each(count_handle, &handles);
    bool more = library_threads() > handles + atomic_load(&rdg_uncounted);
    if (more && before) {
        said = true;
        report_not_covered();
    }
    before = more;
    return more && !said;
}

/* ------------------------------------------------------------------ the thread */

static int64_t period(bool idle)
{
    int64_t p = rdg_options.stuck_ms / 4, most = idle ? IDLE_MS : LOOK_MS;
    return p < 20 ? 20 : p > most ? most : p;
}

/* Returns whether nothing stands still. */
static bool look(void)
{
    int64_t before = now_ms;
    now_ms = now_ns() / 1000000;
    atomic_store_explicit(&rdg_tick, now_ms, memory_order_relaxed);
    looks++;
    /* A stopped process, a machine that slept: nobody has stood still for that long. */
    struct walk w = {.gap = before && now_ms - before > STOPPED_MS ? now_ms - before : 0};
    flight_look(now_ms);
    self_each(walk_thread, &w);
    consumers_each(walk_consumer, &w);
    flight_looked();
    for (int i = 0; i < w.notes; i++) {
        w.note[i]->rebalance.noted = true;
        struct consumer *c = w.note[i];
        report_variant(REBALANCE_UNANSWERED, c->rebalance.event ? ANSWER_EVENT : ANSWER_RETURNED, c,
                       CALL_rd_kafka_assign, NULL, now_ms - c->rebalance.at);
    }
    if (w.close && !desk) {
        void *p = mmap(NULL, sizeof(*desk), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        desk = p == MAP_FAILED ? NULL : p;
    }
    if (desk) {
        if (w.close) {
            look_closer();
            judge();
        } else {
            desk->snapshot.consumers = desk->snapshot.threads = desk->snapshot.edges = 0;
            flight_snapshot(&desk->snapshot, desk->consumer, 0);
        }
        forget();
    }
    static bool again;
    if (again || looks == 8 || looks % 240 == 0)
        again = look_for_others();
    return !w.close;
}

static void *watch(void *arg)
{
    prctl(PR_SET_NAME, "rdgate");
    flight_clean();
    while (!atomic_load(&leave)) {
        uint32_t seen = atomic_load(&wake);
        bool idle = look();
        if (!atomic_load(&leave))
            futex_wait(&wake, seen, now_ns() + period(idle) * 1000000, 0);
    }
    /* The last consumer is gone: what was stuck about it is not any more. */
    looks++;
    now_ms = now_ns() / 1000000;
    if (desk)
        forget();
    struct walk w = {.gap = 0};
    flight_look(now_ms); /* and who is still in a call */
    self_each(walk_thread, &w);
    flight_looked();
    flight_snapshot(&(struct snapshot){.pid = 0}, NULL, 0);
    return arg;
}

void watch_start(void)
{
    lock_take(&starting);
    if (!running && rdg_options.mode != OFF) {
        peek_start();
        gil_start();
        stack_start();
        atomic_store(&leave, 0);
        running = self_thread(&thread, watch, NULL);
        born_in = getpid();
    }
    lock_drop(&starting);
}

static void count_live(struct consumer *c, void *with)
{
    if (c->is_consumer && !c->forked && (c->expected || (c->rk && atomic_load(&c->life) != GONE)))
        ++*(int *)with;
}

static bool any_live(void)
{
    int live = 0;
    consumers_each(count_live, &live);
    return live > 0;
}

void watch_consumer_gone(void)
{
    if (any_live())
        return;
    lock_take(&starting);
    pthread_t last = thread;
    if (running && !any_live()) { /* one may have been born meanwhile */
        running = false;
        atomic_store(&leave, 1);
        atomic_fetch_add(&wake, 1);
        futex_wake(&wake, 1);
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 2;
        if (pthread_timedjoin_np(last, NULL, &until))
            pthread_detach(last);
    }
    lock_drop(&starting);
}

void watch_after_fork(void)
{
    starting.word = 0;
    running = false;
    desk = NULL; /* the parent's thread may have been writing it */
}

void watch_in_child(void)
{
    if (born_in != getpid())
        watch_start();
}
