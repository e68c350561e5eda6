/*
 * peek.c: what a foreign thread is doing. Every file of /proc may be missing; then the answer is "not seen".
 */
#include "peek.h"
#include "real.h"
#include "say.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static uintptr_t hex(const char **p)
{
    uintptr_t n = 0;
    for (;; (*p)++) {
        char d = **p;
        if (d >= '0' && d <= '9')
            n = n * 16 + (uintptr_t)(d - '0');
        else if (d >= 'a' && d <= 'f')
            n = n * 16 + (uintptr_t)(d - 'a' + 10);
        else
            return n;
    }
}

bool mapping_of(uintptr_t address, uintptr_t *from, uintptr_t *to)
{
    int saved = errno;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    bool found = false, skip = false;
    char text[1024];
    size_t have = 0;
    ssize_t n;
    while (fd >= 0 && !found && (n = read(fd, text + have, sizeof(text) - 1 - have)) > 0) {
        have += (size_t)n;
        text[have] = 0;
        const char *line = text, *end;
        /* Only the two addresses at the start of a line count; a long path is skipped over. */
        while (!found && (end = memchr(line, '\n', (size_t)(text + have - line)))) {
            const char *p = line;
            *from = hex(&p);
            if (!skip && *p++ == '-') {
                *to = hex(&p);
                found = address >= *from && address < *to;
            }
            skip = false;
            line = end + 1;
        }
        have = (size_t)(text + have - line);
        if (have == sizeof(text) - 1) {
            have = 0;
            skip = true;
        }
        memmove(text, line, have);
    }
    if (fd >= 0)
        close(fd);
    errno = saved;
    return found;
}

/* Reads a small file of /proc/self/task/TID; text is terminated. Returns its length, 0 if it cannot be read.
 */
static size_t task_file(int tid, const char *name, char *text, size_t size)
{
    int saved = errno;
    struct text path = {0};
    text_add(&path, "/proc/self/task/");
    text_number(&path, tid);
    text_add(&path, name);
    int fd = open(text_end(&path), O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    errno = saved;
    return n > 0 ? (size_t)n : 0;
}

/* proc(5), /proc/pid/task/tid/syscall: "nr args... sp pc", "-1 sp pc" or "running". Returns how many numbers.
 */
static int numbers_of(int tid, uint64_t *number, int most)
{
    char line[256];
    int n = 0;
    char *p = line, *end;
    if (!task_file(tid, "/syscall", line, sizeof(line)))
        return 0;
    for (; n < most; n++, p = end) {
        number[n] = n ? strtoull(p, &end, 16) : (uint64_t)strtoll(p, &end, 10);
        if (end == p)
            break;
    }
    return n;
}

uintptr_t stack_pointer(int tid)
{
    uint64_t number[9];
    int n = numbers_of(tid, number, 9);
    return n == 9 ? number[7] : n == 3 ? number[1] : 0;
}

/* Python (before 3.14) and Ruby keep the names that a program gives its threads to themselves, in objects
 * that only the interpreter can walk; the kernel's name is what can be had without it. */
void peek_name(int tid, char name[16])
{
    memset(name, 0, 16);
    char text[32];
    size_t n = task_file(tid, "/comm", text, sizeof(text));
    if (n && text[n - 1] == '\n')
        text[--n] = 0;
    memcpy(name, text, n < 15 ? n : 15);
}

/* ------------------------------------------------------------------ pthread mutexes */

/* glibc sysdeps/nptl/bits/struct_mutex.h, the same in 2.17 to 2.41 on 64 bit machines. */
struct mutex_words {
    uint32_t lock, count;
    int32_t owner;
    uint32_t users;
    int32_t kind;
};
_Static_assert(sizeof(pthread_mutex_t) >= sizeof(struct mutex_words), "the layout read here");

#define KIND_ROBUST 16
#define KIND_PI     32
#define KIND_SHARED 128
#define KIND_KNOWN  (3 | KIND_ROBUST | KIND_PI | 64 | KIND_SHARED | 256 | 512)

static bool layout_known;
static uintptr_t python_runtime; /* 0: no Python here */

static bool looks_right(int type)
{
    pthread_mutexattr_t attr;
    pthread_mutex_t m;
    struct mutex_words w;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, type);
    pthread_mutex_init(&m, &attr);
    pthread_mutex_lock(&m);
    memcpy(&w, &m, sizeof(w));
    pthread_mutex_unlock(&m);
    pthread_mutex_destroy(&m);
    pthread_mutexattr_destroy(&attr);
    return w.lock == 1 && w.owner == (int)syscall(SYS_gettid) && w.users == 1 && (w.kind & 3) == type;
}

void peek_start(void)
{
    python_runtime = (uintptr_t)real_dlsym(RTLD_DEFAULT, "_PyRuntime");
    layout_known = looks_right(PTHREAD_MUTEX_NORMAL) && looks_right(PTHREAD_MUTEX_RECURSIVE) &&
                   looks_right(PTHREAD_MUTEX_ERRORCHECK);
}

static bool lives_here(int tid)
{
    int saved = errno;
    bool lives = tid > 0 && syscall(SYS_tgkill, getpid(), tid, 0) == 0;
    errno = saved;
    return lives;
}

/* Never by pointer: what the thread sleeps on may be unmapped meanwhile. */
static bool read_all(uintptr_t address, void *to, size_t size)
{
    int saved = errno;
    struct iovec local = {to, size}, remote = {(void *)address, size};
    bool all = process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
    errno = saved;
    return all;
}

