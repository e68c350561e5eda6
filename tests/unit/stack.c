/* links: stack.o peek.o maps.o symbols.o lock.o say.o */
#include "maps.h"
#include "peek.h"
#include "stack.h"
#include "symbols.h"
#include "tap.h"
#include "threads.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
/* The call before it is not the function's last, so that it is a call and not a jump. */
#define STAY __asm__ volatile("" ::: "memory")

/* Functions whose frames are found by frame pointers; clang keeps them where it is told so on its command
 * line. */
#ifdef __clang__
#    define POINTERS NOINLINE
#else
#    define POINTERS NOINLINE __attribute__((optimize("no-omit-frame-pointer")))
#endif

static void until_set(_Atomic int *flag)
{
    while (!atomic_load(flag))
        breathe();
}

static void until_asleep(int tid, enum sleep sleep)
{
    struct seen_thread t;
    for (int64_t until = now_ms() + 10000; now_ms() < until; breathe()) {
        peek_thread(tid, &t);
        if (t.sleep == sleep)
            return;
    }
    ok(!"the thread did not fall asleep");
}

/* ------------------------------------------------------------------ this thread's own */

#define MOST 32

struct stack {
    int n;
    uintptr_t frame[MOST];
};

NOINLINE int stack_inner(struct stack *s);
NOINLINE int stack_inner(struct stack *s)
{
    s->n = stack_here(s->frame, MOST);
    STAY;
    return s->n;
}

static NOINLINE int stack_middle(struct stack *s)
{
    int n = stack_inner(s);
    STAY;
    return n;
}

NOINLINE int stack_outer(struct stack *s);
NOINLINE int stack_outer(struct stack *s)
{
    int n = stack_middle(s);
    STAY;
    return n;
}

static POINTERS int pointers_inner(struct stack *s)
{
    s->n = stack_here(s->frame, MOST);
    STAY;
    return s->n;
}

static POINTERS int pointers_middle(struct stack *s)
{
    int n = pointers_inner(s);
    STAY;
    return n;
}

static POINTERS int pointers_outer(struct stack *s)
{
    int n = pointers_middle(s);
    STAY;
    return n;
}

static const char *name_of(uintptr_t address)
{
    static struct place p;
    place_name(address, &p);
    return p.function;
}

static bool has(const struct stack *s, const char *function)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(name_of(s->frame[i]), function) == 0)
            return true;
    return false;
}

static void by_pointers(void)
{
    struct stack s = {0};
    ok(pointers_outer(&s) >= 1);
#ifndef __clang__
    ok(s.n >= 3);
    is_text(name_of(s.frame[0]), "pointers_inner");
    is_text(name_of(s.frame[1]), "pointers_middle");
    is_text(name_of(s.frame[2]), "pointers_outer");
#endif
    /* what follows may be anything, and is nothing that one must not touch */
    for (int i = 0; i < s.n; i++)
        ok(s.frame[i] >= 4095);
    is(stack_here(s.frame, 1), 1);
    is(stack_here(s.frame, 0), 0);
}

static void own(void)
{
    struct stack s = {0};
    ok(stack_outer(&s) >= 4);
    is_text(name_of(s.frame[0]), "stack_inner");
    is_text(name_of(s.frame[1]), "stack_middle");
    is_text(name_of(s.frame[2]), "stack_outer");
    is_text(name_of(s.frame[3]), "own");
    is_text(name_of(s.frame[4]), "main");
    is(stack_here(s.frame, 0), 0);
    is(stack_here(s.frame, 1), 1);
    is_text(name_of(s.frame[0]), "own");
    is(stack_here(s.frame, -5), 0);
    errno = 77;
    stack_outer(&s);
    place_name(s.frame[0], &(struct place){0});
    is(errno, 77);
}

/* Another thread holds the loader's lock for as long as it likes: nobody waits for it. */
static _Atomic int holds_loader, let_loader_go;

static int in_loader(struct dl_phdr_info *info, size_t size, void *p)
{
    (void)info;
    (void)size;
    (void)p;
    atomic_store(&holds_loader, 1);
    until_set(&let_loader_go);
    return 1;
}

static void *hold_loader(void *p)
{
    dl_iterate_phdr(in_loader, p);
    return NULL;
}

