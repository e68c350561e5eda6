/*
 * stack.c: see stack.h. The handler runs in a thread that may hold any lock: system calls, its own memory and
 * the unwinder, nothing else.
 *
 * How frames are found. glibc's backtrace() reads the unwind tables, and is what gets through code without
 * frame pointers, which most libraries are. It is used only where it cannot wait for the loader: with
 * _dl_find_object (glibc 2.35 and a libgcc that knows it, from gcc 12 on) it takes no lock; before that it
 * goes through dl_iterate_phdr, whose lock another thread holds for as long as its callback runs, and a
 * thread that came to wait at the gate would wait there instead, without limit. Otherwise frame pointers are
 * followed, each step read through the kernel so that nonsense ends the walk and not the process: short
 * stacks on x86-64, where few libraries keep them, whole ones on aarch64, where most do.
 *
 * One lock remains: libgcc before 13 has one around code registered at run time (__register_frame, by some
 * just-in-time compilers), held for moments, and the handler would wait for ever if its thread held it. So
 * a thread is asked only when it sleeps in a loop anyway, or the user wants it.
 */
#include "stack.h"
#include "lock.h"
#include "maps.h"
#include "peek.h"
#include "raw.h"
#include "symbols.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/ucontext.h>

/* execinfo.h; musl has none */
extern int backtrace(void **frames, int most) __attribute__((weak));

#define FRAMES    64
#define STEP_MOST (1u << 20) /* how far apart two frames of one stack may be */

static _Atomic bool unwinder; /* backtrace() waits for nobody */

/* ------------------------------------------------------------------ start */

static bool is_old_libgcc(const struct mapping *m, void *with)
{
    bool *any = with;
    if (!m->code || strncmp(m->base, "libgcc_s.so", 11) != 0)
        return false;
    *any = true;
    if (m->deleted || m->cut)
        return true;
    int fd = raw_open(m->path);
    bool good = fd >= 0 && elf_file_imports(fd, "_dl_find_object");
    if (fd >= 0)
        raw_close(fd);
    return !good;
}

void stack_start(void)
{
    void *some[2];
    struct mapping m;
    bool any = false;
    int saved = errno;
    /* Not somebody else's function of that name. */
    if (backtrace && maps_find((uintptr_t)backtrace, &m) &&
        (strncmp(m.base, "libc.so", 7) == 0 || strncmp(m.base, "libc-2.", 7) == 0) &&
        backtrace(some, 2) > 0 && !maps_search(is_old_libgcc, &any, &m) && any)
        atomic_store(&unwinder, true);
    errno = saved;
}

/* ------------------------------------------------------------------ frames */

/* Return addresses may be signed (aarch64, pointer authentication): the upper bits are no address. */
static uintptr_t plain(uintptr_t address)
{
    return address & ((1ul << 48) - 1);
}

static int walk(uintptr_t frame, uintptr_t *frames, int most)
{
    struct {
        uintptr_t next, back;
    } f = {0, 0};
    int n = 0;
    while (n < most && frame && frame % sizeof(void *) == 0 && peek_memory(frame, &f, sizeof(f))) {
        if (plain(f.back) < 4096)
            break;
        frames[n++] = plain(f.back) - 1;
        if (f.next <= frame || f.next - frame > STEP_MOST)
            break;
        frame = f.next;
    }
    return n;
}

__attribute__((noinline)) int stack_here(uintptr_t *frames, int most)
{
    void *back[FRAMES];
    if (most > FRAMES - 1)
        most = FRAMES - 1;
    if (most <= 0)
        return 0;
    if (!atomic_load_explicit(&unwinder, memory_order_relaxed))
        return walk((uintptr_t)__builtin_frame_address(0), frames, most);
    int n = backtrace(back, most + 1) - 1; /* the first is ours */
    for (int i = 0; i < n; i++)
        frames[i] = (uintptr_t)back[i + 1] - 1;
    return n > 0 ? n : 0;
}

/* ------------------------------------------------------------------ asking a thread
 * A question has a number, sent along with the signal, and a slot, whose state says which question it is for.
 * The thread that is asked takes the slot by changing the state; who asked gives it up in the same way. So a
 * late answer finds its number gone and writes nothing. */

enum { FREE, ASKED, WRITING, DONE };

#define SLOTS 4
#define MAGIC 0x72646774ul /* sent above the number, not to take the application's signals for ours */

static struct slot {
    _Atomic uint32_t state; /* number * 4 + one of the above */
    int frames;
    uintptr_t frame[FRAMES];
} slots[SLOTS];

static uint32_t question;
static _Atomic int
    under_way[_NSIG]; /* signals sent and not arrived: while there are any, the handler stays */

/* What the kernel takes, on both machines; libc's struct has the same members in another order. Not through
 * libc: its sigaction is often somebody else's (libjsig, sanitizers), and they have locks. */
