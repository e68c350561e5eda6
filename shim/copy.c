/*
 * copy.c: see copy.h.
 */
#include "copy.h"
#include "say.h"

#include <string.h>

static bool find_in(struct inside *in, const struct elf_file *f, uint32_t type)
{
    struct elf_symbols s;
    /* Most programs that come so far have no librdkafka: their names are read once, and no symbol. */
    return elf_file_symbols(f, type, &s) && s.names && memmem(s.names, s.names_size, "rd_kafka_", 9) &&
           inside_find(in, f, &s, type == SHT_SYMTAB) && in->public;
}

bool copy_find(struct inside *in, const struct elf_file *f)
{
    return find_in(in, f, SHT_SYMTAB) || find_in(in, f, SHT_DYNSYM);
}

bool copy_has_symbols(const struct elf_file *f)
{
    struct elf_symbols s;
    return elf_file_symbols(f, SHT_SYMTAB, &s) && s.count > 1;
}

bool copy_speaks(const struct elf_file *f)
{
    static const char property[] = "topic.metadata.refresh.sparse";
    static const unsigned kinds[] = {PF_R, PF_R | PF_X}; /* most linkers keep strings apart from code */
    Elf64_Phdr p;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
        uint64_t done = 0; /* no byte is looked at twice, however the segments overlap */
        for (unsigned i = 0; f->bytes && elf_file_segment(f, i, &p); i++) {
            if (p.p_type != PT_LOAD || (p.p_flags & (PF_R | PF_W | PF_X)) != kinds[k] ||
                p.p_offset > f->size || p.p_filesz > f->size - p.p_offset)
                continue;
            uint64_t from = p.p_offset < done ? done : p.p_offset, to = p.p_offset + p.p_filesz;
            if (from < to && memmem(f->bytes + from, to - from, property, sizeof(property)))
                return true;
            done = to > done ? to : done;
        }
    }
    return false;
}

