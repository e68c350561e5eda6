/*
 * elf.c: see elf.h. It must not trust a mapped object further than the loader did, which has already followed
 * the same tables to bind it; and it must not trust a file at all.
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

/* ------------------------------------------------------------------ files */

/* Copies from the file what lies wholly inside it. */
static bool part(const unsigned char *file, size_t size, uint64_t at, void *to, size_t n)
{
    if (at > size || n > size - at)
        return false;
    memcpy(to, file + at, n);
    return true;
}

struct nearest {
    uint64_t address, value, name; /* what is looked for; the best so far, as an offset into the strings */
    bool found;
};

static void search(const unsigned char *file, size_t size, const ElfW(Shdr) * table, struct nearest *best)
{
    ElfW(Sym) sym;
    uint64_t count = table->sh_size / sizeof(sym);
    for (uint64_t i = 0; i < count; i++) {
        if (!part(file, size, table->sh_offset + i * sizeof(sym), &sym, sizeof(sym)))
            return;
        int type = ELF64_ST_TYPE(sym.st_info);
        if ((type != STT_FUNC && type != STT_GNU_IFUNC) || sym.st_shndx == SHN_UNDEF || !sym.st_name ||
            sym.st_value > best->address || (best->found && sym.st_value < best->value))
            continue;
        /* Assembly leaves sizes out: then whatever function begins last before it. */
        if (sym.st_size && best->address - sym.st_value >= sym.st_size)
            continue;
        best->found = true;
        best->value = sym.st_value;
        best->name = sym.st_name;
    }
}

bool elf_function_at(const unsigned char *file, size_t size, uint64_t offset, char *name, size_t name_size)
{
    ElfW(Ehdr) head;
    if (!part(file, size, 0, &head, sizeof(head)) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        head.e_phentsize != sizeof(ElfW(Phdr)) || head.e_shentsize != sizeof(ElfW(Shdr)))
        return false;
    struct nearest best = {0, 0, 0, false};
    bool mapped = false;
    for (unsigned i = 0; i < head.e_phnum && !mapped; i++) {
        ElfW(Phdr) p;
        if (!part(file, size, head.e_phoff + (uint64_t)i * sizeof(p), &p, sizeof(p)))
            return false;
        mapped = p.p_type == PT_LOAD && offset >= p.p_offset && offset - p.p_offset < p.p_filesz;
        if (mapped)
            best.address = offset - p.p_offset + p.p_vaddr;
    }
    ElfW(Shdr) symbols = {0}, strings;
    for (unsigned i = 0; mapped && i < head.e_shnum; i++) {
        ElfW(Shdr) sh;
        if (!part(file, size, head.e_shoff + (uint64_t)i * sizeof(sh), &sh, sizeof(sh)))
            return false;
        if (sh.sh_type == SHT_SYMTAB || (sh.sh_type == SHT_DYNSYM && symbols.sh_type != SHT_SYMTAB))
            symbols = sh;
    }
    if (!symbols.sh_type || symbols.sh_link >= head.e_shnum ||
        !part(file, size, head.e_shoff + (uint64_t)symbols.sh_link * sizeof(strings), &strings,
              sizeof(strings)))
        return false;
    search(file, size, &symbols, &best);
    if (!best.found || best.name >= strings.sh_size || strings.sh_offset > size ||
        best.name >= size - strings.sh_offset)
        return false;
    uint64_t at = strings.sh_offset + best.name;
    size_t n = 0;
    for (; at < size && file[at] && n + 1 < name_size; at++)
        name[n++] = (char)file[at];
    name[n] = 0;
    return n > 0;
}
