/*
 * patch.c: entry patching (DESIGN 5). It decides for all functions before it writes the first byte, and puts
 * everything back if one write fails: a gate that sees closes but no destroys would be worse than none. It
 * must not touch what is not librdkafka beyond doubt, and costs a program without it a look at its dynamic
 * symbols.
 */
#include "patch.h"
#include "elf.h"
#include "inside.h"
#include "lookup.h"
#include "maps.h"
#include "notes.h"
#include "say.h"
#include "plan.h"
#include "rewrite.h"
#include "shim.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern const void *const rdg_wrappers[CALL_COUNT];

#if defined(__x86_64__)
#    define NO_DECODER                                                                                       \
        "this librdgate.so was built without the decoder that it takes (scripts/setup, then make)"
#else
#    define NO_DECODER "entries are redirected on x86_64 only; link librdkafka dynamically"
#endif

static bool allowed; /* the options are known, and they do not forbid it */

/* An object in memory and its file. */
struct image {
    const struct link_map *map;
    const ElfW(Phdr) * segments;
    int segment_count;
    uintptr_t from, to;
    char path[1024];
    struct elf_file file;
};

/* ------------------------------------------------------------------ files */

static bool open_file(struct elf_file *f, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    void *p = MAP_FAILED;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (p == MAP_FAILED)
        return false;
    if (elf_file_open(f, p, (size_t)st.st_size))
        return true;
    munmap(p, (size_t)st.st_size);
    return false;
}

static void close_file(struct elf_file *f)
{
    if (f->bytes)
        munmap((void *)f->bytes, f->size);
    f->bytes = NULL;
}

static int find_segments(struct dl_phdr_info *info, size_t size, void *with)
{
    struct image *im = with;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC &&
            info->dlpi_addr + info->dlpi_phdr[i].p_vaddr == (uintptr_t)im->map->l_ld) {
            im->segments = info->dlpi_phdr;
            im->segment_count = info->dlpi_phnum;
            return 1;
        }
    }
    return 0;
}

/* The file must be the one that was loaded: the same header, in memory and in the file. */
static bool same_file(const struct image *im)
{
    const ElfW(Phdr) *first = NULL;
    for (int i = 0; i < im->segment_count && !first; i++)
        if (im->segments[i].p_type == PT_LOAD)
            first = &im->segments[i];
    return first && first->p_offset == 0 && first->p_filesz >= sizeof(Elf64_Ehdr) &&
           memcmp((const void *)(im->map->l_addr + first->p_vaddr), im->file.header, sizeof(Elf64_Ehdr)) == 0;
}

static bool open_image(struct image *im, const struct link_map *map, bool executable)
{
    memset(im, 0, sizeof(*im));
    im->map = map;
    dl_iterate_phdr(find_segments, im);
    im->from = UINTPTR_MAX;
    for (int i = 0; i < im->segment_count; i++) {
        const ElfW(Phdr) *p = &im->segments[i];
        if (p->p_type != PT_LOAD)
            continue;
        uintptr_t from = map->l_addr + p->p_vaddr, to = from + p->p_memsz;
        im->from = from < im->from ? from : im->from;
        im->to = to > im->to ? to : im->to;
    }
    /* Not /proc/self/exe alone: of a program started as "ld.so program" that is the loader. */
    struct mapping m;
    if (im->to && maps_find((uintptr_t)map->l_ld, &m))
        memcpy(im->path, m.path, sizeof(im->path));
    if (!im->to)
        return false;
    if (executable && open_file(&im->file, "/proc/self/exe")) {
        if (same_file(im))
            return true;
        close_file(&im->file);
    }
    if (im->path[0] == '/' && open_file(&im->file, im->path)) {
        if (same_file(im))
            return true;
        close_file(&im->file);
    }
    return false;
}

/* ------------------------------------------------------------------ symbols from elsewhere */

static bool same_build(const struct elf_file *a, const struct elf_file *b)
{
    const uint8_t *x, *y;
    size_t n = elf_file_build_id(a, &x);
    return n && elf_file_build_id(b, &y) == n && memcmp(x, y, n) == 0;
}

