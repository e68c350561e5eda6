/* links: peek.o maps.o say.o */
/* Threads stay in their sleeps to the end: exit ends them. */
#include "maps.h"
#include "peek.h"
#include "tap.h"
#include "threads.h"

#include <errno.h>
#include <linux/futex.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What peek_start asks, answered by us: it decides what locks there may be. */
static const char *libc_version = "2.36";
const char *gnu_get_libc_version(void);
const char *gnu_get_libc_version(void)
{
    return libc_version;
}

static struct seen_thread look(int tid)
{
    struct seen_thread t;
    memset(&t, 0x55, sizeof(t));
    peek_thread(tid, &t);
    return t;
}

/* Looks until the thread is seen so, for ten seconds. */
static struct seen_thread seen(int tid, enum sleep sleep)
{
    int64_t until = now_ms() + 10000;
    struct seen_thread t = look(tid);
    while (t.sleep != sleep && now_ms() < until) {
        breathe();
        t = look(tid);
    }
    return t;
}

/* ------------------------------------------------------------------ mutexes */

static void locks(void *m)
{
    pthread_mutex_lock(m);
    abort();
}

static void locks_for_a_day(void *m)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += 86400;
    pthread_mutex_timedlock(m, &t);
    abort();
}

static void locks_twice(void *m)
{
    pthread_mutex_lock(m);
    locks(m);
}

static void locks_and_stays(void *m)
{
    pthread_mutex_lock(m);
    pause();
}

static void locks_and_ends(void *m)
{
    pthread_mutex_lock(m);
}

/* In memory that processes share. */
static pthread_mutex_t *mutex(int type, int robust, int protocol, int shared)
{
    pthread_mutex_t *m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, type);
    pthread_mutexattr_setrobust(&a, robust);
    pthread_mutexattr_setprotocol(&a, protocol);
    pthread_mutexattr_setpshared(&a, shared);
    if (m == MAP_FAILED || pthread_mutex_init(m, &a))
        abort();
    return m;
}

#define OWN    PTHREAD_PROCESS_PRIVATE
#define SHARED PTHREAD_PROCESS_SHARED
#define PLAIN  PTHREAD_MUTEX_STALLED
#define ROBUST PTHREAD_MUTEX_ROBUST
#define PI     PTHREAD_PRIO_INHERIT
#define NO_PI  PTHREAD_PRIO_NONE

