/*
 * elf.c: see elf.h. An object is trusted as far as the loader did, which has already followed the same tables
 * to bind it.
 */
#include "elf.h"

#include <string.h>

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
