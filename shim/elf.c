/*
 * elf.c: see elf.h. A mapped object is trusted as far as the loader did, which has already followed the same
 * tables to bind it. A file is not trusted at all: every offset, size and count in it may be nonsense.
 */
#include "elf.h"
#include "raw.h"

#include <string.h>
#include <sys/stat.h>

struct tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    const uint32_t *hash;
    uintptr_t soname;
};

/* glibc stores relocated addresses in l_ld, except for the vdso and on a few architectures, musl offsets. */
static uintptr_t relocated(const struct link_map *map, uintptr_t p)
{
    return p < map->l_addr ? p + map->l_addr : p;
}

static int open_tables(const struct link_map *map, struct tables *t)
{
    memset(t, 0, sizeof(*t));
    if (!map->l_ld)
        return -1;
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        uintptr_t p = d->d_un.d_ptr;
        switch (d->d_tag) {
        case DT_SYMTAB: t->symbols = (const void *)relocated(map, p); break;
        case DT_STRTAB: t->strings = (const void *)relocated(map, p); break;
        case DT_GNU_HASH: t->gnu_hash = (const void *)relocated(map, p); break;
        case DT_HASH: t->hash = (const void *)relocated(map, p); break;
        case DT_SONAME: t->soname = d->d_un.d_val + 1; break;
        }
    }
    return t->symbols && t->strings ? 0 : -1;
}

static void *matches(const struct link_map *map, const struct tables *t, uint32_t i, const char *name)
{
    const ElfW(Sym) *s = &t->symbols[i];
    if (s->st_shndx == SHN_UNDEF || s->st_value == 0 || ELF64_ST_TYPE(s->st_info) != STT_FUNC)
        return NULL;
    if (strcmp(t->strings + s->st_name, name) != 0)
        return NULL;
    return (void *)(map->l_addr + s->st_value);
}

static void *by_gnu_hash(const struct link_map *map, const struct tables *t, const char *name)
{
    uint32_t h = 5381;
    for (const unsigned char *p = (const void *)name; *p; p++)
        h = h * 33 + *p;
    const uint32_t *g = t->gnu_hash;
    uint32_t buckets = g[0], first = g[1], words = g[2];
    const uint32_t *bucket = g + 4 + words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chain = bucket + buckets;
    if (!buckets)
        return NULL;
    uint32_t i = bucket[h % buckets];
    if (i < first)
        return NULL;
    for (;; i++) {
        uint32_t stored = chain[i - first];
        if ((stored | 1) == (h | 1)) {
            void *found = matches(map, t, i, name);
            if (found)
                return found;
        }
        if (stored & 1)
            return NULL;
    }
}

static void *by_hash(const struct link_map *map, const struct tables *t, const char *name)
{
    uint32_t h = 0;
    for (const unsigned char *p = (const void *)name; *p; p++) {
        h = (h << 4) + *p;
        uint32_t g = h & 0xf0000000;
        h = (h ^ (g >> 24)) & ~g;
    }
    uint32_t buckets = t->hash[0];
    const uint32_t *chain = t->hash + 2 + buckets;
    for (uint32_t i = buckets ? t->hash[2 + h % buckets] : 0; i; i = chain[i]) {
        void *found = matches(map, t, i, name);
        if (found)
            return found;
    }
    return NULL;
}

void *elf_function(const struct link_map *map, const char *name)
{
    struct tables t;
    if (open_tables(map, &t))
        return NULL;
    if (t.gnu_hash)
        return by_gnu_hash(map, &t, name);
    return t.hash ? by_hash(map, &t, name) : NULL;
}

const char *elf_soname(const struct link_map *map)
{
    struct tables t;
    if (open_tables(map, &t) || !t.soname)
        return NULL;
    return t.strings + t.soname - 1;
}

int elf_range(const void *base, uintptr_t load, uintptr_t *from, uintptr_t *to)
{
    const ElfW(Ehdr) *e = base;
    if (memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_phentsize != sizeof(ElfW(Phdr)))
        return -1;
    const ElfW(Phdr) *p = (const void *)((const char *)base + e->e_phoff);
    uintptr_t least = UINTPTR_MAX, most = 0;
    for (int i = 0; i < e->e_phnum; i++) {
        if (p[i].p_type != PT_LOAD)
            continue;
        if (p[i].p_vaddr < least)
            least = p[i].p_vaddr;
        if (p[i].p_vaddr + p[i].p_memsz > most)
            most = p[i].p_vaddr + p[i].p_memsz;
    }
    if (!most)
        return -1;
    *from = load + least;
    *to = load + most;
    return 0;
}