static void beside_the_loader(void)
{
    pthread_t t;
    struct stack s = {0};
    pthread_create(&t, NULL, hold_loader, NULL);
    until_set(&holds_loader);
    alarm(20); /* to hang here is to fail */
    ok(stack_outer(&s) >= 1);
    is_text(name_of(s.frame[0]), "stack_inner");
    alarm(0);
    atomic_store(&let_loader_go, 1);
    pthread_join(t, NULL);
}

/* ------------------------------------------------------------------ names */

NOINLINE int a_global_function(int n);
NOINLINE int a_global_function(int n)
{
    return n + 1;
}

static NOINLINE int a_static_function(int n)
{
    STAY;
    return n * 7 + a_global_function(n);
}

NOINLINE int a_function_with_a_name_so_long_that_it_does_not_fit_into_what_the_report_has_for_it(void);
NOINLINE int a_function_with_a_name_so_long_that_it_does_not_fit_into_what_the_report_has_for_it(void)
{
    STAY;
    return 3;
}

/* All are in the file and nowhere else. */
static const uintptr_t functions[] = {
    (uintptr_t)a_static_function, (uintptr_t)a_global_function,
    (uintptr_t)a_function_with_a_name_so_long_that_it_does_not_fit_into_what_the_report_has_for_it};

static char dir[] = "/tmp/stack.XXXXXX";

static const char *in_dir(const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static bool run(const char *format, const char *a, const char *b)
{
    char command[1024];
    snprintf(command, sizeof(command), format, a, b);
    return system(command) == 0;
}

/* Where in the program's file an address comes from. */
static uint64_t offset_of(uintptr_t address)
{
    struct mapping m;
    return maps_find(address, &m) ? address - m.from + m.offset : 0;
}

static char *map_file(const char *path, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st))
        abort();
    *size = (size_t)st.st_size;
    char *p = mmap(NULL, *size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    close(fd);
    return p;
}

static void of_this_program(void)
{
    struct place p;
    Dl_info info;
    ok(a_static_function(1) == 9);
    ok(place_name((uintptr_t)a_static_function, &p));
    is_text(p.function, "a_static_function");
    is_text(p.object, "stack");
    is(p.address, (long long)(uintptr_t)a_static_function);
    dladdr((void *)a_static_function, &info);
    is(p.offset, (long long)((uintptr_t)a_static_function - (uintptr_t)info.dli_fbase));
    ok(place_name((uintptr_t)a_global_function, &p));
    is_text(p.function, "a_global_function");
    ok(place_name(functions[2], &p));
    is_text(p.function, "a_function_with_a_name_so_long_that_it_does_not_fit_into_what_t");

    /* another's, by its dynamic symbols at least */
    place_name((uintptr_t)poll, &p);
    ok(strncmp(p.object, "libc", 4) == 0);
    is_text(p.function, "poll");

    ok(!place_name(0, &p));
    ok(!place_name(8, &p));
    ok(!place_name(UINTPTR_MAX, &p));
    int here;
    ok(!place_name((uintptr_t)&here, &p));
    is_text(p.function, "");
    static int data = 1;
    ok(!place_name((uintptr_t)&data, &p));
    is_text(p.function, "");
    void *nowhere = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ok(!place_name((uintptr_t)nowhere, &p));
    is_text(p.object, "");
    is_text(p.function, "");
}

static void of_copies(void)
{
    struct place p;
    size_t size;
    uint64_t offset = offset_of((uintptr_t)a_static_function);
    ok(run("cp /proc/%s/exe %s/whole", "$PPID", dir));
    ok(run("strip -o %s/stripped %s/whole", dir, dir));
    char *whole = map_file(in_dir("whole"), &size), *stripped = map_file(in_dir("stripped"), &size);
    ok(place_name((uintptr_t)whole + offset, &p));
    is_text(p.object, "whole");
    is_text(p.function, "a_static_function");
    uintptr_t own = p.offset;
    ok(place_name((uintptr_t)stripped + offset, &p));
    is_text(p.object, "stripped");
    is_text(p.function, "");
    is(p.offset, (long long)own);

    /* another file in its place, of the same content */
    ok(run("cp %s/whole %s/new", dir, dir));
    ok(run("mv %s/new %s/whole", dir, dir));
    ok(place_name((uintptr_t)whole + offset, &p));
    is_text(p.object, "whole");
    is_text(p.function, "");

    /* what must not be opened */
    ok(run("rm %s/whole; mkfifo %s/whole", dir, dir));
    ok(place_name((uintptr_t)whole + offset, &p));
    is_text(p.function, "");
    unlink(in_dir("whole"));
}

