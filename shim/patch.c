/*
 * patch.c: entry patching (DESIGN 5). It decides for all functions before it writes the first byte, and puts
 * everything back if one write fails: a gate that sees closes but no destroys would be worse than none. It
 * must not touch what is not librdkafka beyond doubt, and costs a program without it a look at its dynamic
 * symbols.
 */
#include "patch.h"
#include "copy.h"
#include "elf.h"
#include "image.h"
#include "lookup.h"
#include "notes.h"
#include "rewrite.h"
#include "say.h"
#include "shim.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern const void *const rdg_wrappers[CALL_COUNT];

#if defined(__x86_64__)
#    define NO_DECODER                                                                                       \
        "this librdgate.so was built without the decoder that it takes; run scripts/setup, then make"
#else
#    define NO_DECODER "entries are redirected on x86_64 only"
#endif

/* ------------------------------------------------------------------ deciding */

struct work {
    struct image im;
    bool executable;
    struct inside in;
    struct library lib;
    struct plan plans[CALL_COUNT];
    bool planned[CALL_COUNT];
    int count; /* entries to redirect */
};

static void no(const struct work *w, const char *why)
{
    if (!rdg_awake)
        shim_awake();
    report_uncovered(w->executable ? COVER_STATIC : COVER_HIDDEN, w->im.path[0] ? w->im.path : NULL, why);
}

static void no_function(const struct work *w, int call, const char *why)
{
    struct text t = {0};
    text_add(&t, rdg_calls[call].name);
    text_add(&t, " cannot be redirected, ");
    text_add(&t, why);
    no(w, text_end(&t));
}

static const void *entry_of(int call, int library)
{
    uint8_t class = rdg_calls[call].class;
    const void *own = class == PASS || class == BIRTH ? odd_entry(call, library) : NULL;
    return own ? own : class == PASS ? NULL : rdg_wrappers[call];
}

/* As far as another one of us may have been there first, or a debugger. */
#define STRICT 32

static const char *plan_one(struct work *w, int call)
{
    const struct where *p = &w->in.place[call];
    const char *why = copy_plan(&w->plans[call], &w->in, &w->im.file, call, w->im.map->l_addr);
    if (!why && !image_untouched(&w->im, p->at, p->size, STRICT))
        why = "somebody has written into it already (a breakpoint, a probe)";
    if (!why && w->plans[call].moved > p->size &&
        !image_untouched(&w->im, p->at, w->plans[call].moved, STRICT))
        why = "somebody has written into it already (a breakpoint, a probe)";
    return why;
}

static bool plan_all(struct work *w)
{
    for (int i = 0; i < CALL_COUNT; i++) {
        if (!w->in.place[i].at || !entry_of(i, 0))
            continue;
        const char *why = plan_one(w, i);
        if (why && copy_vital(i)) {
            no_function(w, i, why);
            return false;
        }
        w->planned[i] = !why;
        w->count += !why;
    }
    return true;
}

static bool make_library(struct work *w)
{
    struct library *lib = &w->lib;
    uintptr_t load = w->im.map->l_addr;
    for (int i = 0; i < CALL_COUNT; i++)
        lib->calls[i] = w->in.place[i].at ? (void *)(load + w->in.place[i].at) : NULL;
    int next = CALL_COUNT;
#define X(name)                                                                                              \
    if (w->in.place[next++].at)                                                                              \
        lib->h_##name = (__typeof__(lib->h_##name))(load + w->in.place[next - 1].at);
    FOR_HELPERS(X)
#undef X
    if (!lib->h_rd_kafka_conf_get || !lib->h_rd_kafka_version)
        return false;
    lib->version = lib->h_rd_kafka_version() >> 8;
    const char *words = lib->h_rd_kafka_version_str ? lib->h_rd_kafka_version_str() : "?";
    strncat(lib->text, words, sizeof(lib->text) - 1);
    memcpy(lib->path, w->im.path, strnlen(w->im.path, sizeof(lib->path) - 1));
    lib->from = w->im.from;
    lib->to = w->im.to;
    lib->map = w->im.map;
    lib->patched = true;
    lib->hidden = !elf_function(w->im.map, "rd_kafka_new");
    lib->spans = w->in.spans;
    for (int i = 0; i < lib->spans; i++)
        lib->own[i] = (struct span){load + w->in.own[i].from, load + w->in.own[i].to};
    return lib->version >= 0x010000 && lib->version < 0x100000;
}

/* ------------------------------------------------------------------ doing */

/* Fills the area, all slots at once. */
static bool fill_area(struct work *w, struct rewriter *r, uint8_t *area, size_t size, int library)
{
    uint8_t *slots = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED)
        return false;
    size_t off = 0;
    bool good = true;
    for (int i = 0; i < CALL_COUNT && good; i++) {
        if (!w->planned[i])
            continue;
        uint64_t address = (uintptr_t)area + off;
        good = plan_slot(&w->plans[i], (const uint8_t *)w->plans[i].entry, address, entry_of(i, library),
                         slots + off);
        w->lib.calls[i] = area + off + PLAN_TAIL;
        off += PLAN_SLOT;
    }
    good = good && rewrite(r, (uintptr_t)area, slots, off);
    munmap(slots, size);
    return good;
}