static bool try_debug_file(struct elf_file *f, const struct image *im, const char *path)
{
    if (!open_file(f, path))
        return false;
    if (same_build(f, &im->file))
        return true;
    close_file(f);
    return false;
}

/* Where gdb looks: by build-id, then by the name in .gnu_debuglink. The build-id must agree either way. */
static bool open_debug_file(struct elf_file *f, const struct image *im)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *id;
    size_t n = elf_file_build_id(&im->file, &id);
    if (!n)
        return false;
    struct text t = {0};
    text_add(&t, "/usr/lib/debug/.build-id/");
    for (size_t i = 0; i < n; i++) {
        char hex[4] = {digits[id[i] >> 4], digits[id[i] & 15], i == 0 ? '/' : 0, 0};
        text_add(&t, hex);
    }
    text_add(&t, ".debug");
    if (try_debug_file(f, im, text_end(&t)))
        return true;
    const char *name = elf_file_debuglink(&im->file), *slash = strrchr(im->path, '/');
    if (!name || !slash || strlen(name) > 200 || strchr(name, '/'))
        return false;
    static const char *const where[][2] = {{"", ""}, {"", ".debug/"}, {"/usr/lib/debug", ""}};
    for (int i = 0; i < 3; i++) {
        char directory[1024] = "";
        strncat(directory, im->path, (size_t)(slash - im->path) + 1);
        t = (struct text){0};
        text_add(&t, where[i][0]);
        text_add(&t, directory);
        text_add(&t, where[i][1]);
        text_add(&t, name);
        if (strlen(directory) < 700 && try_debug_file(f, im, text_end(&t)))
            return true;
    }
    return false;
}

/* Without symbols only its strings tell that librdkafka is there. */
static bool speaks_of_it(const struct image *im)
{
    static const char property[] = "topic.metadata.refresh.sparse";
    for (int i = 0; i < im->segment_count; i++) {
        const ElfW(Phdr) *p = &im->segments[i];
        if (p->p_type == PT_LOAD && (p->p_flags & (PF_R | PF_W)) == PF_R &&
            memmem((const void *)(im->map->l_addr + p->p_vaddr), p->p_filesz, property, sizeof(property)))
            return true;
    }
    return false;
}

static bool find_inside(struct inside *in, const struct elf_file *f, uint32_t type)
{
    struct elf_symbols s;
    /* Most programs that come so far have no librdkafka: their names are read once, and no symbol. */
    return elf_file_symbols(f, type, &s) && memmem(s.names, s.names_size, "rd_kafka_", 9) &&
           inside_find(in, f, &s, type == SHT_SYMTAB) && in->public;
}

static bool has_symbols(const struct elf_file *f)
{
    struct elf_symbols s;
    return elf_file_symbols(f, SHT_SYMTAB, &s) && s.count > 1;
}

/* ------------------------------------------------------------------ deciding */

struct work {
    struct image im;
    struct inside in;
    struct library lib;
    struct plan plans[CALL_COUNT];
    bool planned[CALL_COUNT];
    int count; /* entries to redirect */
    int left;  /* entries that cannot be, and need not */
};

static void no(const struct work *w, const char *why)
{
    if (!rdg_awake)
        shim_awake();
    report_uncovered(w->im.path[0] ? w->im.path : "the executable", why);
}

static void no_function(const struct work *w, int call, const char *why)
{
    struct text t = {0};
    text_add(&t, rdg_calls[call].name);
    text_add(&t, " cannot be redirected, ");
    text_add(&t, why);
    no(w, text_end(&t));
}

