/*
 * inside.c: see inside.h. Two passes over all symbols and no sorting but of the library's own: the file may
 * have hundreds of thousands.
 */
#include "inside.h"

#include <string.h>
#include <sys/mman.h>

static const char *const helper_names[] = {
#define X(name) #name,
    FOR_HELPERS(X)
#undef X
};

const char *inside_name(int i)
{
    return i < CALL_COUNT ? rdg_calls[i].name : helper_names[i - CALL_COUNT];
}

/* ------------------------------------------------------------------ names */

#define SLOTS 1024

struct names {
    int16_t slot[SLOTS];
};

static unsigned hash(const char *s, size_t n)
{
    unsigned h = 5381;
    for (size_t i = 0; i < n; i++)
        h = h * 33 + (unsigned char)s[i];
    return h ^ h >> 15;
}

static void names_fill(struct names *n)
{
    memset(n, 0xff, sizeof(*n));
    for (int i = 0; i < INSIDE_COUNT; i++) {
        unsigned h = hash(inside_name(i), strlen(inside_name(i)));
        while (n->slot[h % SLOTS] >= 0)
            h++;
        n->slot[h % SLOTS] = (int16_t)i;
    }
}

static int names_find(const struct names *n, const char *s, size_t len)
{
    for (unsigned h = hash(s, len); n->slot[h % SLOTS] >= 0; h++) {
        const char *name = inside_name(n->slot[h % SLOTS]);
        if (strncmp(name, s, len) == 0 && name[len] == 0)
            return n->slot[h % SLOTS];
    }
    return -1;
}

static bool begins(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

enum mark { FOREIGN, WEAK, STRONG };

/* Whose is this symbol? WEAK: the name is one of the library's, but others may have such, too. */
static enum mark mark(const char *name, bool in_its_file)
{
    static const char *const others[] = {
        "unittest_",
        "ut_",
        "unit_test_",
        "verify",
        "isFully",
        "thrd_",
        "mtx_",
        "cnd_",
        "tss_",
        "call_once",
        "cJSON_",
        "LZ4",
        "XXH",
        "snappy_",
        "crc32c",
        "print_",
        "ConsumerPair",
        "ConsumerGen",
        "PartitionMovements",
    };
    if (in_its_file)
        return STRONG;
    if (*name == 'r') {
        if (begins(name, "rd_kafka_"))
            return STRONG;
        return begins(name, "rd_") || begins(name, "rdk_") ? WEAK : FOREIGN;
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (*name == *others[i] && begins(name, others[i]))
            return WEAK;
    return FOREIGN;
}

/* ------------------------------------------------------------------ walking over the symbols */

struct walk {
    const struct elf_file *f;
    const struct elf_symbols *s;
    size_t i;
    bool in_its_file;
    const Elf64_Sym *symbol;
    const char *name;
    enum mark mark;
};

/* The next symbol that stands in code. */
static bool walk(struct walk *w)
{
    while (w->i < w->s->count) {
        const Elf64_Sym *y = w->symbol = &w->s->first[w->i++];
        unsigned type = ELF64_ST_TYPE(y->st_info);
        if (type == STT_FILE) {
            const char *file = elf_symbol_name(w->s, y);
            size_t n = strlen(file);
            w->in_its_file = begins(file, "rd") && n > 4 && strcmp(file + n - 2, ".c") == 0;
            continue;
        }
        if (!elf_symbol_is_code(w->f, y))
            continue;
        w->name = elf_symbol_name(w->s, y);
        if (*w->name == '.' || *w->name == '$' || *w->name == 0)
            continue; /* labels of assemblers and compilers */
        bool local = ELF64_ST_BIND(y->st_info) == STB_LOCAL;
        w->mark = mark(w->name, local && w->in_its_file);
        return true;
    }
    return false;
}

/* ------------------------------------------------------------------ what is the library's */

struct piece {
    uint64_t at, size;
    uint64_t foreign; /* the first symbol of somebody else behind it, before the next piece; 0: none */
    bool strong, public;
};

static void sift(struct piece *p, size_t root, size_t n)
{
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && p[child].at < p[child + 1].at)
            child++;
        if (p[root].at >= p[child].at)
            return;
        struct piece t = p[root];
        p[root] = p[child];
        p[child] = t;
    }
}

static void sort(struct piece *p, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift(p, i, n);
    for (size_t i = n; i-- > 1;) {
        struct piece t = p[0];
        p[0] = p[i];
        p[i] = t;
        sift(p, 0, i);
    }
}

