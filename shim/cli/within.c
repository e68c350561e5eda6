/*
 * within.c: see within.h.
 */
#include "within.h"

#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

bool within(const struct loaded *l, bool program)
{
    struct inside in;
    /* Whoever has nothing of what librdkafka calls for is not searched. */
    if (!copy_possible(binary_asks, &l->b))
        return false;
    if (program ? copy_find(&in, &l->b.f) : copy_is_hidden(&l->b.f)) {
        const char *why = copy_find(&in, &l->b.f) ? copy_recognised(&in) : "";
        return !why || *why;
    }
    return !copy_has_symbols(&l->b.f) && copy_speaks(&l->b.f);
}

const char *within_advice(const struct binary *b)
{
    if (binary_contains(b, "\xff Go buildinf:") || elf_file_section(&b->f, ".go.buildinfo"))
        return "go build -tags dynamic";
    if (binary_contains(b, "/rustc/"))
        return "the crate's feature dynamic-linking (rdkafka = { features = [\"dynamic-linking\"] })";
    return "librdkafka linked dynamically (-lrdkafka)";
}

/* Symbols from the debug file, as the shim looks for it. */
static bool find_in_debug_file(struct covers *c, struct inside *in, const struct loaded *l)
{
    char path[PATH_MAX];
    for (int place = 0; copy_debug_file(&l->b.f, l->path, place, path, sizeof(path)); place++) {
        struct binary b;
        int fd = world_open(&c->world, path);
        if (fd < 0)
            continue;
        const char *why = binary_map(&b, fd);
        close(fd);
        if (why)
            continue;
        bool found = elf_file_open(&b.f, b.f.bytes, (size_t)b.st.st_size) && copy_same_build(&b.f, &l->b.f);
        bool good = found && copy_find(in, &b.f);
        if (good)
            covers_say(c, LEVEL_NOTE, NULL, "its symbols are in %s", path);
        binary_close(&b);
        if (found)
            return good;
    }
    return false;
}

/* Has somebody, we, written into the entry of this process's function? -1: it cannot be seen. */
static int is_redirected(const struct covers *c, const struct loaded *l, const struct inside *in)
{
    uint64_t at = in->place[CALL_rd_kafka_new].at;
    uint8_t now[16];
    const uint8_t *file = elf_file_at(&l->b.f, at, sizeof(now));
    Elf64_Phdr p;
    uint64_t first = 0;
    for (unsigned i = 0; elf_file_segment(&l->b.f, i, &p); i++) {
        if (p.p_type == PT_LOAD && p.p_offset == 0) {
            first = p.p_vaddr;
            break;
        }
    }
    struct iovec here = {now, sizeof(now)}, there = {(void *)(l->base - first + at), sizeof(now)};
    if (!file || !l->base || process_vm_readv(c->pid, &here, 1, &there, 1, 0) != (ssize_t)sizeof(now))
        return -1;
    return memcmp(file, now, sizeof(now)) != 0;
}

/* The copy in l, of which the symbols are known: can its entries be redirected? */
static const char *judge(const struct inside *in, const struct elf_file *f, int *count)
{
    static char words[256];
    const char *why = copy_recognised(in);
    *count = 0;
    if (why)
        return *why ? why : "not all that makes a librdkafka is there";
    if (!plan_possible())
#if defined(__x86_64__)
        return "rdgate was built without the decoder that it takes (scripts/setup, then make)";
#else
        return "entries are redirected on x86_64 only";
#endif
    for (int i = 0; i < CALL_COUNT; i++) {
        struct plan plan;
        if (!in->place[i].at || rdg_calls[i].class == PASS)
            continue;
        why = copy_plan(&plan, in, f, i, 0);
        if (why && copy_vital(i)) {
            snprintf(words, sizeof(words), "%s cannot be redirected, %s", rdg_calls[i].name, why);
            return words;
        }
        *count += !why;
    }
    return NULL;
}

void within_say(struct covers *c, const struct loaded *l, bool program)
{
    struct inside in;
    char where[PATH_MAX + 32], more[512];
    int count;
    unsigned version = 0;
    if (program)
        snprintf(where, sizeof(where), "this program");
    else
        snprintf(where, sizeof(where), "%s", l->path);
    snprintf(more, sizeof(more),
             "LD_PRELOAD cannot replace calls that never leave the file. Build it with %s.",
             within_advice(&l->b));
    bool found = copy_find(&in, &l->b.f);
    /* A module is only looked into for names that are there. */
    if (!found && program && !copy_has_symbols(&l->b.f))
        found = find_in_debug_file(c, &in, l);
    if (!found) {
        covers_library(c, l->path, 0, false);
        covers_say(c, LEVEL_NO, more, "librdkafka is inside %s: %s", where,
                   copy_has_symbols(&l->b.f) ? "its functions cannot be found" : copy_keep_symbols(&l->b.f));
        return;
    }
    version = binary_version(&l->b, &in);
    const char *why = judge(&in, &l->b.f, &count);
    covers_library(c, l->path, version, !why && c->options.patch == PATCH_AUTO);
    if (why) {
        covers_say(c, LEVEL_NO, more, "librdkafka %s is inside %s: %s", covers_version(version), where, why);
        return;
    }
    int redirected = c->pid ? is_redirected(c, l, &in) : -1;
    if (c->options.patch != PATCH_AUTO && redirected <= 0) {
        if (!c->pid)
            snprintf(more, sizeof(more),
                     "RDGATE_PATCH=auto (rdgate run --patch=auto) redirects them at their entries; or build "
                     "it with %s.",
                     within_advice(&l->b));
        covers_say(c, LEVEL_NO, more,
                   "librdkafka %s is inside %s, where a preload does not reach; %d of its functions can be "
                   "redirected, "
                   "and RDGATE_PATCH is off",
                   covers_version(version), where, count);
        return;
    }
    if (redirected == 0) {
        covers_say(c, LEVEL_NO, NULL,
                   "librdkafka %s is inside %s, and its functions have not been redirected",
                   covers_version(version), where);
        return;
    }
    c->by |= BY_PATCH;
    covers_say(c, LEVEL_OK, NULL,
               "librdkafka %s is inside %s: %d of its functions %s redirected at their entries",
               covers_version(version), where, count, redirected == 1 ? "are" : "will be");
}