/* 0, or the reason why there is no telling. */
static const char *recognised(struct work *w)
{
    const struct where *p = w->in.place;
    /* The names that no copy lacks, however much of it the linker dropped. */
    bool there = p[CALL_rd_kafka_new].at && p[CALL_rd_kafka_destroy].at &&
                 p[CALL_rd_kafka_consumer_close].at &&
                 (p[CALL_rd_kafka_consumer_poll].at || p[CALL_rd_kafka_queue_poll].at);
    if (w->in.lto || (!there && w->in.public >= 8))
        return "it was built with link-time optimisation, and its functions are not all there; build it "
               "without";
    for (int i = 0; i < INSIDE_COUNT; i++)
        if (p[i].odd && (i >= CALL_COUNT || rdg_calls[i].class != PASS))
            return "its functions are there twice";
    return there ? NULL : "";
}

/* The functions without which nothing may be gated. */
static bool vital(int call)
{
    uint8_t class = rdg_calls[call].class;
    return class == POLL || class == CLOSE || class == DEATH || call == CALL_rd_kafka_new;
}

static const void *entry_of(int call, int library)
{
    uint8_t class = rdg_calls[call].class;
    const void *own = class == PASS || class == BIRTH ? odd_entry(call, library) : NULL;
    return own ? own : class == PASS ? NULL : rdg_wrappers[call];
}

static const char *plan_one(struct work *w, int call)
{
    const struct where *p = &w->in.place[call];
    uint64_t readable = p->next - p->at;
    if (p->size < readable && readable - p->size > 64)
        readable = p->size + 64;
    const uint8_t *file = elf_file_at(&w->im.file, p->at, readable);
    const uint8_t *code = (const uint8_t *)(w->im.map->l_addr + p->at);
    if (!file || !p->size || p->at > w->im.to)
        return "it is not in the file";
    for (int i = 0; i < CALL_COUNT; i++)
        if (i != call && w->in.place[i].at == p->at)
            return "it is the same as another one";
    if (memcmp(file, code, readable < 32 ? readable : 32) != 0)
        return "somebody has written into it already (a breakpoint, a probe)";
    struct plan *plan = &w->plans[call];
    const char *why = plan_entry(plan, file, p->size, readable, (uintptr_t)code);
    if (why || !p->cold)
        return why;
    const uint8_t *cold = elf_file_at(&w->im.file, p->cold, p->cold_size);
    return !cold || plan_disturbed(plan, cold, p->cold_size, w->im.map->l_addr + p->cold)
               ? "it jumps into its own first bytes"
               : NULL;
}