bool copy_is_hidden(const struct elf_file *f)
{
    struct elf_symbols s;
    bool resolves = false;
    if (!elf_file_symbols(f, SHT_DYNSYM, &s) || !s.first)
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

bool copy_possible(bool (*asks)(const void *object, const char *name), const void *object)
{
    return asks(object, "getnameinfo") && asks(object, "getaddrinfo") && !asks(object, "rd_kafka_new") &&
           asks(object, "sendmsg") && asks(object, "recvmsg") &&
           (asks(object, "thrd_create") || asks(object, "pthread_create")) &&
           (asks(object, "pthread_setname_np") || asks(object, "rand_r"));
}

/* What the gate itself calls, whatever the application does; every librdkafka since 1.5 has them. */
static bool lacks_needed(const struct inside *in)
{
    static const int calls[] = {
        CALL_rd_kafka_conf,
        CALL_rd_kafka_last_error,
        CALL_rd_kafka_queue_new,
        CALL_rd_kafka_queue_destroy,
        CALL_rd_kafka_queue_get_consumer,
        CALL_rd_kafka_queue_get_main,
        CALL_rd_kafka_queue_get_partition,
        CALL_rd_kafka_consume_queue,
        CALL_rd_kafka_destroy_flags,
    };
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
        if (!in->place[calls[i]].at)
            return true;
    for (int i = CALL_COUNT; i < INSIDE_COUNT; i++)
        if (!in->place[i].at && strncmp(inside_name(i), "rd_kafka_conf_set_", 18) != 0)
            return true; /* of those only the ones that the application uses */
    return false;
}

/* The smallest that was seen has 1008 (2.0.2, dynamic symbols alone). */
#define NAMES_LEAST 200

const char *copy_recognised(const struct inside *in)
{
    const struct where *p = in->place;
    /* The names that no copy lacks, however much of it the linker dropped. */
    bool there = p[CALL_rd_kafka_new].at && p[CALL_rd_kafka_destroy].at &&
                 p[CALL_rd_kafka_consumer_close].at &&
                 (p[CALL_rd_kafka_consumer_poll].at || p[CALL_rd_kafka_queue_poll].at);
    if (in->lto || (!there && in->public >= 8))
        return "it was built with link-time optimisation, and its functions are not all there; build it "
               "without";
    if (there && in->public < NAMES_LEAST)
        return "too few of its functions have names to be sure of it";
    if (there && lacks_needed(in))
        return "the linker has dropped functions that rdgate needs; link it without --gc-sections (Rust: "
               "RUSTFLAGS=-Clink-dead-code, or without the feature cmake-build)";
    for (int i = 0; i < INSIDE_COUNT; i++)
        if (p[i].odd && (i >= CALL_COUNT || rdg_calls[i].class != PASS))
            return "its functions are there twice";
    return there ? NULL : "";
}

bool copy_vital(int call)
{
    uint8_t class = rdg_calls[call].class;
    return class == POLL || class == CLOSE || class == DEATH || call == CALL_rd_kafka_new;
}

const char *copy_plan(struct plan *plan, const struct inside *in, const struct elf_file *f, int call,
                      uint64_t load)
{
    const struct where *p = &in->place[call];
    uint64_t readable = p->next - p->at;
    if (p->size < readable && readable - p->size > 64)
        readable = p->size + 64;
    const uint8_t *code = p->size ? elf_file_at(f, p->at, readable) : NULL;
    if (!code)
        return "it is not in the file";
    for (int i = 0; i < CALL_COUNT; i++)
        if (i != call && in->place[i].at == p->at)
            return "it is the same as another one";
    const char *why = plan_entry(plan, code, p->size, readable, load + p->at);
    if (why || !p->cold)
        return why;
    const uint8_t *cold = elf_file_at(f, p->cold, p->cold_size);
    return !cold || plan_disturbed(plan, cold, p->cold_size, load + p->cold)
               ? "it jumps into its own first bytes"
               : NULL;
}

const char *copy_keep_symbols(const struct elf_file *f)
{
    if (elf_file_section(f, ".go.buildinfo"))
        return "its symbols are stripped; build it without -ldflags -s (-w may stay), or with -tags dynamic";
    return "its symbols are stripped; keep them, or put the debug file where gdb finds it, or link "
           "librdkafka dynamically";
}

bool copy_debug_file(const struct elf_file *f, const char *path, int place, char *to, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    static const char *const where[][2] = {{"", ""}, {"", ".debug/"}, {"/usr/lib/debug", ""}};
    const uint8_t *id;
    size_t n = elf_file_build_id(f, &id);
    struct text t = {0};
    if (!n || place < 0 || place > 3)
        return false;
    if (place == 0) {
        text_add(&t, "/usr/lib/debug/.build-id/");
        for (size_t i = 0; i < n; i++) {
            char hex[4] = {digits[id[i] >> 4], digits[id[i] & 15], i == 0 ? '/' : 0, 0};
            text_add(&t, hex);
        }
        text_add(&t, ".debug");
    } else {
        const char *name = elf_file_debuglink(f), *slash = strrchr(path, '/');
        char directory[1024] = "";
        if (!name || !slash || slash - path >= 700 || strlen(name) > 200 || strchr(name, '/'))
            return false;
        strncat(directory, path, (size_t)(slash - path) + 1);
        text_add(&t, where[place - 1][0]);
        text_add(&t, directory);
        text_add(&t, where[place - 1][1]);
        text_add(&t, name);
    }
    if (strlen(text_end(&t)) >= size)
        return false;
    memcpy(to, t.bytes, t.used + 1);
    return true;
}

bool copy_same_build(const struct elf_file *a, const struct elf_file *b)
{
    const uint8_t *x, *y;
    size_t n = elf_file_build_id(a, &x);
    return n && elf_file_build_id(b, &y) == n && memcmp(x, y, n) == 0;
}