struct disposition {
    uintptr_t handler;
    unsigned long flags;
    uintptr_t restorer;
    uint64_t mask;
};

#if defined(__x86_64__)
#    define RESTORER 0x04000000ul
void rdg_return(void);
/* These very bytes are how unwinders recognise it. */
__asm__(
    ".pushsection .text\n.p2align 4\nnop\n.hidden rdg_return\n.globl rdg_return\n.type rdg_return,@function\n"
    "rdg_return:\n\tmovq $15, %rax\n\tsyscall\n.size rdg_return, . - rdg_return\n.popsection");
#endif

static struct disposition before[_NSIG]; /* us */

static bool swap(int sig, const struct disposition *new, struct disposition *old)
{
    return raw(SYS_rt_sigaction, sig, (long)new, (long)old, sizeof(old->mask)) == 0;
}

/* Somebody else sent this signal. Without us it would have ended the process, and so it does. */
static void as_without_us(int sig)
{
    const struct disposition plainly = {.handler = (uintptr_t)SIG_DFL};
    swap(sig, &plainly, NULL);
    raw(SYS_tgkill, raw_pid(), raw_tid(), sig, 0); /* arrives as the handler returns */
}

static int frames_at(const ucontext_t *c, uintptr_t *frames)
{
#if defined(__x86_64__)
    uintptr_t pc = (uintptr_t)c->uc_mcontext.gregs[REG_RIP], fp = (uintptr_t)c->uc_mcontext.gregs[REG_RBP];
#else
    uintptr_t pc = c->uc_mcontext.pc, fp = c->uc_mcontext.regs[29];
#endif
    frames[0] = pc;
    if (atomic_load_explicit(&unwinder, memory_order_relaxed)) {
        void *back[FRAMES];
        int n = backtrace(back, FRAMES);
        for (int i = 0; i < n; i++) { /* the first ones are the handler's */
            if ((uintptr_t)back[i] != pc)
                continue;
            for (int j = i + 1; j < n; j++)
                frames[j - i] = (uintptr_t)back[j] - 1;
            return n - i;
        }
    }
    return 1 + walk(fp, frames + 1, FRAMES - 1);
}

static void answer(int sig, siginfo_t *info, void *context)
{
    int saved = errno;
    uintptr_t value = (uintptr_t)info->si_value.sival_ptr;
    if (info->si_code != SI_QUEUE || info->si_pid != raw_pid() || value >> 32 != MAGIC) {
        as_without_us(sig);
    } else {
        uint32_t number = (uint32_t)value, asked = number * 4 + ASKED;
        struct slot *s = &slots[number % SLOTS];
        atomic_fetch_sub(&under_way[sig], 1);
        if (atomic_compare_exchange_strong(&s->state, &asked, number * 4 + WRITING)) {
            s->frames = frames_at(context, s->frame);
            atomic_store(&s->state, number * 4 + DONE);
            futex_wake(&s->state, 1);
        }
    }
    errno = saved;
}

static bool is_ours(const struct disposition *d)
{
    return d->handler == (uintptr_t)answer;
}

/* Puts our handler where there is none. */
static bool install(int sig)
{
    /* Nothing may come between, but a fault shall end in whatever the application has for it. */
    struct disposition was,
        ours = {.handler = (uintptr_t)answer,
                .flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK,
                .mask = ~(1ul << (SIGSEGV - 1) | 1ul << (SIGBUS - 1) | 1ul << (SIGILL - 1) |
                          1ul << (SIGFPE - 1) | 1ul << (SIGTRAP - 1))};
#if defined(__x86_64__)
    ours.flags |= RESTORER;
    ours.restorer = (uintptr_t)rdg_return;
#endif
    if (!swap(sig, NULL, &was))
        return false;
    if (is_ours(&was))
        return true;
    if (was.handler != (uintptr_t)SIG_DFL || !swap(sig, &ours, &was))
        return false;
    if (was.handler == (uintptr_t)SIG_DFL) {
        before[sig] = was;
        return true;
    }
    swap(sig, &was, NULL); /* the application was faster */
    return false;
}

static void uninstall(int sig)
{
    struct disposition was;
    if (atomic_load(&under_way[sig]) > 0) /* one that arrives later must not end the process */
        return;
    if (swap(sig, &before[sig], &was) && !is_ours(&was))
        swap(sig, &was, NULL);
}

static bool ask(int tid, int sig, uint32_t number)
{
    siginfo_t info;
    memset(&info, 0, sizeof(info));
    info.si_signo = sig;
    info.si_code = SI_QUEUE;
    info.si_pid = raw_pid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = (void *)(MAGIC << 32 | number);
    return raw(SYS_rt_tgsigqueueinfo, info.si_pid, tid, sig, (long)&info) == 0;
}