static bool plan_all(struct work *w)
{
    for (int i = 0; i < CALL_COUNT; i++) {
        if (!w->in.place[i].at || !entry_of(i, 0))
            continue;
        const char *why = plan_one(w, i);
        if (why && vital(i)) {
            no_function(w, i, why);
            return false;
        }
        w->planned[i] = !why;
        w->count += !why;
        w->left += !!why;
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
    text_add(&t, "); link librdkafka dynamically");
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

static const char *how_to_keep_symbols(const struct elf_file *f)
{
    if (elf_file_section(f, ".go.buildinfo"))
        return "its symbols are stripped; build it without -ldflags -s (-w may stay), or with -tags dynamic";
    return "its symbols are stripped; keep them, or put the debug file where gdb finds it, or link "
           "librdkafka "
           "dynamically";
}

static bool symbols_found(struct work *w)
{
    struct elf_file debug;
    if (find_inside(&w->in, &w->im.file, SHT_SYMTAB) || find_inside(&w->in, &w->im.file, SHT_DYNSYM))
        return true;
    if (has_symbols(&w->im.file) || !speaks_of_it(&w->im))
        return false;
    bool found = open_debug_file(&debug, &w->im);
    if (found) {
        found = find_inside(&w->in, &debug, SHT_SYMTAB);
        close_file(&debug);
    }
    if (!found)
        no(w, how_to_keep_symbols(&w->im.file));
    return found;
}

static bool others_run(void)
{
    struct stat st;
    return stat("/proc/self/task", &st) == 0 && st.st_nlink > 3;
}

static void examine(struct work *w)
{
    if (!symbols_found(w))
        return;
    const char *why = recognised(w);
    if (why) {
        if (*why)
            no(w, why);
    } else if (!plan_possible()) {
        no(w,
           "this librdgate.so was built without the decoder that it takes (scripts/setup, then make)");
    } else if (!make_library(w)) {
        no(w, "it is not one that we know");
    } else if (others_run() && elf_dynamic(w->im.map, DT_PREINIT_ARRAY)) {
        no(w, "threads run already");
    } else if (plan_all(w)) {
        redirect(w);
    }
}

static void patch(const struct link_map *map, bool executable)
{
    int saved = errno;
    struct work *w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (w == MAP_FAILED)
        return;
    if (open_image(&w->im, map, executable)) {
        examine(w);
        close_file(&w->im.file);
    } else if (w->im.to && speaks_of_it(&w->im)) {
        no(w, "its file cannot be read");
    }
    munmap(w, sizeof(*w));
    errno = saved;
}

void patch_executable(void)
{
    allowed = true;
    const struct link_map *map = real_executable();
    /* librdkafka resolves host names, starts threads, and names them or throws dice. Who binds it dynamically
     * needs nothing of this. */
    if (map && elf_undefined(map, "getaddrinfo") && !elf_undefined(map, "rd_kafka_new") &&
        (elf_undefined(map, "thrd_create") || elf_undefined(map, "pthread_create")) &&
        (elf_undefined(map, "pthread_setname_np") || elf_undefined(map, "rand_r")))
        patch(map, true);
}

/* A copy whose names are all in the full table and none in the dynamic one. */
static bool is_hidden_copy(const struct elf_file *f)
{
    struct elf_symbols s;
    bool resolves = false;
    if (!elf_file_symbols(f, SHT_DYNSYM, &s))
        return false;
    for (size_t i = 0; i < s.count; i++) {
        const char *name = elf_symbol_name(&s, &s.first[i]);
        resolves |= s.first[i].st_shndx == SHN_UNDEF && strcmp(name, "getaddrinfo") == 0;
        if (strcmp(name, "rd_kafka_new") == 0)
            return false;
    }
    if (!resolves || !elf_file_symbols(f, SHT_SYMTAB, &s))
        return false;
    for (size_t i = 0; i < s.count; i++)
        if (strcmp(elf_symbol_name(&s, &s.first[i]), "rd_kafka_new") == 0)
            return true;
    return false;
}

/* The modules that are being opened. An object that was there before is left alone: threads may be in it. One
 * that another thread is just opening is redirected by whoever comes out of the loader first, and the others
 * wait. */
#define OPENING 16
static struct opening {
    uint64_t file; /* 0: free */
    int threads;
} opening[OPENING];
static struct lock patching; /* held while entries are written, never while the loader is asked */

static struct opening *opening_begins(uint64_t file, bool *others)
{
    struct opening *mine = NULL;
    lock_take(&patching);
    for (int i = 0; i < OPENING; i++) {
        if (opening[i].file == file) {
            mine = &opening[i];
            break;
        }
        if (!opening[i].file && !mine)
            mine = &opening[i];
    }
    if (mine) {
        *others = mine->threads > 0;
        mine->file = file;
        mine->threads++;
    }
    lock_drop(&patching);
    return mine;
}

void patch_module(const char *file, int flags)
{
    if (!allowed)
        return;
    int saved = errno;
    struct elf_file f;
    struct stat st;
    bool hidden = stat(file, &st) == 0 && open_file(&f, file);
    if (hidden) {
        hidden = is_hidden_copy(&f);
        close_file(&f);
    }
    bool others = false, was_there;
    struct opening *mine = hidden ? opening_begins(st.st_ino * 65599 + st.st_dev + 1, &others) : NULL;
    if (mine) {
        const struct link_map *map = real_open(file, flags, &was_there);
        lock_take(&patching);
        if (map && (!was_there || others) && !library_known(map))
            patch(map, false);
        if (--mine->threads == 0)
            mine->file = 0;
        lock_drop(&patching);
    }
    errno = saved;
}

void patch_after_fork(void)
{
    patching.word = 0;
    memset(opening, 0, sizeof(opening));
}