static int child_that_locks(pthread_mutex_t *m)
{
    int ready[2], parent = getpid();
    char c;
    if (pipe(ready))
        abort();
    int pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(0);
        pthread_mutex_lock(m);
        if (write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    if (read(ready[0], &c, 1) != 1)
        abort();
    return pid;
}

static void is_owned(void (*body)(void *), pthread_mutex_t *m, int owner, bool elsewhere)
{
    int tid = start(body, m);
    struct seen_thread t = seen(tid, SLEEP_MUTEX);
    is(t.sleep, SLEEP_MUTEX);
    is(t.syscall, SYS_futex);
    is(t.futex, (long long)(uintptr_t)m);
    is(t.mutex_owner, owner ? owner : tid);
    is(t.mutex_elsewhere, elsewhere);
}

/* Sleeps in a futex between these addresses, and is never said to be in a mutex. */
static void is_no_mutex(int tid, const void *from, size_t size)
{
    /* On its way there it may sleep in another one: a new thread waits for who made it. */
    struct seen_thread t = seen(tid, SLEEP_FUTEX);
    for (int i = 0; i < 5000 && t.futex - (uintptr_t)from >= size; i++) {
        breathe();
        t = seen(tid, SLEEP_FUTEX);
    }
    is(t.sleep, SLEEP_FUTEX);
    ok(t.futex - (uintptr_t)from < size);
    int mutexes = 0;
    for (int i = 0; i < 200; i++) {
        t = look(tid);
        mutexes += t.sleep == SLEEP_MUTEX || t.mutex_owner != 0;
    }
    is(mutexes, 0);
}

static void mutexes(void)
{
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                                PTHREAD_MUTEX_ADAPTIVE_NP};
    int me = my_tid();
    for (int i = 0; i < 4; i++) {
        pthread_mutex_t *m = mutex(types[i], PLAIN, NO_PI, OWN);
        pthread_mutex_lock(m);
        is_owned(locks, m, me, false);
        is_owned(locks_for_a_day, m, me, false);
        m = mutex(types[i], PLAIN, NO_PI, SHARED);
        pthread_mutex_lock(m);
        is_owned(locks, m, me, false);
        m = mutex(types[i], ROBUST, NO_PI, OWN);
        pthread_mutex_lock(m);
        is_owned(locks, m, me, false);
        m = mutex(types[i], ROBUST, NO_PI, SHARED);
        pthread_mutex_lock(m);
        is_owned(locks, m, me, false);
        is_owned(locks_for_a_day, m, me, false);
        for (int robust = PLAIN; robust <= ROBUST; robust++) {
            m = mutex(types[i], robust, PI, OWN);
            pthread_mutex_lock(m);
            is_owned(locks, m, me, false);
            is_owned(locks_for_a_day, m, me, false);
        }
    }
    static pthread_mutex_t still = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&still);
    is_owned(locks, &still, me, false);

    pthread_mutex_t *m = mutex(PTHREAD_MUTEX_RECURSIVE, PLAIN, NO_PI, OWN);
    pthread_mutex_lock(m);
    pthread_mutex_lock(m);
    is_owned(locks, m, me, false);

    m = mutex(PTHREAD_MUTEX_NORMAL, PLAIN, NO_PI, OWN);
    int holder = start(locks_and_stays, m);
    seen(holder, SLEEP_UNKNOWN); /* pause() */
    is_owned(locks, m, holder, false);
    is_owned(locks, m, holder, false);

    /* a thread that waits for itself */
    is_owned(locks_twice, mutex(PTHREAD_MUTEX_NORMAL, PLAIN, NO_PI, OWN), 0, false);
}

static void mutexes_of_others(void)
{
    pthread_mutex_t *m = mutex(PTHREAD_MUTEX_NORMAL, ROBUST, NO_PI, SHARED);
    is_owned(locks, m, child_that_locks(m), true);
    m = mutex(PTHREAD_MUTEX_RECURSIVE, ROBUST, NO_PI, SHARED);
    is_owned(locks, m, child_that_locks(m), true);
    m = mutex(PTHREAD_MUTEX_NORMAL, PLAIN, PI, SHARED);
    is_owned(locks, m, child_that_locks(m), true);
    /* not robust: who holds it may have ended, and the number be another's */
    m = mutex(PTHREAD_MUTEX_NORMAL, PLAIN, NO_PI, SHARED);
    child_that_locks(m);
    is_no_mutex(start(locks, m), m, sizeof(*m));

    m = mutex(PTHREAD_MUTEX_NORMAL, PLAIN, NO_PI, OWN);
    int tid = start(locks_and_ends, m);
    pthread_join(last_thread, NULL);
    is(seen(tid, SLEEP_GONE).sleep, SLEEP_GONE);
    is_no_mutex(start(locks, m), m, sizeof(*m));
}

/* A child's copy of a lock names a thread of its parent, who has nothing to do with the copy. */
static void mutexes_from_before_a_fork(void)
{
    static const int protocols[] = {NO_PI, PI};
    for (int i = 0; i < 2; i++) {
        pthread_mutexattr_t a;
        static pthread_mutex_t copied[2];
        pthread_mutexattr_init(&a);
        pthread_mutexattr_setrobust(&a, ROBUST);
        pthread_mutexattr_setprotocol(&a, protocols[i]);
        pthread_mutex_init(&copied[i], &a);
        pthread_mutex_lock(&copied[i]);
        fflush(stdout);
        int child = fork(), status = -1;
        if (!child) {
            struct seen_thread t = seen(start(locks, &copied[i]), i ? SLEEP_MUTEX : SLEEP_FUTEX);
            _exit(t.mutex_owner || t.mutex_elsewhere || t.sleep != (i ? SLEEP_MUTEX : SLEEP_FUTEX));
        }
        waitpid(child, &status, 0);
        is(status, 0);
    }
}