static void of_libraries(void)
{
    static const char source[] =
        "__attribute__((noinline)) static int hidden(int n) { __asm__ volatile(\"\"); return n * 3; }\n"
        "int shown(int n) { return hidden(n) + 1; }\n"
        "void *where(void); void *where(void) { return (void *)hidden; }\n"
        /* no type, no size, as in assembler */
        "__asm__(\".text\\n.globl bare\\n.type bare,@function\\nbare:\\n nop\\n nop\\n ret\\n nop\\n\");\n"
        "void bare(void); void *bare_where(void); void *bare_where(void) { return (char *)bare + 2; }\n";
    FILE *f = fopen(in_dir("lib.c"), "w");
    fputs(source, f);
    fclose(f);
    ok(run("${CC:-cc} -O1 -shared -fPIC -o %s/lib.so %s/lib.c", dir, dir));
    void *lib = dlopen(in_dir("lib.so"), RTLD_NOW);
    ok(lib != NULL);
    if (!lib)
        return;
    uintptr_t shown = (uintptr_t)dlsym(lib, "shown");
    void *(*where)(void) = (void *(*)(void))dlsym(lib, "where");
    void *(*bare_where)(void) = (void *(*)(void))dlsym(lib, "bare_where");
    struct place p;
    ok(place_name(shown, &p));
    is_text(p.object, "lib.so");
    is_text(p.function, "shown");
    ok(place_name((uintptr_t)where(), &p));
    is_text(p.function, "hidden");
    ok(place_name((uintptr_t)bare_where(), &p));
    is_text(p.function, "bare");
    ok(run("cp %s/lib.so %s/kept.so", dir, dir));
    unlink(in_dir("lib.so"));
    ok(place_name(shown, &p));
    is_text(p.object, "lib.so");
    is_text(p.function, "");
    dlclose(lib);
}

/* ------------------------------------------------------------------ rubbish */

static uint64_t dice = 20240229;

static uint32_t roll(uint32_t below)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (uint32_t)(dice >> 20) % below;
}

/* Any answer will do that is one: an end to it, and a name that ends. */
static int bad_answers;

static void try_file(int fd, size_t size)
{
    char name[16];
    uint64_t address;
    for (int i = 0; i < 4; i++) {
        memset(name, 0x55, sizeof(name));
        elf_file_place(fd, i ? roll((uint32_t)size + 1) : UINT64_MAX - roll(100), &address, name,
                       sizeof(name));
        bad_answers += !memchr(name, 0, sizeof(name));
    }
    elf_file_imports(fd, "_dl_find_object");
}

static void rubbish(void)
{
    size_t size, length;
    char *good = map_file(in_dir("kept.so"), &size);
    char *bad = malloc(size);
    int fd = memfd_create("rubbish", MFD_CLOEXEC);
    struct place p;
    const ElfW(Ehdr) *head = (const void *)good;
    const size_t sections = head->e_shoff;
    ok(size > sections);
    for (int i = 0; i < 8000; i++) {
        memcpy(bad, good, size);
        length = i % 3 == 0 ? roll((uint32_t)size + 1) : size;
        for (uint32_t n = roll(8); n > 0; n--) {
            /* headers, sections, anywhere */
            size_t at = roll(3) == 0   ? roll(64 + 56 * 11)
                        : roll(2) == 0 ? sections + roll((uint32_t)(size - sections))
                                       : roll((uint32_t)size);
            if (roll(2))
                bad[at] = (char)(bad[at] ^ (1 << roll(8)));
            else
                memset(bad + at, roll(2) ? 0xff : 0x7f, size - at < 8 ? size - at : 8);
        }
        if (ftruncate(fd, 0) || pwrite(fd, bad, length, 0) != (ssize_t)length)
            abort();
        try_file(fd, size);
    }
    is(bad_answers, 0);
    /* and mapped as code, where names are looked for */
    const char *path = in_dir("bad.so");
    for (int i = 0; i < 300; i++) {
        memcpy(bad, good, size);
        for (uint32_t n = roll(20); n > 0; n--)
            bad[roll(2) ? roll(64 + 56 * 11) : roll((uint32_t)size)] ^= (char)roll(256);
        int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (write(file, bad, size) != (ssize_t)size)
            abort();
        char *code = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
        if (i % 4 == 0 && ftruncate(file, roll((uint32_t)size)))
            abort();
        close(file);
        ok(place_name((uintptr_t)code + roll((uint32_t)size), &p));
        munmap(code, size);
    }
    unlink(path);
    free(bad);
}

