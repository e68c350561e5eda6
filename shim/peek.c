/*
 * peek.c: see peek.h. Every file of /proc may be missing or closed to us (hidepid, seccomp, a process that is
 * not dumpable); then the answer is "not seen". Must not name an owner that is not one: the watchdog makes
 * deadlocks of them.
 */
#include "peek.h"
#include "maps.h"
#include "raw.h"
#include "say.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

/* ------------------------------------------------------------------ files of /proc */

/* The start of /proc/self/task/TID/name, terminated. Returns its length, or -1. */
static long task_file(int tid, const char *name, char *to, size_t size)
{
    struct text path = {0};
    text_add(&path, "/proc/self/task/");
    text_number(&path, tid);
    text_add(&path, "/");
    text_add(&path, name);
    int fd = raw_open(text_end(&path));
    if (fd < 0)
        return -1;
    long have = 0, n;
    while ((size_t)have < size - 1 && (n = raw_read(fd, to + have, size - 1 - (size_t)have)) > 0)
        have += n;
    raw_close(fd);
    to[have] = 0;
    return have > 0 ? have : -1;
}

static uint64_t number(const char **p, unsigned base)
{
    uint64_t n = 0;
    for (; text_digit(**p) < base; (*p)++)
        n = n * base + text_digit(**p);
    return n;
}

bool peek_lives(int tid)
{
    return tid > 0 && raw(SYS_tgkill, raw_pid(), tid, 0, 0) != -ESRCH;
}

/* The kernel's name. What runtimes call their threads is only asked of the kernel: Ruby tells it always,
 * Python since 3.14, Go has none; their own records would have to be found per version and read while they
 * move. */
void peek_name(int tid, char name[16])
{
    char line[32];
    if (task_file(tid, "comm", line, sizeof(line)) < 0)
        line[0] = 0;
    line[15] = 0;
    line[strcspn(line, "\n")] = 0;
    memset(name, 0, 16);
    for (int i = 0; i < 15 && line[i]; i++)
        name[i] = line[i];
}

bool peek_status(int tid, const char *label, uint64_t *n)
{
    char text[4096];
    if (task_file(tid, "status", text, sizeof(text)) < 0)
        return false;
    size_t length = strlen(label);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, label, length) != 0)
            continue;
        line += length;
        line += strspn(line, " \t");
        const char *from = line;
        *n = number(&line, 16);
        return line > from && *line == '\n';
    }
    return false;
}

/* proc(5), /proc/pid/task/tid/syscall: "nr args… sp pc", "-1 sp pc" (asleep outside of a system call), or
 * "running". */
struct in_kernel {
    bool seen, asleep;
    long number; /* -1: none */
    uintptr_t argument[6], sp, pc;
};

static struct in_kernel in_kernel(int tid)
{
    struct in_kernel k;
    char line[256];
    memset(&k, 0, sizeof(k)); /* the gaps too: they are compared as bytes */
    k.number = -1;
    if (task_file(tid, "syscall", line, sizeof(line)) < 0)
        return k;
    k.seen = true;
    uintptr_t field[9];
    int fields = 0;
    const char *p = line;
    if (*p == '-')
        p = strchr(p, ' ');
    else if (*p >= '0' && *p <= '9')
        k.number = (long)number(&p, 10);
    while (p && strncmp(p, " 0x", 3) == 0 && fields < 9) {
        p += 3;
        field[fields++] = number(&p, 16);
    }
    k.asleep = (fields == 8 && k.number >= 0) || (fields == 2 && k.number == -1);
    if (!k.asleep) {
        k.number = -1;
        return k;
    }
    if (fields == 8)
        memcpy(k.argument, field, sizeof(k.argument));
    k.sp = field[fields - 2];
    k.pc = field[fields - 1];
    return k;
}

uintptr_t stack_pointer(int tid)
{
    return in_kernel(tid).sp;
}

/* The state letter of "stat", 0 if it cannot be read, and how many threads the process has. */
static char state_of(int tid, long *threads)
{
    char line[1024];
    *threads = 0;
    if (task_file(tid, "stat", line, sizeof(line)) < 0)
        return 0;
    const char *p = strrchr(line, ')'); /* the name before it may contain anything */
    if (!p || p[1] != ' ' || !p[2])
        return 0;
    char state = p[2];
    for (int field = 2; field < 20 && p; field++)
        p = strchr(p + 1, ' ');
    if (p) {
        p++;
        *threads = (long)number(&p, 10);
    }
    return state;
}