/* ------------------------------------------------------------------ what is no mutex */

/* A mutex held, and a condition variable, on either side: what lies behind a word that is slept on looks like
 * a mutex's inside. */
static struct {
    pthread_mutex_t before;
    pthread_cond_t cond;
    pthread_mutex_t held;
    pthread_mutex_t with;
} pair = {PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, PTHREAD_COND_INITIALIZER,
          PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, PTHREAD_MUTEX_INITIALIZER};

static void waits_for_condition(void *p)
{
    (void)p;
    pthread_mutex_lock(&pair.with);
    for (;;)
        pthread_cond_wait(&pair.cond, &pair.with);
}

static void waits_for_condition_for_a_day(void *p)
{
    struct timespec t;
    (void)p;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += 86400;
    pthread_mutex_lock(&pair.with);
    for (;;)
        pthread_cond_timedwait(&pair.cond, &pair.with, &t);
}

static void conditions(void)
{
    pthread_mutex_lock(&pair.before);
    pthread_mutex_lock(&pair.held);
    pthread_mutex_lock(&pair.held);
    int first = start(waits_for_condition, NULL), second = start(waits_for_condition_for_a_day, NULL);
    for (int i = 0; i < 5; i++) { /* each round leaves other numbers in the words */
        is_no_mutex(first, &pair.cond, sizeof(pair.cond));
        is_no_mutex(second, &pair.cond, sizeof(pair.cond));
        pthread_mutex_lock(&pair.with);
        if (i % 2)
            pthread_cond_signal(&pair.cond);
        else
            pthread_cond_broadcast(&pair.cond);
        pthread_mutex_unlock(&pair.with);
    }
    is_no_mutex(first, &pair.cond, sizeof(pair.cond));
    is_no_mutex(second, &pair.cond, sizeof(pair.cond));
    /* once called, they come for the mutex, and then it is one */
    pthread_mutex_lock(&pair.with);
    pthread_cond_broadcast(&pair.cond);
    is(seen(first, SLEEP_MUTEX).mutex_owner, my_tid());
    is(seen(second, SLEEP_MUTEX).mutex_owner, my_tid());
    pthread_mutex_unlock(&pair.with);
}

static void waits_for_semaphore(void *s)
{
    for (;;)
        sem_wait(s);
}

static void waits_for_thread(void *t)
{
    pthread_join(*(pthread_t *)t, NULL);
}

static void waits_at_barrier(void *b)
{
    for (;;)
        pthread_barrier_wait(b);
}

static void reads_lock(void *l)
{
    pthread_rwlock_rdlock(l);
    pause();
}

static void writes_lock(void *l)
{
    pthread_rwlock_wrlock(l);
    pause();
}

static void pauses(void *p)
{
    (void)p;
    for (;;)
        pause();
}