/* ------------------------------------------------------------------ asking others */

#define WAIT 10000

static struct stack asked(int tid, int64_t wait_ms)
{
    struct stack s = {0};
    s.n = stack_of(tid, s.frame, MOST, wait_ms);
    return s;
}

static uintptr_t handler_of(int sig)
{
    struct sigaction a;
    sigaction(sig, NULL, &a);
    return (uintptr_t)a.sa_handler;
}

/* Nothing of ours stays behind. */
static bool all_default(void)
{
    for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
        if (handler_of(sig) != (uintptr_t)SIG_DFL)
            return false;
    return true;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int stop;

static NOINLINE void sleeps_in_mutex(void *p)
{
    (void)p;
    pthread_mutex_lock(&mutex);
    STAY;
    pthread_mutex_unlock(&mutex);
}

static _Atomic int errno_changed;

static NOINLINE void spins(void *p)
{
    (void)p;
    errno = 5;
    while (!atomic_load(&stop))
        if (errno != 5)
            atomic_store(&errno_changed, 1);
}

static NOINLINE void allocates(void *p)
{
    (void)p;
    while (!atomic_load(&stop))
        for (size_t n = 1; n < 100000; n *= 3)
            free(malloc(n));
}

static NOINLINE void loads(void *p)
{
    while (!atomic_load(&stop)) {
        void *lib = dlopen(p, RTLD_NOW);
        if (!lib)
            abort();
        dlclose(lib);
    }
}

static void sleepers(void)
{
    pthread_mutex_lock(&mutex);
    int tid = start(sleeps_in_mutex, NULL);
    pthread_t t = last_thread;
    until_asleep(tid, SLEEP_FUTEX); /* nothing was started to know mutexes */
    struct stack s = asked(tid, WAIT);
    ok(s.n >= 3);
    ok(has(&s, "sleeps_in_mutex"));
    ok(has(&s, "thread"));
    ok(all_default());
    /* who was asked sleeps on */
    until_asleep(tid, SLEEP_FUTEX);
    struct stack again = asked(tid, WAIT);
    is(again.n, s.n);
    ok(memcmp(again.frame, s.frame, (size_t)s.n * sizeof(s.frame[0])) == 0);
    /* as many as there is room for */
    uintptr_t two[3] = {0, 0, 1};
    is(stack_of(tid, two, 2, WAIT), 2);
    is(two[2], 1);
    pthread_mutex_unlock(&mutex);
    pthread_join(t, NULL);
    /* oneself */
    s = asked(my_tid(), WAIT);
    ok(has(&s, "sleepers"));
    /* nobody */
    is(asked(tid, WAIT).n, -1);
    is(asked(1, WAIT).n, -1);
    is(asked(0x7ffffff0, WAIT).n, -1);
}

/* Threads that are busy with what a handler must not touch. */
static void busy(void)
{
    void (*const bodies[])(void *) = {spins, allocates, loads};
    char path[256];
    snprintf(path, sizeof path, "%s", in_dir("kept.so"));
    for (int i = 0; i < 3; i++) {
        int answers = 0, rounds = 1500;
        atomic_store(&stop, 0);
        int tid = start(bodies[i], path);
        pthread_t t = last_thread;
        struct stack s = {0};
        for (int n = 0; n < rounds; n++) {
            s = asked(tid, WAIT);
            answers += s.n > 0;
        }
        is(answers, rounds);
        if (i == 0)
            ok(has(&s, "spins"));
        atomic_store(&stop, 1);
        pthread_join(t, NULL);
    }
    is(errno_changed, 0);
    ok(all_default());
}

static sigset_t blocked_set;

static NOINLINE void blocks(void *p)
{
    _Atomic int *ready = p;
    pthread_sigmask(SIG_BLOCK, &blocked_set, NULL);
    atomic_store(ready, 1);
    while (!atomic_load(&stop))
        ;
}

static void blockers(void)
{
    _Atomic int ready = 0;
    atomic_store(&stop, 0);
    sigfillset(&blocked_set);
    int tid = start(blocks, &ready);
    pthread_t t = last_thread;
    until_set(&ready);
    is(asked(tid, WAIT).n, -1);
    atomic_store(&stop, 1);
    pthread_join(t, NULL);
    /* only those that come first */
    atomic_store(&stop, 0);
    atomic_store(&ready, 0);
    sigemptyset(&blocked_set);
    sigaddset(&blocked_set, SIGRTMAX - 2);
    sigaddset(&blocked_set, SIGRTMAX - 3);
    tid = start(blocks, &ready);
    t = last_thread;
    until_set(&ready);
    struct stack s = asked(tid, WAIT);
    ok(has(&s, "blocks"));
    atomic_store(&stop, 1);
    pthread_join(t, NULL);
    ok(all_default());
}

static _Atomic int got;

static void on_signal(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)info;
    (void)context;
    atomic_fetch_add(&got, 1);
}