/* ------------------------------------------------------------------ memory */

bool peek_memory(uintptr_t from, void *to, size_t size)
{
    struct iovec here = {to, size}, there = {(void *)from, size};
    int saved = errno;
    long n = syscall(SYS_process_vm_readv, raw_pid(), &here, 1L, &there, 1L, 0L);
    errno = saved;
    if (n == (long)size)
        return true;
    if (n >= 0 || (intptr_t)from < 0)
        return false;
    /* Some seccomp filters forbid the call, and with it nothing but the call. */
    int fd = raw_open("/proc/self/mem");
    if (fd < 0)
        return false;
    n = raw_read_at(fd, to, size, from);
    raw_close(fd);
    return n == (long)size;
}

/* ------------------------------------------------------------------ pthread mutexes
 * What glibc keeps in one, 2.17 to 2.41, on 64-bit machines (sysdeps/nptl/bits/struct_mutex.h):
 *   0 lock: 0, 1, 2 = somebody sleeps; robust and priority-inheriting ones: the owner's tid and flags
 *   4 count, of a recursive one   8 owner   12 users   16 kind   20 spins, elision   24 list, of a robust one
 */
enum { LOCK, COUNT, OWNER, USERS, KIND, SPINS, LIST, WORDS = 10 };

#define KIND_TYPE    0x003 /* normal, recursive, errorcheck, adaptive */
#define KIND_ROBUST  0x010
#define KIND_SHARED  0x080 /* between processes; robust ones always */
#define KIND_ELISION 0x100 /* then spins counts attempts */
#define KIND_IGNORED 0x300 /* for and against elision */
#define INCONSISTENT 0x7fffffff

#ifndef FUTEX_LOCK_PI2
#    define FUTEX_LOCK_PI2 13
#endif

static _Atomic bool layout_known;
static bool old_locks; /* glibc before 2.25: barriers and rwlocks that count where mutexes have owners */

/* musl has none */
extern const char *gnu_get_libc_version(void) __attribute__((weak));

static bool looks_owned(pthread_mutex_t *m, uint32_t kind, uint32_t lock, uint32_t count)
{
    uint32_t w[WORDS], me = (uint32_t)raw_tid();
    bool good = false;
    if (pthread_mutex_lock(m))
        return false;
    if (peek_memory((uintptr_t)m, w, sizeof(w)))
        good = w[LOCK] == lock && w[COUNT] == count && w[OWNER] == me && w[USERS] == 1 &&
               (w[KIND] & ~(uint32_t)(KIND_IGNORED | KIND_SHARED)) == kind;
    pthread_mutex_unlock(m);
    return good && peek_memory((uintptr_t)m, w, sizeof(w)) && w[LOCK] == 0 && w[OWNER] == 0 && w[USERS] == 0;
}

static bool looks_as_believed(int type, bool robust)
{
    pthread_mutexattr_t a;
    pthread_mutex_t m;
    uint32_t kind = (uint32_t)type | (robust ? KIND_ROBUST : 0);
    if (pthread_mutexattr_init(&a))
        return false;
    bool good = pthread_mutexattr_settype(&a, type) == 0 &&
                (!robust || pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST) == 0) &&
                pthread_mutex_init(&m, &a) == 0;
    pthread_mutexattr_destroy(&a);
    if (!good)
        return false;
    good = looks_owned(&m, kind, robust ? (uint32_t)raw_tid() : 1,
                       robust || type == PTHREAD_MUTEX_RECURSIVE ? 1 : 0);
    pthread_mutex_destroy(&m);
    return good;
}

void peek_start(void)
{
    int saved = errno;
    const char *version = gnu_get_libc_version ? gnu_get_libc_version() : "musl";
    bool glibc = strncmp(version, "2.", 2) == 0;
    const char *minor = glibc ? &version[2] : "0";
    bool good =
        glibc && sizeof(pthread_mutex_t) >= WORDS * sizeof(uint32_t) &&
        looks_as_believed(PTHREAD_MUTEX_NORMAL, false) && looks_as_believed(PTHREAD_MUTEX_RECURSIVE, false) &&
        looks_as_believed(PTHREAD_MUTEX_ERRORCHECK, false) && looks_as_believed(PTHREAD_MUTEX_NORMAL, true);
    old_locks = good && number(&minor, 10) < 25;
    atomic_store(&layout_known, good);
    errno = saved;
}