static void others(void)
{
    static sem_t sem[2];
    sem_init(&sem[0], 0, 0);
    sem_init(&sem[1], 1, 0);
    for (int i = 0; i < 2; i++)
        is_no_mutex(start(waits_for_semaphore, &sem[i]), &sem[i], sizeof(sem[i]));

    static pthread_t joined;
    start(pauses, NULL);
    joined = last_thread;
    int tid = start(waits_for_thread, &joined);
    is_no_mutex(tid, (void *)joined, 65536);

    for (int shared = OWN; shared <= SHARED; shared++) {
        static pthread_barrier_t barriers[2];
        pthread_barrierattr_t a;
        pthread_barrier_t *b = &barriers[shared == SHARED];
        pthread_barrierattr_init(&a);
        pthread_barrierattr_setpshared(&a, shared);
        memset(b, 0, sizeof(*b));
        pthread_barrier_init(b, &a, 2);
        tid = start(waits_at_barrier, b);
        for (int round = 0; round < 5; round++) {
            is_no_mutex(tid, b, sizeof(*b));
            pthread_barrier_wait(b);
        }
    }

    static const int kinds[] = {PTHREAD_RWLOCK_PREFER_READER_NP,
                                PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP};
    for (int i = 0; i < 2; i++) {
        static pthread_rwlock_t locked[4];
        pthread_rwlockattr_t a;
        pthread_rwlockattr_init(&a);
        pthread_rwlockattr_setkind_np(&a, kinds[i]);
        pthread_rwlock_t *read = &locked[i * 2], *written = &locked[i * 2 + 1];
        pthread_rwlock_init(read, &a);
        pthread_rwlock_init(written, &a);
        pthread_rwlock_rdlock(read);
        pthread_rwlock_wrlock(written);
        is_no_mutex(start(writes_lock, read), read, sizeof(*read));
        is_no_mutex(start(writes_lock, read), read, sizeof(*read));
        if (i == 1) /* else readers get in */
            is_no_mutex(start(reads_lock, read), read, sizeof(*read));
        is_no_mutex(start(reads_lock, written), written, sizeof(*written));
        is_no_mutex(start(reads_lock, written), written, sizeof(*written));
        is_no_mutex(start(writes_lock, written), written, sizeof(*written));
    }
}

/* ------------------------------------------------------------------ words that only look so */

struct image {
    _Alignas(64) _Atomic uint32_t w[12];
    int at; /* slept on */
    int operation;
    uint32_t expected;
    _Atomic bool leave;
};

static void sleeps_on(void *p)
{
    struct image *i = p;
    while (!i->leave)
        syscall(SYS_futex, &i->w[i->at], i->operation, i->expected, NULL, NULL, FUTEX_BITSET_MATCH_ANY);
}

static struct image *image(void)
{
    struct image *i = aligned_alloc(64, sizeof(*i));
    memset(i, 0, sizeof(*i));
    i->w[0] = 2;
    i->w[2] = (uint32_t)my_tid();
    i->w[3] = 1;
    i->operation = FUTEX_WAIT_PRIVATE;
    i->expected = 2;
    return i;
}