int elf_dynamic(const struct link_map *map, ElfW(Sxword) tag)
{
    for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++)
        if (d->d_tag == tag)
            return 1;
    return 0;
}

int elf_undefined(const struct link_map *map, const char *name)
{
    struct tables t;
    if (open_tables(map, &t))
        return 0;
    /* The hash tables do not list what is undefined. Linkers put the names behind the symbols. */
    uintptr_t from = (uintptr_t)t.symbols, to = (uintptr_t)t.strings;
    size_t n = t.hash ? t.hash[1] : to > from ? (to - from) / sizeof(ElfW(Sym)) : 0;
    for (size_t i = 1; i < n; i++)
        if (t.symbols[i].st_shndx == SHN_UNDEF && strcmp(t.strings + t.symbols[i].st_name, name) == 0)
            return 1;
    return 0;
}

/* ------------------------------------------------------------------ files */

#if defined(__x86_64__)
#    define MACHINE EM_X86_64
#elif defined(__aarch64__)
#    define MACHINE EM_AARCH64
#endif

#define SECTIONS_MOST 65536
#define SYMBOLS_MOST  (8u << 20) /* a browser has one million */
#define AT_ONCE       32         /* the callers' stacks may be small */

struct file {
    int fd;
    uint64_t size;
    ElfW(Ehdr) head;
    uint64_t sections;
};

/* A part of the file that lies in it whole. */
struct part {
    uint64_t at, size;
};

static bool get(const struct file *f, uint64_t at, void *to, size_t size)
{
    if (at > f->size || size > f->size - at)
        return false;
    for (size_t have = 0; have < size;) {
        long n = raw_read_at(f->fd, (char *)to + have, size - have, at + have);
        if (n == -EINTR)
            continue;
        if (n <= 0)
            return false;
        have += (size_t)n;
    }
    return true;
}

static bool section(const struct file *f, uint64_t i, ElfW(Shdr) * s)
{
    return i < f->sections && f->head.e_shoff <= f->size &&
           get(f, f->head.e_shoff + i * sizeof(*s), s, sizeof(*s));
}

static bool inside(const struct file *f, const ElfW(Shdr) * s, struct part *p)
{
    p->at = s->sh_offset;
    p->size = s->sh_size;
    return s->sh_type != SHT_NOBITS && p->at <= f->size && p->size <= f->size - p->at;
}

static bool open_file(struct file *f, int fd)
{
    struct stat st;
    memset(f, 0, sizeof(*f));
    if (raw(SYS_fstat, fd, (long)&st, 0, 0) || !S_ISREG(st.st_mode) || st.st_size <= 0)
        return false;
    f->fd = fd;
    f->size = (uint64_t)st.st_size;
    if (!get(f, 0, &f->head, sizeof(f->head)) || memcmp(f->head.e_ident, ELFMAG, SELFMAG) != 0 ||
        f->head.e_ident[EI_CLASS] != ELFCLASS64 || f->head.e_ident[EI_DATA] != ELFDATA2LSB ||
        f->head.e_machine != MACHINE || (f->head.e_type != ET_DYN && f->head.e_type != ET_EXEC))
        return false;
    ElfW(Shdr) first;
    if (f->head.e_shentsize == sizeof(first) && f->head.e_shoff) {
        f->sections = f->head.e_shnum;
        if (!f->sections && (f->sections = 1) && section(f, 0, &first)) /* more than fit into e_shnum */
            f->sections = first.sh_size;
        if (f->sections > SECTIONS_MOST)
            f->sections = SECTIONS_MOST;
    }
    return true;
}

/* A symbol table, with its names. */
static bool symbols(const struct file *f, uint32_t type, struct part *table, struct part *names)
{
    ElfW(Shdr) s, strings;
    for (uint64_t i = 0; i < f->sections; i++) {
        if (!section(f, i, &s))
            return false;
        if (s.sh_type == type)
            return s.sh_entsize == sizeof(ElfW(Sym)) && inside(f, &s, table) &&
                   section(f, s.sh_link, &strings) && strings.sh_type == SHT_STRTAB &&
                   inside(f, &strings, names);
    }
    return false;
}

static uint64_t count(const struct part *table)
{
    uint64_t n = table->size / sizeof(ElfW(Sym));
    return n < SYMBOLS_MOST ? n : SYMBOLS_MOST;
}