/* All entries, or none. */
static bool write_entries(struct work *w, struct rewriter *r, const uint8_t *area)
{
    uint8_t old[CALL_COUNT][PLAN_JUMP];
    size_t off = 0;
    int done = 0;
    bool good = true;
    for (int i = 0; i < CALL_COUNT && good; i++) {
        if (!w->planned[i])
            continue;
        uint8_t jump[PLAN_JUMP];
        uint64_t at = w->plans[i].entry + w->plans[i].at;
        memcpy(old[i], (const void *)at, PLAN_JUMP);
        good = plan_jump(&w->plans[i], (uintptr_t)area + off, jump) && rewrite(r, at, jump, PLAN_JUMP);
        off += PLAN_SLOT;
        done = i + 1;
    }
    for (int i = 0; i < done && !good; i++)
        if (w->planned[i])
            rewrite(r, w->plans[i].entry + w->plans[i].at, old[i], PLAN_JUMP);
    return good;
}

/* A page that was written to would bring the whole mapping into core files. */
static void keep_out_of_cores(const struct image *im)
{
    for (int i = 0; i < im->segment_count; i++) {
        const ElfW(Phdr) *p = &im->segments[i];
        uintptr_t from = (im->map->l_addr + p->p_vaddr) & ~(uintptr_t)4095;
        uintptr_t to = (im->map->l_addr + p->p_vaddr + p->p_filesz + 4095) & ~(uintptr_t)4095;
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X))
            madvise((void *)from, to - from, MADV_DONTDUMP);
    }
}

static void no_way(const struct work *w, const struct rewriter *r)
{
    struct text t = {0};
    text_add(&t, "this system does not let code be changed (/proc/self/mem: errno ");
    text_number(&t, r->errors[0]);
    text_add(&t, ", memfd: errno ");
    text_number(&t, r->errors[1]);
    text_add(&t, ", mprotect: errno ");
    text_number(&t, r->errors[2]);
    text_add(&t, ")");
    no(w, text_end(&t));
}

static void redirect(struct work *w)
{
    struct rewriter r;
    if (!rewrite_begin(&r)) {
        no_way(w, &r);
        return;
    }
    size_t size = ((size_t)w->count * PLAN_SLOT + 4095) & ~(size_t)4095;
    uint64_t span = w->im.to - w->im.from;
    uint8_t *area = span < 0x70000000 ? rewrite_area(w->im.from, size, 0x7ff00000 - span) : NULL;
    const struct library *lib = area ? library_add(&w->lib) : NULL;
    bool good = false;
    if (!area)
        no(w, "there is no room for code near it");
    else if (!lib)
        no(w, "there are too many copies of it");
    else if (!fill_area(w, &r, area, size, (int)(lib - library_at(0))))
        no(w, "the code near it could not be written");
    else {
        library_move(lib, w->lib.calls);
        good = write_entries(w, &r, area);
        if (!good)
            no(w, "its entries could not be written; they are as they were");
    }
    if (lib && !good)
        library_withdraw(lib);
    rewrite_end(&r);
    if (!good) {
        if (area)
            munmap(area, size);
        return;
    }
    keep_out_of_cores(&w->im);
    if (!rdg_awake)
        shim_awake();
    report_library(lib);
}

static bool symbols_found(struct work *w)
{
    struct elf_file debug;
    if (copy_find(&w->in, &w->im.file))
        return true;
    if (copy_has_symbols(&w->im.file) || !copy_speaks(&w->im.file))
        return false;
    bool found = image_debug_file(&w->im, &debug);
    if (found) {
        found = copy_find(&w->in, &debug);
        image_unmap_file(&debug);
    }
    if (!found)
        no(w, copy_keep_symbols(&w->im.file));
    return found;
}

/* At start-up nobody but a constructor of a library can have started threads. Are they kept from the code
 * that is about to change, which nobody has called yet? Not if the executable runs code before us, and not if
 * libraries can see its functions. */
static bool others_may_be_in_it(const struct work *w)
{
    struct stat st;
    return w->executable && stat("/proc/self/task", &st) == 0 && st.st_nlink > 3 &&
           (elf_dynamic(w->im.map, DT_PREINIT_ARRAY) || !w->lib.hidden);
}

/* Some moved calls return to where no call was made from: what a shadow stack is there to forbid. */
static bool shadow_stack(void)
{
#if defined(__x86_64__)
    unsigned long features = 0;
    return syscall(SYS_arch_prctl, 0x5005 /* ARCH_SHSTK_STATUS */, &features) == 0 && (features & 1);
#else
    return false;
#endif
}

static void examine(struct work *w)
{
    if (!symbols_found(w))
        return;
    const char *why = copy_recognised(&w->in);
    if (why) {
        if (*why)
            no(w, why);
    } else if (!plan_possible()) {
        no(w, NO_DECODER);
    } else if (!make_library(w)) {
        no(w, "it is not one that we know");
    } else if (others_may_be_in_it(w)) {
        no(w, "threads run already, and may be in it");
    } else if (shadow_stack()) {
        no(w, "this process has a shadow stack");
    } else if (plan_all(w)) {
        redirect(w);
    }
}

void patch_object(const struct link_map *map, bool executable, const char *why_not)
{
    int saved = errno;
    sigset_t all, before;
    struct work *w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (w == MAP_FAILED)
        return;
    /* A handler of this thread must not meet functions that are half redirected. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    w->executable = executable;
    if (!image_open(&w->im, map, executable)) {
        if (w->im.to && image_speaks(&w->im))
            no(w, "its file cannot be read");
    } else if (why_not) {
        no(w, why_not);
    } else {
        examine(w);
    }
    image_close(&w->im);
    munmap(w, sizeof(*w));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
}

static bool asks(const void *object, const char *name)
{
    return elf_undefined(object, name);
}

void patch_executable(void)
{
    const struct link_map *map = real_executable();
    if (map && copy_possible(asks, map))
        patch_object(map, true, NULL);
}