static void images(void)
{
    /* All that a mutex has: then it is one. */
    struct image *i = image();
    is(seen(start(sleeps_on, i), SLEEP_MUTEX).mutex_owner, my_tid());
    i = image();
    i->operation = FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME;
    is(seen(start(sleeps_on, i), SLEEP_MUTEX).mutex_owner, my_tid());

    static const struct {
        int word;
        uint32_t value;
    } wrong[] = {
        {1, 1},  {2, 0},   {2, 0x7ffffff0}, {2, 0xffffffff}, {3, 0}, {3, 100000}, {4, 1}, {4, 4}, {4, 16},
        {4, 64}, {4, 128}, {4, 1024},       {4, 0x7f120000}, {5, 1}, {6, 1},      {7, 1}, {8, 1}, {9, 1},
    };
    for (size_t n = 0; n < sizeof(wrong) / sizeof(wrong[0]); n++) {
        i = image();
        i->w[wrong[n].word] = wrong[n].value;
        is_no_mutex(start(sleeps_on, i), i, sizeof(*i));
    }
    i = image();
    i->operation = FUTEX_WAIT;
    is_no_mutex(start(sleeps_on, i), i, sizeof(*i));
    /* a counter that happens to be there */
    for (uint32_t value = 0; value < 4; value++) {
        i = image();
        i->w[0] = i->expected = value;
        if (value != 2)
            is_no_mutex(start(sleeps_on, i), i, sizeof(*i));
    }
    /* between the words */
    i = image();
    for (int w = 10; w >= 0; w--)
        i->w[w + 1] = i->w[w];
    i->at = 1;
    is_no_mutex(start(sleeps_on, i), i, sizeof(*i));
    /* at the end of what can be read */
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page + 4096, 4096, PROT_NONE);
    i = (struct image *)(void *)(page + 4096 - 8);
    *(uint32_t *)(void *)i = 2;
    struct image *far = image();
    far->at = (int)((uint32_t *)(void *)i - (uint32_t *)(void *)far->w);
    if ((uint32_t *)(void *)far->w + far->at == (uint32_t *)(void *)i)
        is_no_mutex(start(sleeps_on, far), i, 8);

    /* a barrier of glibc 2.17: how many are still to come stands where the owner would */
    libc_version = "2.17";
    peek_start();
    i = image();
    i->w[3] = i->w[2];
    is_no_mutex(start(sleeps_on, i), i, sizeof(*i));
    pthread_mutex_t *m = mutex(PTHREAD_MUTEX_NORMAL, PLAIN, NO_PI, OWN);
    pthread_mutex_lock(m);
    is_owned(locks, m, my_tid(), false);

    /* another libc: nothing is believed, but what the kernel itself defines */
    libc_version = "";
    peek_start();
    m = mutex(PTHREAD_MUTEX_NORMAL, PLAIN, NO_PI, OWN);
    pthread_mutex_lock(m);
    is_no_mutex(start(locks, m), m, sizeof(*m));
    m = mutex(PTHREAD_MUTEX_NORMAL, PLAIN, PI, OWN);
    pthread_mutex_lock(m);
    is_owned(locks, m, my_tid(), false);
    libc_version = "2.36";
    peek_start();
}

/* ------------------------------------------------------------------ other sleeps */

static int ends[2];

static void polls(void *p)
{
    struct pollfd f = {ends[0], POLLIN, 0};
    (void)p;
    poll(&f, 1, -1);
}

static void ppolls(void *p)
{
    struct pollfd f = {ends[0], POLLIN, 0};
    struct timespec t = {86400, 0};
    (void)p;
    ppoll(&f, 1, &t, NULL);
}

static void selects(void *p)
{
    fd_set set;
    (void)p;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    select(ends[0] + 1, &set, NULL, NULL, NULL);
}

static void waits_in_epoll(void *p)
{
    struct epoll_event e;
    (void)p;
    epoll_wait(epoll_create1(0), &e, 1, -1);
}

static void reads(void *p)
{
    char c;
    (void)p;
    if (read(ends[0], &c, 1) != 1)
        abort();
}

static void receives(void *p)
{
    int s[2];
    char c;
    (void)p;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) || recv(s[0], &c, 1, 0) != 1)
        abort();
}

static void accepts(void *p)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX}; /* autobind: a name of its own */
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)p;
    if (bind(s, (struct sockaddr *)&a, sizeof(sa_family_t)) || listen(s, 1) || accept(s, NULL, NULL) < 0)
        abort();
}

static void sleeps(void *p)
{
    (void)p;
    for (;;)
        sleep(86400);
}