/* Several names of one address become one piece. */
static size_t merge(struct piece *p, size_t n)
{
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        if (out && p[out - 1].at == p[i].at) {
            p[out - 1].strong |= p[i].strong;
            p[out - 1].public |= p[i].public;
            if (p[i].size > p[out - 1].size)
                p[out - 1].size = p[i].size;
        } else {
            p[out++] = p[i];
        }
    }
    return out;
}

/* The last piece that begins at or before this address; n if none does. */
static size_t piece_before(const struct piece *p, size_t n, uint64_t at)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (p[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : n;
}

static uint64_t end_of(const struct piece *p)
{
    uint64_t end = p->at + (p->size ? p->size : 1);
    return p->foreign && p->foreign < end ? p->foreign : end;
}

#define LEAST_RUN 8    /* an application may call a function or two of its own rd_something */
#define MOST_GAP  4096 /* in a table where nothing is missing */

static void keep_span(struct inside *in, struct span s)
{
    int i = in->spans;
    if (i ==
        SPANS) { /* the smallest makes room: an internal call that is not known as such does little harm */
        int least = 0;
        for (int k = 1; k < SPANS; k++)
            if (in->own[k].to - in->own[k].from < in->own[least].to - in->own[least].from)
                least = k;
        if (s.to - s.from <= in->own[least].to - in->own[least].from)
            return;
        i = least;
    } else {
        in->spans++;
    }
    in->own[i] = s;
}

/* Runs of consecutive symbols of the library, from one that is its own for sure to another. */
static void find_spans(struct inside *in, const struct piece *p, size_t n, bool whole)
{
    for (size_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && !p[next - 1].foreign; next++)
            if (whole && p[next].at - end_of(&p[next - 1]) > MOST_GAP && p[next].at > end_of(&p[next - 1]))
                break;
        size_t first = i, last = next - 1;
        while (first < last && !p[first].strong)
            first++;
        while (last > first && !p[last].strong)
            last--;
        bool public = false;
        for (size_t k = first; k <= last; k++)
        public |= p[k].public;
        if (public && last - first + 1 >= LEAST_RUN)
            keep_span(in, (struct span){p[first].at, end_of(&p[last])});
    }
}

static void note(struct inside *in, const struct names *names, const struct walk *w)
{
    const Elf64_Sym *y = w->symbol;
    const char *dot = strchr(w->name, '.');
    size_t len = dot ? (size_t)(dot - w->name) : strlen(w->name);
    in->public ++;
    in->lto |= dot && begins(dot, ".lto_priv");
    int i = names_find(names, w->name, len);
    if (i < 0)
        return;
    struct where *p = &in->place[i];
    if (dot) {
        if (strcmp(dot, ".cold") == 0) {
            p->cold = y->st_value;
            p->cold_size = y->st_size;
        }
        return;
    }
    if (ELF64_ST_TYPE(y->st_info) != STT_FUNC || (p->at && p->at != y->st_value))
        p->odd = true;
    p->at = y->st_value;
    p->size = y->st_size;
}

static void find(struct inside *in, struct piece *p, const struct walk *from, bool whole)
{
    struct names names;
    names_fill(&names);
    size_t n = 0;
    for (struct walk w = *from; walk(&w);) {
        if (w.mark == FOREIGN)
            continue;
        bool public = begins(w.name, "rd_kafka_");
        p[n++] = (struct piece){w.symbol->st_value, w.symbol->st_size, 0, w.mark == STRONG, public};
        if (public)
            note(in, &names, &w);
    }
    if (!in->public)
        return;
    sort(p, n);
    n = merge(p, n);
    for (struct walk w = *from; walk(&w);) {
        uint64_t at = w.symbol->st_value;
        if (w.mark != FOREIGN || at <= p[0].at)
            continue;
        size_t i = piece_before(p, n, at);
        if (p[i].at != at && (!p[i].foreign || at < p[i].foreign))
            p[i].foreign = at;
    }
    find_spans(in, p, n, whole);
    for (int i = 0; i < INSIDE_COUNT; i++) {
        struct where *f = &in->place[i];
        if (!f->at)
            continue;
        size_t k = piece_before(p, n, f->at);
        uint64_t next = k + 1 < n ? p[k + 1].at : f->at + f->size + 16;
        f->next = p[k].foreign && p[k].foreign < next ? p[k].foreign : next;
    }
}

bool inside_find(struct inside *in, const struct elf_file *f, const struct elf_symbols *s, bool whole)
{
    memset(in, 0, sizeof(*in));
    if (!s->count)
        return true;
    size_t size = s->count * sizeof(struct piece);
    void *scratch =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (scratch == MAP_FAILED)
        return false;
    find(in, scratch, &(struct walk){.f = f, .s = s}, whole);
    munmap(scratch, size);
    return true;
}