/* Is this a thread of another process, which shares the memory there with us? (After a fork the child's copy
 * of a lock may name a thread of the parent, who will never unlock the copy.) */
static bool lives_elsewhere(int tid, uintptr_t futex)
{
    struct mapping m;
    long result = raw(SYS_tkill, tid, 0, 0, 0);
    return (result == 0 || result == -EPERM) && maps_find(futex, &m) && m.shared;
}

/* Whether a futex is a mutex cannot be seen from the system call: condition variables, semaphores, joins,
 * barriers and the locks of runtimes sleep in the same one, some with the same 2. So everything that a mutex
 * has must be there. What most others fail at: a private sleep on a word of 8-byte alignment (a condition
 * variable's 2.41 second half, one half of a rwlock, once), a living thread's tid where the owner stands, a
 * kind in range, and behind it nothing but zeros. */
static bool ordinary(const struct in_kernel *k, const uint32_t w[WORDS], long threads)
{
    uint32_t kind = w[KIND] & ~(uint32_t)(KIND_IGNORED | KIND_SHARED);
    bool private = k->argument[1] & FUTEX_PRIVATE_FLAG, shared = w[KIND] & KIND_SHARED;
    if ((uint32_t)k->argument[2] != 2 || (w[LOCK] != 1 && w[LOCK] != 2))
        return false;
    if (kind > KIND_TYPE || private == shared || !w[USERS])
        return false;
    if (kind == PTHREAD_MUTEX_RECURSIVE_NP ? !w[COUNT] : w[COUNT])
        return false;
    /* The owner, and who waits for a condition with it. */
    if (!shared && threads > 0 && w[USERS] > (uint32_t)threads + 1)
        return false;
    if (w[SPINS] && kind != PTHREAD_MUTEX_ADAPTIVE_NP && !(w[KIND] & KIND_ELISION))
        return false;
    if (w[LIST] || w[LIST + 1] || w[LIST + 2] || w[LIST + 3])
        return false;
    /* Where a mutex has its owner, old barriers had how many are still to come, and behind it, of how many;
     * old rwlocks, how many wait. */
    if (old_locks && (w[OWNER] <= w[USERS] || threads <= 0 || w[OWNER] <= (uint32_t)threads))
        return false;
    return true;
}

static bool robust(const struct in_kernel *k, const uint32_t w[WORDS])
{
    uint32_t kind = w[KIND] & ~(uint32_t)(KIND_IGNORED | KIND_SHARED), expected = (uint32_t)k->argument[2];
    if (k->argument[1] & FUTEX_PRIVATE_FLAG || (kind & ~(uint32_t)KIND_TYPE) != KIND_ROBUST)
        return false;
    if (!(expected & FUTEX_WAITERS) || !(expected & FUTEX_TID_MASK) || !(w[LOCK] & FUTEX_WAITERS) ||
        w[LOCK] & FUTEX_OWNER_DIED)
        return false;
    return (w[OWNER] == (w[LOCK] & FUTEX_TID_MASK) || w[OWNER] == INCONSISTENT) && (w[LIST] || w[LIST + 1]);
}

static void look_for_owner(const struct in_kernel *k, long threads, struct seen_thread *t)
{
    uint32_t w[WORDS];
    int command = (int)k->argument[1] & FUTEX_CMD_MASK;
    bool across = false;
    uint32_t owner;
    t->futex = k->argument[0];
    switch (command) {
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
        /* The kernel's own contract: the word holds the owner's tid, whoever made the lock. */
        t->sleep = SLEEP_MUTEX;
        if (!peek_memory(t->futex, w, sizeof(w[0])) || w[LOCK] & FUTEX_OWNER_DIED)
            return;
        owner = w[LOCK] & FUTEX_TID_MASK;
        across = !(k->argument[1] & FUTEX_PRIVATE_FLAG);
        break;
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
        if (!atomic_load(&layout_known) || t->futex % sizeof(void *) || !peek_memory(t->futex, w, sizeof(w)))
            return;
        owner = w[OWNER];
        if (robust(k, w)) {
            owner = w[LOCK] & FUTEX_TID_MASK;
            across = w[KIND] & KIND_SHARED;
        } else if (!ordinary(k, w, threads)) {
            return;
        }
        break;
    default: return;
    }
    bool ours = peek_lives((int)owner);
    if (!ours && !(across && lives_elsewhere((int)owner, t->futex)))
        return;
    t->sleep = SLEEP_MUTEX;
    t->mutex_owner = (int)owner;
    t->mutex_elsewhere = !ours;
}