static void sleeps_by_clock(void *p)
{
    struct timespec t = {86400, 0};
    (void)p;
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static void waits_for_child(void *pid)
{
    waitpid(*(int *)pid, NULL, 0);
}

static void spins(void *p)
{
    for (_Atomic int *stop = p; !*stop;)
        ;
}

static void returns(void *p)
{
    (void)p;
}

static void names_itself(void *p)
{
    prctl(PR_SET_NAME, "a b) R 1\n\001x");
    pauses(p);
}

static void sleeps_of_all_kinds(void)
{
    if (pipe(ends))
        abort();
    is(seen(start(polls, NULL), SLEEP_POLL).sleep, SLEEP_POLL);
    is(seen(start(ppolls, NULL), SLEEP_POLL).syscall, SYS_ppoll);
    is(seen(start(selects, NULL), SLEEP_POLL).sleep, SLEEP_POLL);
    is(seen(start(waits_in_epoll, NULL), SLEEP_POLL).sleep, SLEEP_POLL);
    is(seen(start(reads, NULL), SLEEP_READ).syscall, SYS_read);
    is(seen(start(receives, NULL), SLEEP_READ).sleep, SLEEP_READ);
    is(seen(start(accepts, NULL), SLEEP_READ).sleep, SLEEP_READ);
    is(seen(start(sleeps, NULL), SLEEP_TIME).sleep, SLEEP_TIME);
    is(seen(start(sleeps_by_clock, NULL), SLEEP_TIME).sleep, SLEEP_TIME);
    int child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
    }
    is(seen(start(waits_for_child, &child), SLEEP_WAIT).sleep, SLEEP_WAIT);
    static _Atomic int stop;
    struct seen_thread t = seen(start(spins, &stop), SLEEP_RUNNING);
    is(t.sleep, SLEEP_RUNNING);
    is(t.syscall, -1);
    is(t.futex, 0);
    stop = 1;
    int tid = start(returns, NULL);
    pthread_join(last_thread, NULL);
    t = seen(tid, SLEEP_GONE);
    is(t.sleep, SLEEP_GONE);
    is(t.syscall, -1);
    is_text(t.name, "");
    is(look(0x7ffffff0).sleep, SLEEP_GONE);
    is(look(0).sleep, SLEEP_GONE);
    is(look(-1).sleep, SLEEP_GONE);
    /* pause(): asleep, in none of the ways that have a word */
    t = seen(start(pauses, NULL), SLEEP_UNKNOWN);
    is(t.sleep, SLEEP_UNKNOWN);

    tid = start(names_itself, NULL);
    char name[16] = "";
    for (int64_t until = now_ms() + 10000; name[0] != 'a' && now_ms() < until;) {
        peek_name(tid, name);
        breathe();
    }
    ok(strncmp(name, "a b) R 1", 8) == 0);
    is(seen(tid, SLEEP_UNKNOWN).sleep, SLEEP_UNKNOWN); /* pause(), and not what the name says */
    errno = 77;
    look(tid);
    look(1);
    is(errno, 77);
}

/* A debugger stops one thread; a signal stops all, and whoever looks. */
static void stopped(void)
{
    int tid = start(polls, NULL), end[2], parent = getpid();
    seen(tid, SLEEP_POLL);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (pipe(end))
        abort();
    int debugger = fork();
    if (!debugger) {
        char c;
        int status;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || ptrace(PTRACE_SEIZE, tid, NULL, NULL) ||
            ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) || waitpid(tid, &status, __WALL) != tid)
            _exit(1);
        if (read(end[0], &c, 1) == 1)
            ptrace(PTRACE_DETACH, tid, NULL, NULL);
        _exit(0);
    }
    is(seen(tid, SLEEP_STOPPED).sleep, SLEEP_STOPPED);
    is(write(end[1], "x", 1), 1);
    int status = -1;
    waitpid(debugger, &status, 0);
    is(status, 0);
    is(seen(tid, SLEEP_POLL).sleep, SLEEP_POLL); /* by what the kernel sleeps in: the call says "restart" */
}

/* A process whose files in /proc are not its own to read: it sees less, and nothing wrong. */
static void cannot_look(void)
{
    fflush(stdout);
    int child = fork();
    if (!child) {
        if (setgid(65534) || setuid(65534) || prctl(PR_SET_DUMPABLE, 0))
            _exit(100);
        if (open("/proc/self/syscall", 0) >= 0)
            _exit(100);
        int tid = start(polls, NULL);
        struct seen_thread t = seen(tid, SLEEP_POLL);
        if (t.sleep != SLEEP_POLL && t.sleep != SLEEP_UNKNOWN)
            _exit(1);
        if (t.syscall != -1 || t.futex || t.mutex_owner)
            _exit(2);
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&m);
        t = seen(start(locks, &m), SLEEP_FUTEX);
        if ((t.sleep != SLEEP_FUTEX && t.sleep != SLEEP_UNKNOWN) || t.mutex_owner)
            _exit(3);
        if (stack_pointer(tid))
            _exit(4);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (getuid() == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 100)
        is(status, 0);
    else if (WIFEXITED(status) && WEXITSTATUS(status) == 100)
        printf("ok %d # skip only root can give up its rights\n", ++tap_points);
    else
        is(status, 0);
}

