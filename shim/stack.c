/*
 * stack.c: stacks of threads, and names for their addresses. It must never allocate, enter the dynamic loader
 * once started, replace a signal handler of the application, or leave a signal behind that could end the
 * process.
 *
 * UNWINDING is libc's backtrace(), that is libgcc's unwinder. Its first use loads libgcc_s, so stack_start
 * has it used. Before glibc 2.35 each step walks dl_iterate_phdr, which waits for whoever is in dlopen: a
 * thread at a gate must not. There (no _dl_find_object in libc) stacks are followed by frame pointers, as far
 * as the code keeps them.
 *
 * ASKING. The signal is a real-time one whose disposition is the default, and which the thread does not
 * block; our handler is there only while we ask. If no answer comes the handler stays, since a late delivery
 * with the default disposition would end the process. Each question has a number, carried by the signal; a
 * handler that comes late finds that its number is not the one asked for any more and writes nothing.
 */
#include "stack.h"
#include "elf.h"
#include "lock.h"
#include "peek.h"
#include "real.h"
#include "say.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static _Atomic bool unwinder;

void stack_start(void)
{
    void *frames[4];
    /* Looked up, not linked: older libcs do not have it. Since glibc 2.35, without a lock
     * (elf/dl-find_object.c). */
    if (real_dlsym(RTLD_DEFAULT, "_dl_find_object"))
        atomic_store(&unwinder, backtrace(frames, 4) > 0);
}

/* The chain of frame pointers, as long as it climbs within a plausible stack. Reads through the kernel, since
 * code without frame pointers leaves anything in the register. */
__attribute__((noinline)) static int by_frame_pointer(uintptr_t *frames, int most)
{
    uintptr_t fp = (uintptr_t)__builtin_frame_address(0);
    uintptr_t from, to;
    int n = 0;
    if (!mapping_of(fp, &from, &to))
        return 0;
    while (n < most && fp >= from && fp % sizeof(void *) == 0 && to - fp >= 2 * sizeof(void *) && fp < to) {
        uintptr_t pair[2];
        memcpy(pair, (const void *)fp, sizeof(pair));
        if (!pair[1])
            break;
        frames[n++] = pair[1];
        if (pair[0] <= fp)
            break;
        fp = pair[0];
    }
    return n;
}

int stack_here(uintptr_t *frames, int most)
{
    void *at[64];
    int saved = errno;
    if (!atomic_load(&unwinder))
        return by_frame_pointer(frames, most);
    int n = backtrace(at, most + 1 < 64 ? most + 1 : 64);
    int k = 0;
    for (int i = 1; i < n && k < most; i++) /* without this frame */
        frames[k++] = (uintptr_t)at[i];
    errno = saved;
    return k;
}

/* ------------------------------------------------------------------ asking */

static struct {
    _Atomic uint32_t asked;    /* the number of the question, 0: none */
    _Atomic uint32_t answered; /* futex */
    int count;
    uintptr_t frames[SEEN_FRAMES];
} question;

