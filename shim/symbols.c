/*
 * symbols.c: see symbols.h. Every offset is checked as off <= size && n <= size - off, every count by
 * division, and every table must be aligned and have entries of the size we know.
 */
#include "symbols.h"

#include <string.h>

static const void *bytes_at(const struct elf_file *f, uint64_t off, uint64_t n)
{
    return off <= f->size && n <= f->size - off ? f->bytes + off : NULL;
}

/* `count` entries of `size` bytes, as they stand in memory. */
static const void *table_at(const struct elf_file *f, uint64_t off, uint64_t count, size_t size)
{
    return off % 8 == 0 && count <= f->size / size ? bytes_at(f, off, count * size) : NULL;
}

bool elf_file_open(struct elf_file *f, const void *bytes, size_t size)
{
    memset(f, 0, sizeof(*f));
    f->bytes = bytes;
    f->size = size;
    const Elf64_Ehdr *e = table_at(f, 0, 1, sizeof(*e));
    if (!e || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_ident[EI_CLASS] != ELFCLASS64 ||
        e->e_ident[EI_DATA] != ELFDATA2LSB || e->e_shentsize != sizeof(Elf64_Shdr))
        return false;
    const Elf64_Shdr *s = table_at(f, e->e_shoff, 1, sizeof(*s));
    if (!s || e->e_shoff == 0)
        return false;
    uint64_t n = e->e_shnum ? e->e_shnum : s->sh_size; /* 65280 sections and more */
    if (n > UINT32_MAX || !table_at(f, e->e_shoff, n, sizeof(*s)))
        return false;
    f->header = e;
    f->sections = s;
    f->count = (unsigned)n;
    return true;
}

/* A section's bytes, if they are in the file. */
static const void *section_bytes(const struct elf_file *f, const Elf64_Shdr *s)
{
    return s->sh_type == SHT_NOBITS ? NULL : bytes_at(f, s->sh_offset, s->sh_size);
}

/* A string table: its last byte must be 0, so that every name in it ends. */
static const char *strings(const struct elf_file *f, uint32_t index, size_t *size)
{
    if (index == 0 || index >= f->count || f->sections[index].sh_type != SHT_STRTAB)
        return NULL;
    const Elf64_Shdr *s = &f->sections[index];
    const char *p = section_bytes(f, s);
    if (!p || s->sh_size == 0 || p[s->sh_size - 1] != 0)
        return NULL;
    *size = s->sh_size;
    return p;
}

const Elf64_Shdr *elf_file_section(const struct elf_file *f, const char *name)
{
    size_t size = 0;
    uint32_t index = f->header->e_shstrndx == SHN_XINDEX ? f->sections->sh_link : f->header->e_shstrndx;
    const char *names = strings(f, index, &size);
    for (unsigned i = 1; names && i < f->count; i++)
        if (f->sections[i].sh_name < size && strcmp(names + f->sections[i].sh_name, name) == 0)
            return &f->sections[i];
    return NULL;
}

bool elf_file_symbols(const struct elf_file *f, uint32_t type, struct elf_symbols *s)
{
    for (unsigned i = 1; i < f->count; i++) {
        const Elf64_Shdr *h = &f->sections[i];
        if (h->sh_type != type)
            continue;
        if (h->sh_entsize != sizeof(Elf64_Sym))
            return false;
        s->count = h->sh_size / sizeof(Elf64_Sym);
        s->first = table_at(f, h->sh_offset, s->count, sizeof(Elf64_Sym));
        s->names = strings(f, h->sh_link, &s->names_size);
        return s->first && s->names;
    }
    return false;
}

const char *elf_symbol_name(const struct elf_symbols *s, const Elf64_Sym *symbol)
{
    return symbol->st_name < s->names_size ? s->names + symbol->st_name : "";
}

bool elf_symbol_is_code(const struct elf_file *f, const Elf64_Sym *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    return symbol->st_value && symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < f->count &&
           (f->sections[symbol->st_shndx].sh_flags & SHF_EXECINSTR) &&
           (type == STT_FUNC || type == STT_NOTYPE || type == STT_GNU_IFUNC);
}

const void *elf_file_at(const struct elf_file *f, uint64_t address, size_t size)
{
    const Elf64_Ehdr *e = f->header;
    const Elf64_Phdr *p = table_at(f, e->e_phoff, e->e_phnum, sizeof(*p));
    if (!p || e->e_phentsize != sizeof(*p))
        return NULL;
    for (unsigned i = 0; i < e->e_phnum; i++) {
        if (p[i].p_type != PT_LOAD || address < p[i].p_vaddr)
            continue;
        uint64_t off = address - p[i].p_vaddr;
        if (off > p[i].p_filesz || size > p[i].p_filesz - off || p[i].p_offset > f->size)
            continue;
        /* p_offset is at most the file's size and off at most p_filesz: only the sum can be too large */
        return off <= f->size - p[i].p_offset ? bytes_at(f, p[i].p_offset + off, size) : NULL;
    }
    return NULL;
}

size_t elf_file_build_id(const struct elf_file *f, const uint8_t **id)
{
    const Elf64_Shdr *s = elf_file_section(f, ".note.gnu.build-id");
    const uint8_t *p = s ? section_bytes(f, s) : NULL;
    Elf64_Nhdr n;
    if (!p || s->sh_size < sizeof(n) + 4)
        return 0;
    memcpy(&n, p, sizeof(n));
    if (n.n_type != NT_GNU_BUILD_ID || n.n_namesz != 4 || memcmp(p + sizeof(n), "GNU", 4) != 0 ||
        n.n_descsz > s->sh_size - sizeof(n) - 4 || n.n_descsz > 64)
        return 0;
    *id = p + sizeof(n) + 4;
    return n.n_descsz;
}

const char *elf_file_debuglink(const struct elf_file *f)
{
    const Elf64_Shdr *s = elf_file_section(f, ".gnu_debuglink");
    const char *p = s ? section_bytes(f, s) : NULL;
    return p && s->sh_size && memchr(p, 0, s->sh_size) ? p : NULL;
}