static void application_handlers(void)
{
    struct sigaction a = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO}, now;
    sigemptyset(&a.sa_mask);
    sigaddset(&a.sa_mask, SIGUSR1);
    sigaction(SIGRTMAX - 2, &a, NULL);
    signal(SIGRTMAX - 3, SIG_IGN);
    atomic_store(&stop, 0);
    int tid = start(spins, NULL);
    pthread_t t = last_thread;
    struct stack s = asked(tid, WAIT);
    ok(has(&s, "spins"));
    is(got, 0);
    sigaction(SIGRTMAX - 2, NULL, &now);
    ok(now.sa_sigaction == on_signal);
    ok(now.sa_flags & SA_SIGINFO);
    ok(sigismember(&now.sa_mask, SIGUSR1) == 1);
    ok(handler_of(SIGRTMAX - 3) == (uintptr_t)SIG_IGN);
    ok(handler_of(SIGRTMAX - 4) == (uintptr_t)SIG_DFL);
    raise(SIGRTMAX - 2);
    is(got, 1);
    /* all are the application's, as in Go */
    for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
        sigaction(sig, &a, NULL);
    is(asked(tid, WAIT).n, -1);
    is(got, 1);
    for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
        signal(sig, SIG_DFL);
    atomic_store(&stop, 1);
    pthread_join(t, NULL);
}

static void ends_at_once(void *p)
{
    for (volatile int n = *(int *)p; n > 0; n--)
        ;
}

static void enders(void)
{
    int answers = 0;
    for (int i = 0; i < 3000; i++) {
        int length = i % 50 * 20000;
        int tid = start(ends_at_once, &length);
        answers += asked(tid, WAIT).n > 0;
        pthread_join(last_thread, NULL);
    }
    printf("# %d of 3000 answered before they ended\n", answers);
    ok(all_default());
}

/* ------------------------------------------------------------------ late answers */

static int release[2];

static int waits_for_release(void *p)
{
    char c;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return read(release[0], &c, 1) == 1 && p ? 0 : 1;
}

/* As vfork: its parent takes no signals until the child is done. */
static NOINLINE void deaf(void *p)
{
    static char child_stack[65536];
    atomic_store((_Atomic int *)p, 1);
    int child =
        clone(waits_for_release, child_stack + sizeof(child_stack), CLONE_VM | CLONE_VFORK | SIGCHLD, p);
    waitpid(child, NULL, 0);
    while (!atomic_load(&stop))
        breathe();
}

static int start_deaf(void)
{
    static _Atomic int ready;
    atomic_store(&stop, 0);
    atomic_store(&ready, 0);
    if (pipe(release))
        abort();
    int tid = start(deaf, &ready);
    until_set(&ready);
    until_asleep(tid, SLEEP_DISK);
    return tid;
}