/* A futex is taken for a mutex only if everything about it says so: what the kernel was told to expect, the
 * lock word, the number of users, the kind, and an owner that exists. Condition variables, semaphores, joins,
 * barriers, rwlocks and the locks of Go and of this library all fail one of these. */
static void look_at_futex(struct seen_thread *t, uintptr_t address, unsigned op, uint32_t expected)
{
    struct mutex_words w;
    t->sleep = SLEEP_FUTEX;
    t->futex = address;
    op &= FUTEX_CMD_MASK;
    bool wait = op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET;
    bool pi = op == FUTEX_LOCK_PI || op == 13; /* FUTEX_LOCK_PI2, Linux 5.14 */
    if (!layout_known || (!wait && !pi) || address % 4 || !read_all(address, &w, sizeof(w)))
        return;
    if (w.kind & ~KIND_KNOWN || w.users == 0 || w.users > 1000000)
        return;
    int owner = w.owner;
    if (pi) {
        owner = (int)(w.lock & FUTEX_TID_MASK);
        if (!(w.kind & KIND_PI))
            return;
    } else if (w.kind & KIND_ROBUST) {
        owner = (int)(w.lock & FUTEX_TID_MASK);
        if (!(expected & FUTEX_WAITERS) || expected != w.lock || owner != w.owner)
            return;
    } else if (expected != 2 || w.lock != 2 || w.kind & KIND_PI) {
        return;
    }
    bool here = lives_here(owner);
    int saved = errno;
    bool elsewhere = !here && w.kind & KIND_SHARED && owner > 0 && (kill(owner, 0) == 0 || errno == EPERM);
    errno = saved;
    if (!here && !elsewhere)
        return;
    t->sleep = SLEEP_MUTEX;
    t->mutex_owner = owner;
    t->mutex_elsewhere = elsewhere;
}

/* ------------------------------------------------------------------ Python's interpreter lock */

/* CPython Include/internal/pycore_gil.h, 3.7 to 3.13; the condition variable follows. */
struct gil_words {
    uint64_t interval, last_holder;
    uint32_t locked, padding;
    uint64_t switches;
};
#define RUNTIME_SIZE (1u << 20)

/* The thread of a PyThreadState: its pthread_t and its tid stand side by side (3.11 and later). */
static int holder_of(uint64_t state)
{
    uint64_t word[40];
    if (state % 8 || !read_all((uintptr_t)state, word, sizeof(word)))
        return 0;
    for (int i = 0; i + 1 < 40; i++)
        if (word[i] > 65536 && word[i] % 64 == 0 && word[i + 1] < (1u << 22) && lives_here((int)word[i + 1]))
            return (int)word[i + 1];
    return 0;
}

/* A thread that waits for the lock sleeps, 5 ms at a time, in a condition variable inside _PyRuntime (Python/
 * ceval_gil.h take_gil). The lock itself says who took it last, and whether it is taken. */
static void look_at_gil(struct seen_thread *t, uintptr_t address)
{
    /* Where the futex lies in a pthread_cond_t: glibc 2.25 to 2.40, and 2.41. */
    static const uintptr_t within[] = {40, 44, 32, 36};
    struct gil_words g;
    if (!python_runtime || address - python_runtime >= RUNTIME_SIZE)
        return;
    for (int i = 0; i < 4; i++) {
        uintptr_t gil = address - within[i] - sizeof(g);
        if (gil % 8 || !read_all(gil, &g, sizeof(g)) || g.locked != 1 || !g.interval ||
            g.interval > 1000000000000)
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

/* ------------------------------------------------------------------ what it does */

static enum sleep sleep_in(long call)
{
    switch (call) {
#ifdef SYS_poll
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
#endif
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait: return SLEEP_POLL;
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_accept:
    case SYS_accept4: return SLEEP_READ;
    case SYS_nanosleep:
    case SYS_clock_nanosleep: return SLEEP_TIME;
    case SYS_wait4:
    case SYS_waitid: return SLEEP_WAIT;
    default: return SLEEP_UNKNOWN;
    }
}

void peek_thread(int tid, struct seen_thread *t)
{
    char stat[512];
    t->tid = tid;
    t->sleep = SLEEP_UNKNOWN;
    t->syscall = -1;
    t->futex = 0;
    t->mutex_owner = 0;
    t->mutex_elsewhere = t->gil = false;
    peek_name(tid, t->name);
    if (!task_file(tid, "/stat", stat, sizeof(stat))) {
        if (!lives_here(tid))
            t->sleep = SLEEP_GONE;
        return;
    }
    const char *p = strrchr(stat, ')'); /* the name may hold anything */
    char state = p && p[1] == ' ' ? p[2] : '?';
    switch (state) {
    case 'R': t->sleep = SLEEP_RUNNING; return;
    case 'D': t->sleep = SLEEP_DISK; return;
    case 'T':
    case 't': t->sleep = SLEEP_STOPPED; return;
    case 'Z':
    case 'X': t->sleep = SLEEP_GONE; return;
    default: break;
    }
    uint64_t number[9];
    if (numbers_of(tid, number, 9) != 9)
        return;
    t->syscall = (long)number[0];
    if (t->syscall != SYS_futex) {
        t->sleep = (uint8_t)sleep_in(t->syscall);
        return;
    }
    look_at_futex(t, (uintptr_t)number[1], (unsigned)number[2], (uint32_t)number[3]);
    if (t->sleep == SLEEP_FUTEX)
        look_at_gil(t, t->futex);
}