static struct slot *next_slot(void)
{
    for (int i = 0; i < SLOTS; i++) {
        question = (question + 1) & 0x3fffffff;
        struct slot *s = &slots[question % SLOTS];
        if ((atomic_load(&s->state) & 3) != WRITING) {
            atomic_store(&s->state, question * 4 + ASKED);
            return s;
        }
    }
    return NULL;
}

enum outcome { ANSWERED, SILENT, ENDED };

static enum outcome wait_for(struct slot *s, uint32_t number, int tid, int64_t wait_ms)
{
    const int64_t slice = 20 * 1000000LL, until = now_ns() + wait_ms * 1000000;
    for (;;) {
        uint32_t state = atomic_load(&s->state);
        if (state == number * 4 + DONE)
            return ANSWERED;
        int64_t now = now_ns();
        bool ended = !peek_lives(tid);
        if (now >= until || ended) {
            uint32_t asked = number * 4 + ASKED;
            if (atomic_compare_exchange_strong(&s->state, &asked, number * 4 + FREE))
                return ended ? ENDED : SILENT;
            if (now >= until + slice) /* in the middle of it: then the slot remains with that question */
                return SILENT;
        }
        futex_wait(&s->state, state, now + slice, 0);
    }
}

enum { NO_SIGNAL = 0, ALL_BLOCKED = -1 };

/* A signal that this thread does not block and the application does not use; our handler is there now. From
 * above downwards: libc and most programs take theirs from below. */
static int choose(int tid)
{
    uint64_t blocked;
    int sig, outcome = ALL_BLOCKED;
    if (!peek_status(tid, "SigBlk:", &blocked))
        return NO_SIGNAL;
    for (sig = SIGRTMAX - 2; sig >= SIGRTMIN; sig--) {
        if (blocked >> (sig - 1) & 1)
            continue;
        outcome = NO_SIGNAL;
        if (install(sig))
            return sig;
    }
    return outcome;
}

int stack_of(int tid, uintptr_t *frames, int most, int64_t wait_ms)
{
    static int last;
    if (tid == raw_tid())
        return stack_here(frames, most);
    int n = -1, sig = choose(tid);
    /* Who has just answered may still be on its way out of the handler, with all blocked. */
    for (int64_t until = now_ns() + wait_ms * 1000000;
         sig == ALL_BLOCKED && tid == last && now_ns() < until;) {
        _Atomic uint32_t nothing = 0;
        futex_wait(&nothing, 0, now_ns() + 100000, 0);
        sig = choose(tid);
    }
    last = 0;
    if (sig <= 0)
        return -1;
    struct slot *s = next_slot();
    uint32_t number = question;
    if (s) {
        atomic_fetch_add(&under_way[sig], 1);
        enum outcome o = ask(tid, sig, number) ? wait_for(s, number, tid, wait_ms) : ENDED;
        if (o == ENDED) { /* its signals ended with it */
            atomic_fetch_sub(&under_way[sig], 1);
        } else if (o == ANSWERED) {
            n = s->frames < most ? s->frames : most;
            memcpy(frames, s->frame, (size_t)n * sizeof(frames[0]));
            last = tid;
        }
    }
    uninstall(sig);
    return n;
}

/* ------------------------------------------------------------------ names */

/* Is this file the one that was mapped there? Asked of the kernel in one and the same way: what stat says of
 * a file, and /proc/self/maps of its mapping, differ on overlay filesystems and on btrfs. The mapping is
 * never read. */
static bool is_file_of(int fd, const struct mapping *m)
{
    struct mapping mine;
    int saved = errno;
    long p = syscall(SYS_mmap, 0L, 4096L, (long)PROT_READ, (long)MAP_PRIVATE, (long)fd, 0L);
    errno = saved;
    if (p == -1)
        return false;
    bool found = maps_find((uintptr_t)p, &mine);
    raw(SYS_munmap, p, 4096, 0, 0);
    return found && mine.device == m->device && mine.inode == m->inode;
}

bool place_name(uintptr_t address, struct place *p)
{
    struct mapping m;
    struct stat st;
    memset(p, 0, sizeof(*p));
    p->address = address;
    if (!address || !maps_find(address, &m) || !m.base[0])
        return false;
    memcpy(p->object, m.base, sizeof(p->object));
    p->offset = address - m.from + m.offset;
    if (!m.code || m.path[0] != '/' || m.deleted || m.cut)
        return m.code;
    if (raw(SYS_newfstatat, AT_FDCWD, (long)m.path, (long)&st, 0) || !S_ISREG(st.st_mode))
        return true;
    int fd = raw_open(m.path);
    if (fd < 0)
        return true;
    uint64_t own;
    if (is_file_of(fd, &m) && elf_file_place(fd, p->offset, &own, p->function, sizeof(p->function)))
        p->offset = own;
    raw_close(fd);
    return true;
}