/* ------------------------------------------------------------------ memory and mappings */

static bool is_first(const struct mapping *m, void *with)
{
    (void)m;
    (void)with;
    return true;
}

static bool is_none(const struct mapping *m, void *count)
{
    ++*(int *)count;
    ok(m->from < m->to);
    return false;
}

static void maps(void)
{
    struct mapping m;
    uintptr_t from, to;
    int here, lines = 0;
    ok(maps_range((uintptr_t)&here, &from, &to));
    ok(from <= (uintptr_t)&here && (uintptr_t)&here < to);
    ok(maps_find((uintptr_t)&here, &m));
    ok(!m.code);
    ok(maps_find((uintptr_t)maps, &m));
    ok(m.code);
    is_text(m.base, "peek");
    ok(m.path[0] == '/');
    ok(m.inode != 0);
    ok(!m.deleted);
    ok(!maps_range(0, &from, &to));
    ok(!maps_range(8, &from, &to));
    ok(maps_search(is_first, NULL, &m));
    ok(!maps_search(is_none, &lines, &m));
    ok(lines > 5);

    /* a line longer than what is read at once, and one behind it */
    char path[4000] = "/tmp/peek.XXXXXX";
    if (!mkdtemp(path))
        abort();
    size_t root = strlen(path);
    for (int i = 0; i < 14; i++) {
        size_t n = strlen(path);
        memset(path + n, '/', 1);
        memset(path + n + 1, 'd', 200);
        path[n + 201] = 0;
        if (mkdir(path, 0700))
            abort();
    }
    size_t deep = strlen(path);
    memcpy(path + deep, "/file", sizeof "/file");
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 4096))
        abort();
    void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    ok(maps_find((uintptr_t)p, &m));
    ok(m.cut);
    is_text(m.base, "file");
    is(m.from, (long long)(uintptr_t)p);
    is(m.to, (long long)(uintptr_t)p + 4096);
    ok(maps_range((uintptr_t)&here, &from, &to));
    unlink(path);
    for (size_t n = deep; n > root; n -= 201) {
        path[n] = 0;
        rmdir(path);
    }
    path[root] = 0;
    ok(rmdir(path) == 0);

    uint32_t word = 7, got = 0;
    ok(peek_memory((uintptr_t)&word, &got, sizeof(got)));
    is(got, 7);
    ok(!peek_memory(0, &got, sizeof(got)));
    ok(!peek_memory(UINTPTR_MAX - 8, &got, sizeof(got)));
    uint64_t bits = 1;
    ok(peek_status(my_tid(), "SigBlk:", &bits));
    is(bits, 0);
    ok(!peek_status(my_tid(), "Nonsense:", &bits));
    ok(!peek_status(0x7ffffff0, "SigBlk:", &bits));
    ok(peek_lives(my_tid()));
    ok(!peek_lives(0x7ffffff0));
}

int main(void)
{
    /* before it knows how they look, it names no owner */
    static pthread_mutex_t early = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&early);
    int tid = start(locks, &early);
    is_no_mutex(tid, &early, sizeof(early));
    peek_start();
    is(seen(tid, SLEEP_MUTEX).mutex_owner, my_tid());

    mutexes();
    mutexes_of_others();
    mutexes_from_before_a_fork();
    conditions();
    others();
    images();
    sleeps_of_all_kinds();
    stopped();
    cannot_look();
    maps();
    return done();
}