static uintptr_t interrupted(const void *context)
{
    const ucontext_t *u = context;
#if defined(__x86_64__)
    return (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
#else
    return (uintptr_t)u->uc_mcontext.pc;
#endif
}

/* Drops the frames of the handler itself. */
static int from(uintptr_t pc, uintptr_t *frames, int n)
{
    for (int i = 0; i < n; i++) {
        if (frames[i] != pc)
            continue;
        memmove(frames, frames + i, (size_t)(n - i) * sizeof(*frames));
        return n - i;
    }
    return n;
}

static void answer(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    int saved = errno;
    uint32_t number = info && info->si_code == SI_QUEUE && info->si_pid == getpid()
                          ? (uint32_t)(uintptr_t)info->si_value.sival_ptr
                          : 0;
    /* Taken by whoever comes first, so that nobody writes after the question was given up. */
    if (number && atomic_compare_exchange_strong(&question.asked, &number, number | 0x80000000u)) {
        question.count =
            from(interrupted(context), question.frames, stack_here(question.frames, SEEN_FRAMES));
        atomic_store(&question.answered, number);
        futex_wake(&question.answered, 1);
    }
    errno = saved;
}

static uint64_t blocked_by(int tid)
{
    int saved = errno;
    struct text path = {0};
    char status[4096];
    text_add(&path, "/proc/self/task/");
    text_number(&path, tid);
    text_add(&path, "/status");
    int fd = open(text_end(&path), O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, status, sizeof(status) - 1) : 0;
    if (fd >= 0)
        close(fd);
    errno = saved;
    status[n > 0 ? n : 0] = 0;
    const char *mask = strstr(status, "SigBlk:");
    return mask ? strtoull(mask + 7, NULL, 16) : ~(uint64_t)0;
}

/* A signal that nobody uses, with our handler; 0: none. */
static int take_signal(int tid)
{
    uint64_t blocked = blocked_by(tid);
    for (int sig = SIGRTMAX - 2; sig > SIGRTMIN; sig--) {
        struct sigaction now,
            ours = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
        if (blocked >> (sig - 1) & 1 || sigaction(sig, NULL, &now))
            continue;
        bool ours_already = now.sa_flags & SA_SIGINFO && now.sa_sigaction == answer;
        if (!ours_already && (now.sa_flags & SA_SIGINFO || now.sa_handler != SIG_DFL))
            continue;
        sigfillset(&ours.sa_mask);
        if (sigaction(sig, &ours, NULL) == 0)
            return sig;
    }
    return 0;
}

static void give_back(int sig)
{
    struct sigaction now, none = {.sa_handler = SIG_DFL};
    /* The application may have taken it meanwhile. */
    if (sigaction(sig, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO && now.sa_sigaction == answer)
        sigaction(sig, &none, NULL);
}

int stack_of(int tid, uintptr_t *frames, int most, int64_t wait_ms)
{
    static uint32_t last;
    int saved = errno, n = -1;
    int sig = take_signal(tid);
    if (sig) {
        uint32_t number = last = last % 0x7ffffff0u + 1, asked = number;
        siginfo_t info;
        memset(&info, 0, sizeof(info));
        info.si_signo = sig;
        info.si_code = SI_QUEUE;
        info.si_pid = getpid();
        info.si_uid = getuid();
        info.si_value.sival_ptr = (void *)(uintptr_t)number;
        atomic_store(&question.asked, number);
        bool sent = syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, sig, &info) == 0;
        int64_t until = now_ns() + wait_ms * 1000000;
        uint32_t seen;
        while (sent && (seen = atomic_load(&question.answered)) != number && now_ns() < until)
            futex_wait(&question.answered, seen, until, 0);
        /* Given up, unless it is writing just now: then it is nearly there. */
        bool given_up = atomic_compare_exchange_strong(&question.asked, &asked, 0);
        for (int i = 0; sent && !given_up && atomic_load(&question.answered) != number && i < 1000; i++)
            futex_wait(&question.answered, atomic_load(&question.answered), now_ns() + 1000000, 0);
        if (sent && atomic_load(&question.answered) == number) {
            n = question.count < most ? question.count : most;
            memcpy(frames, question.frames, (size_t)n * sizeof(*frames));
        }
        if (!sent || n >= 0)
            give_back(sig);
    }
    errno = saved;
    return n;
}

/* ------------------------------------------------------------------ names */

struct mapping {
    uintptr_t from, to, base; /* base: where the same file is first mapped */
    uint64_t offset, inode;
    char path[256];
};

/* One line of /proc/self/maps: from-to perms offset dev inode path. */
static bool read_line(char *line, struct mapping *m)
{
    char *p;
    m->from = strtoull(line, &p, 16);
    if (*p++ != '-')
        return false;
    m->to = strtoull(p, &p, 16);
    while (*p == ' ')
        p++;
    while (*p && *p != ' ')
        p++; /* permissions */
    m->offset = strtoull(p, &p, 16);
    while (*p == ' ')
        p++;
    while (*p && *p != ' ')
        p++; /* device */
    m->inode = strtoull(p, &p, 10);
    while (*p == ' ')
        p++;
    m->path[0] = 0;
    strncat(m->path, p, sizeof(m->path) - 1);
    return true;
}

static bool find_mapping(uintptr_t address, struct mapping *found)
{
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    char text[4096];
    size_t have = 0;
    ssize_t n;
    bool hit = false;
    struct mapping m = {0};
    uintptr_t base = 0;
    uint64_t base_inode = 0;
    while (!hit && (n = read(fd, text + have, sizeof(text) - 1 - have)) > 0) {
        have += (size_t)n;
        text[have] = 0;
        char *line = text, *end;
        while (!hit && (end = memchr(line, '\n', (size_t)(text + have - line)))) {
            *end = 0;
            if (read_line(line, &m)) {
                if (m.inode != base_inode) {
                    base_inode = m.inode;
                    base = m.from - m.offset;
                }
                m.base = base;
                hit = address >= m.from && address < m.to;
            }
            line = end + 1;
        }
        have = (size_t)(text + have - line);
        if (have == sizeof(text) - 1)
            have = 0; /* no such line exists */
        memmove(text, line, have);
    }
    close(fd);
    if (hit)
        *found = m;
    return hit;
}

/* Only of the very file that is mapped: a newer one of the same name would give wrong names. */
static void find_function(const struct mapping *m, uintptr_t address, struct place *p)
{
    int fd = open(m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == m->inode && st.st_size > 0) {
        void *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file != MAP_FAILED) {
            elf_function_at(file, (size_t)st.st_size, address - m->from + m->offset, p->function,
                            sizeof(p->function));
            munmap(file, (size_t)st.st_size);
        }
    }
    close(fd);
}

bool place_name(uintptr_t address, struct place *p)
{
    struct mapping m;
    int saved = errno;
    memset(p, 0, sizeof(*p));
    p->address = address;
    /* A return address may be the first one behind its function: look at the call. */
    bool found = address && find_mapping(address - 1, &m) && m.path[0] == '/';
    if (found) {
        const char *name = strrchr(m.path, '/') + 1;
        strncat(p->object, name, sizeof(p->object) - 1);
        p->offset = address - m.base;
        find_function(&m, address - 1, p);
    }
    errno = saved;
    return found;
}