/* ------------------------------------------------------------------ sleeps */

#ifndef SYS_futex_waitv
#    define SYS_futex_waitv 449
#endif
#ifndef SYS_epoll_pwait2
#    define SYS_epoll_pwait2 441
#endif

static enum sleep sleep_of_call(long number)
{
    switch (number) {
    case SYS_futex:
    case SYS_futex_waitv: return SLEEP_FUTEX;
#ifdef SYS_poll
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
#endif
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2: return SLEEP_POLL;
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_preadv:
    case SYS_preadv2:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_accept:
    case SYS_accept4: return SLEEP_READ;
    case SYS_nanosleep:
    case SYS_clock_nanosleep: return SLEEP_TIME;
    case SYS_wait4:
    case SYS_waitid: return SLEEP_WAIT;
    default: return SLEEP_UNKNOWN;
    }
}

/* By the kernel's function that it sleeps in: where the system call is not shown, or is only "go on with what
 * the stop interrupted". */
static enum sleep sleep_of_wchan(int tid)
{
    static const struct {
        const char *start;
        enum sleep sleep;
    } known[] = {
        {"futex_", SLEEP_FUTEX},           {"__futex_", SLEEP_FUTEX},      {"do_futex", SLEEP_FUTEX},
        {"poll_schedule", SLEEP_POLL},     {"do_poll", SLEEP_POLL},        {"do_sys_poll", SLEEP_POLL},
        {"do_select", SLEEP_POLL},         {"ep_poll", SLEEP_POLL},        {"do_epoll_wait", SLEEP_POLL},
        {"hrtimer_nanosleep", SLEEP_TIME}, {"do_nanosleep", SLEEP_TIME},   {"do_wait", SLEEP_WAIT},
        {"pipe_read", SLEEP_READ},         {"anon_pipe_read", SLEEP_READ}, {"unix_stream_read", SLEEP_READ},
        {"sk_wait_data", SLEEP_READ},      {"__skb_wait", SLEEP_READ},     {"inet_csk_accept", SLEEP_READ},
    };
    char text[64];
    if (task_file(tid, "wchan", text, sizeof(text)) > 0)
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            if (strncmp(text, known[i].start, strlen(known[i].start)) == 0)
                return known[i].sleep;
    return SLEEP_UNKNOWN;
}

static bool same(const struct in_kernel *a, const struct in_kernel *b)
{
    bool all = a->seen == b->seen && a->asleep == b->asleep && a->number == b->number && a->sp == b->sp &&
               a->pc == b->pc;
    for (int i = 0; all && i < 6; i++)
        all = a->argument[i] == b->argument[i];
    return all;
}

void peek_thread(int tid, struct seen_thread *t)
{
    long threads;
    peek_name(tid, t->name);
    t->sleep = SLEEP_UNKNOWN;
    t->syscall = -1;
    t->futex = 0;
    t->mutex_owner = 0;
    t->mutex_elsewhere = t->timed = false;
    /* The files are read one after the other; what is said must be true of one moment. */
    struct in_kernel k = in_kernel(tid), after;
    char state = state_of(tid, &threads);
    after = in_kernel(tid);
    bool still = same(&k, &after);
    if (state == 'Z' || state == 'X' || state == 'x' || (!state && !peek_lives(tid))) {
        t->sleep = SLEEP_GONE;
        return;
    }
    if (k.asleep && still)
        t->syscall = k.number;
    if (state == 'T' || state == 't') {
        t->sleep = SLEEP_STOPPED;
        return;
    }
    if (state == 'R' || (k.seen && !(k.asleep && still))) {
        t->sleep = SLEEP_RUNNING;
        t->syscall = -1;
        return;
    }
    if (state == 'D') {
        t->sleep = SLEEP_DISK;
        return;
    }
    t->sleep = k.asleep ? sleep_of_call(k.number) : SLEEP_UNKNOWN;
    if (k.number == SYS_futex) {
        t->timed = k.argument[3] != 0;
        look_for_owner(&k, threads, t);
        after = in_kernel(tid);
        if (!same(&k, &after)) {
            t->sleep = SLEEP_RUNNING;
            t->syscall = -1;
            t->futex = 0;
            t->mutex_owner = 0;
            t->mutex_elsewhere = false;
        }
    } else if (!k.seen || k.number == SYS_restart_syscall) {
        t->sleep = sleep_of_wchan(tid);
    }
}