static void late_answers(void)
{
    int tid = start_deaf();
    pthread_t t = last_thread;
    /* more questions than there are places to answer in */
    for (int i = 0; i < 9; i++)
        is(asked(tid, 20).n, -1);
    /* what is under way would end the process if nobody took it */
    ok(!all_default());
    /* others answer meanwhile, and only with what is theirs */
    int other = start(spins, NULL);
    pthread_t o = last_thread;
    struct stack s = asked(other, WAIT);
    ok(has(&s, "spins"));
    ok(!all_default());
    is(write(release[1], "x", 1), 1);
    until_asleep(tid, SLEEP_TIME);
    s = asked(tid, WAIT);
    ok(has(&s, "deaf"));
    s = asked(other, WAIT);
    ok(has(&s, "spins"));
    ok(all_default());
    atomic_store(&stop, 1);
    pthread_join(t, NULL);
    pthread_join(o, NULL);
    close(release[0]);
    close(release[1]);
}

/* A signal of somebody else's, while ours is awaited, does what it would have done. */
static void signals_of_others(void)
{
    for (int from_outside = 0; from_outside < 2; from_outside++) {
        fflush(stdout);
        int child = fork(), status = 0;
        if (!child) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            int tid = start_deaf();
            if (asked(tid, 20).n != -1 || all_default())
                _exit(1);
            union sigval v = {.sival_ptr = &v};
            if (from_outside)
                kill(getpid(), SIGRTMAX - 2);
            else
                sigqueue(getpid(), SIGRTMAX - 2, v);
            _exit(2);
        }
        waitpid(child, &status, 0);
        ok(WIFSIGNALED(status));
        is(WTERMSIG(status), SIGRTMAX - 2);
    }
}

/* ------------------------------------------------------------------ what the thread notices */

static int ends[2];
static _Atomic int result;
static _Atomic int begun;

static void polls(void *p)
{
    struct pollfd f = {ends[0], POLLIN, 0};
    (void)p;
    int n = poll(&f, 1, 60000);
    atomic_store(&result, n < 0 ? -errno : n + 1);
}

static void reads(void *p)
{
    char c;
    (void)p;
    long n = read(ends[0], &c, 1);
    atomic_store(&result, n < 0 ? -errno : (int)n + 1);
}

static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int called;

static void waits(void *p)
{
    (void)p;
    pthread_mutex_lock(&mutex);
    atomic_store(&begun, 1);
    int n = pthread_cond_wait(&cond, &mutex); /* could return early, but does not */
    atomic_store(&result, n == 0 && called ? 1 : -1);
    pthread_mutex_unlock(&mutex);
}

static void what_is_noticed(void)
{
    if (pipe(ends))
        abort();
    int tid = start(polls, NULL);
    until_asleep(tid, SLEEP_POLL);
    ok(asked(tid, WAIT).n > 0);
    pthread_join(last_thread, NULL);
    is(result, -EINTR); /* in spite of SA_RESTART */

    atomic_store(&result, 0);
    tid = start(reads, NULL);
    until_asleep(tid, SLEEP_READ);
    ok(asked(tid, WAIT).n > 0);
    until_asleep(tid, SLEEP_READ);
    is(result, 0);
    is(write(ends[1], "x", 1), 1);
    pthread_join(last_thread, NULL);
    is(result, 2);

    atomic_store(&result, 0);
    tid = start(waits, NULL);
    until_set(&begun);
    until_asleep(tid, SLEEP_FUTEX);
    ok(asked(tid, WAIT).n > 0);
    until_asleep(tid, SLEEP_FUTEX);
    is(result, 0);
    pthread_mutex_lock(&mutex);
    called = 1;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    pthread_join(last_thread, NULL);
    is(result, 1);
}

int main(void)
{
    if (!mkdtemp(dir))
        abort();
    by_pointers();
    stack_start();
    own();
    beside_the_loader();
    of_this_program();
    of_copies();
    of_libraries();
    rubbish();
    sleepers();
    busy();
    blockers();
    application_handlers();
    enders();
    late_answers();
    signals_of_others();
    what_is_noticed();
    ok(run("rm -r %s%s", dir, ""));
    return done();
}