/* As much of a name as fits; empty if it does not lie in the table. */
static void name_of(const struct file *f, const struct part *names, uint32_t at, char *to, size_t size)
{
    to[0] = 0;
    if (at >= names->size)
        return;
    size_t n = names->size - at < size ? (size_t)(names->size - at) : size;
    if (!get(f, names->at + at, to, n) || (n < size && !memchr(to, 0, n)))
        to[0] = 0;
    to[size - 1] = 0;
    to[strcspn(to, "@")] = 0; /* its version */
}

/* Of several names for one place, the one that people know: __GI___poll, __poll, poll. */
static int familiar(const struct file *f, const struct part *names, const ElfW(Sym) * s)
{
    char start[4];
    name_of(f, names, s->st_name, start, sizeof(start));
    int underscores = (int)strspn(start, "_");
    return start[0] ? 8 - 2 * underscores + (ELF64_ST_BIND(s->st_info) == STB_GLOBAL) : -1;
}

struct best {
    ElfW(Sym) symbol;
    bool any;
    uint64_t
        start; /* of the last function that begins before the address, whether or not it reaches so far */
};

static void consider(const struct file *f, const struct part *names, const ElfW(Sym) * s, uint64_t address,
                     struct best *b)
{
    int type = ELF64_ST_TYPE(s->st_info);
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || s->st_shndx == SHN_UNDEF || s->st_value > address)
        return;
    if (s->st_value > b->start)
        b->start = s->st_value;
    /* Assembler often gives no size; such a name holds up to the next one. */
    if (s->st_size && address - s->st_value >= s->st_size)
        return;
    if (b->any) {
        bool sized = s->st_size, was = b->symbol.st_size;
        if (sized != was ? was : s->st_value < b->symbol.st_value)
            return;
        if (sized == was && s->st_value == b->symbol.st_value &&
            familiar(f, names, s) <= familiar(f, names, &b->symbol))
            return;
    }
    b->symbol = *s;
    b->any = true;
}

static bool function_in(const struct file *f, uint32_t type, uint64_t address, char *to, size_t size)
{
    struct part table, names;
    struct best b = {.any = false};
    if (!symbols(f, type, &table, &names))
        return false;
    ElfW(Sym) some[AT_ONCE];
    for (uint64_t i = 0, n = count(&table); i < n; i += AT_ONCE) {
        uint64_t now = n - i < AT_ONCE ? n - i : AT_ONCE;
        if (!get(f, table.at + i * sizeof(some[0]), some, now * sizeof(some[0])))
            return false;
        for (uint64_t j = 0; j < now; j++)
            consider(f, &names, &some[j], address, &b);
    }
    if (!b.any)
        return false;
    ElfW(Shdr) s;
    if (!b.symbol.st_size && (b.symbol.st_value < b.start || !section(f, b.symbol.st_shndx, &s) ||
                              address < s.sh_addr || address - s.sh_addr >= s.sh_size))
        return false;
    name_of(f, &names, b.symbol.st_name, to, size);
    return to[0] != 0;
}

bool elf_place(int fd, uint64_t at, uint64_t *address, char *function, size_t size)
{
    struct file f;
    ElfW(Phdr) p;
    function[0] = 0;
    if (!open_file(&f, fd) || f.head.e_phentsize != sizeof(p) || f.head.e_phoff > f.size)
        return false;
    for (uint64_t i = 0; i < f.head.e_phnum; i++) {
        if (!get(&f, f.head.e_phoff + i * sizeof(p), &p, sizeof(p)))
            return false;
        if (p.p_type != PT_LOAD || !(p.p_flags & PF_X) || at < p.p_offset || at - p.p_offset >= p.p_filesz)
            continue;
        *address = p.p_vaddr + (at - p.p_offset);
        if (!function_in(&f, SHT_SYMTAB, *address, function, size) &&
            !function_in(&f, SHT_DYNSYM, *address, function, size))
            function[0] = 0;
        return true;
    }
    return false;
}

bool elf_imports(int fd, const char *name)
{
    struct file f;
    struct part table, names;
    char found[64];
    if (!open_file(&f, fd) || !symbols(&f, SHT_DYNSYM, &table, &names))
        return false;
    for (uint64_t i = 0, n = count(&table); i < n; i++) {
        ElfW(Sym) s;
        if (!get(&f, table.at + i * sizeof(s), &s, sizeof(s)))
            return false;
        if (s.st_shndx != SHN_UNDEF)
            continue;
        name_of(&f, &names, s.st_name, found, sizeof(found));
        if (strcmp(found, name) == 0)
            return true;
    }
    return false;
}
