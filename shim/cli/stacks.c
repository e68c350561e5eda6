/*
 * stacks.c: the stacks of another process (stacks.h), by elfutils' libdwfl, which stops each thread by ptrace
 * for as long as it is looked at. It must not hang on a thread that does not stop, nor ask the network for
 * symbols.
 */
#include "stacks.h"
#include "clean.h"

#include <stdio.h>

#ifdef RDGATE_DWFL

#    include <elfutils/libdwfl.h>
#    include <errno.h>
#    include <fcntl.h>
#    include <stdlib.h>
#    include <string.h>
#    include <unistd.h>

#    define DEEPEST 64
#    define SECONDS 20

struct one {
    Dwfl *dwfl;
    int depth;
    int failed; /* threads */
};

static const char *shown(const char *text)
{
    static char turn[2][256];
    static unsigned next;
    char *to = turn[next++ % 2];
    clean(to, sizeof(turn[0]), text, !speaks_utf8());
    return to;
}

static int on_frame(Dwfl_Frame *frame, void *with)
{
    struct one *o = with;
    Dwarf_Addr pc, at;
    bool activation;
    if (!dwfl_frame_pc(frame, &pc, &activation))
        return DWARF_CB_ABORT;
    at = activation ? pc : pc - 1; /* the call, not what follows it */
    Dwfl_Module *module = dwfl_addrmodule(o->dwfl, at);
    GElf_Off offset = 0;
    GElf_Sym symbol;
    const char *name = module ? dwfl_module_addrinfo(module, at, &offset, &symbol, NULL, NULL, NULL) : NULL;
    const char *file = module ? dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL) : NULL;
    const char *base = file && strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    printf("    #%-2d %s", o->depth, name ? shown(name) : "?");
    if (name)
        printf("+0x%llx", (unsigned long long)offset);
    else
        printf(" at 0x%llx", (unsigned long long)at);
    printf(" in %s\n", base ? shown(base) : "no file");
    return ++o->depth < DEEPEST ? DWARF_CB_OK : DWARF_CB_ABORT;
}

static int on_thread(Dwfl_Thread *thread, void *with)
{
    struct one *o = with;
    char path[64], name[32] = "";
    int tid = (int)dwfl_thread_tid(thread);
    snprintf(path, sizeof(path), "/proc/%d/comm", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, name, sizeof(name) - 1);
    if (fd >= 0)
        close(fd);
    name[n > 0 ? n - 1 : 0] = 0;
    printf("  thread %d \"%s\"\n", tid, shown(name));
    o->depth = 0;
    if (dwfl_thread_getframes(thread, on_frame, o) < 0 && !o->depth) {
        printf("    %s\n", dwfl_errmsg(-1));
        o->failed++;
    }
    return DWARF_CB_OK;
}

void stacks_say(int pid)
{
    static char *debug_path;
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_linux_proc_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .debuginfo_path = &debug_path,
    };
    puts("\nStacks");
    if (!pid) {
        puts("  the process is not there any more; --reports has those that were taken while it was");
        return;
    }
    unsetenv("DEBUGINFOD_URLS");
    alarm(SECONDS); /* what ptrace has stopped goes on when its tracer is gone */
    struct one o = {.dwfl = dwfl_begin(&callbacks)};
    int r = o.dwfl ? dwfl_linux_proc_report(o.dwfl, pid) : -1;
    if (r == 0 && dwfl_report_end(o.dwfl, NULL, NULL) == 0)
        r = dwfl_linux_proc_attach(o.dwfl, pid, false);
    if (r == 0)
        r = dwfl_getthreads(o.dwfl, on_thread, &o);
    if (r)
        printf("  cannot be taken: %s; as root, or with kernel.yama.ptrace_scope=0, they can\n",
               r > 0 ? strerror(r) : dwfl_errmsg(-1));
    if (o.failed)
        printf("  %d threads cannot be looked at: somebody else traces them, or ptrace is not allowed; as "
               "root, or with\n"
               "  kernel.yama.ptrace_scope=0, it is\n",
               o.failed);
    if (o.dwfl)
        dwfl_end(o.dwfl);
    alarm(0);
}

#else

void stacks_say(int pid)
{
    (void)pid;
    puts("\nStacks\n  this rdgate was built without elfutils' libdw, which takes them (Debian: libdw-dev)");
}

#endif
