/*
 * symbols.c: see symbols.h. The one room where files are read, from memory or from a descriptor, by the shim
 * and by the command. Every offset is checked as off <= size && n <= size - off, and every count by division.
 */
#include "symbols.h"
#include "raw.h"

#include <string.h>
#include <sys/stat.h>

#if defined(__x86_64__)
#    define MACHINE EM_X86_64
#elif defined(__aarch64__)
#    define MACHINE EM_AARCH64
#endif

#define SECTIONS_MOST 65536
#define SYMBOLS_MOST  (8u << 20) /* where each costs a read; a browser has one million */
#define SEGMENTS_MOST 1170       /* the kernel loads no program with more than 64 KiB of them */
#define AT_ONCE       32         /* the callers' stacks may be small */

/* A part of the file that lies in it whole. */
struct part {
    uint64_t at, size;
};

static bool lies_in(const struct elf_file *f, uint64_t at, uint64_t size)
{
    return at <= f->size && size <= f->size - at;
}

static bool get(const struct elf_file *f, uint64_t at, void *to, size_t size)
{
    if (!lies_in(f, at, size))
        return false;
    if (f->bytes) {
        memcpy(to, f->bytes + at, size);
        return true;
    }
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

/* A part as it stands in memory; NULL if the file is not there. */
static const void *in_memory(const struct elf_file *f, const struct part *p)
{
    return f->bytes ? f->bytes + p->at : NULL;
}

/* ------------------------------------------------------------------ the file */

static bool header(const struct elf_file *f, unsigned i, Elf64_Shdr *s)
{
    return i < f->count && get(f, f->header->e_shoff + i * sizeof(*s), s, sizeof(*s));
}

static bool take(struct elf_file *f)
{
    Elf64_Ehdr *e = f->header;
    Elf64_Shdr first;
    if (!get(f, 0, e, sizeof(*e)) || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 ||
        e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_ident[EI_DATA] != ELFDATA2LSB)
        return false;
    if (e->e_shoff == 0 || e->e_shentsize != sizeof(first) || !get(f, e->e_shoff, &first, sizeof(first)))
        return true;
    uint64_t n = e->e_shnum ? e->e_shnum : first.sh_size; /* more than fit into e_shnum */
    if (n <= SECTIONS_MOST && lies_in(f, e->e_shoff, n * sizeof(first)))
        f->count = (unsigned)n;
    return true;
}

bool elf_file_open(struct elf_file *f, const void *bytes, size_t size)
{
    memset(f, 0, sizeof(*f));
    f->bytes = bytes;
    f->size = size;
    f->fd = -1;
    return take(f);
}

bool elf_file_open_fd(struct elf_file *f, int fd)
{
    struct stat st;
    memset(f, 0, sizeof(*f));
    if (raw(SYS_fstat, fd, (long)&st, 0, 0) || !S_ISREG(st.st_mode) || st.st_size <= 0)
        return false;
    f->size = (uint64_t)st.st_size;
    f->fd = fd;
    return take(f);
}

bool elf_file_segment(const struct elf_file *f, unsigned i, Elf64_Phdr *p)
{
    const Elf64_Ehdr *e = f->header;
    return i < e->e_phnum && i < SEGMENTS_MOST && e->e_phentsize == sizeof(*p) && e->e_phoff <= f->size &&
           get(f, e->e_phoff + i * sizeof(*p), p, sizeof(*p));
}

/* ------------------------------------------------------------------ sections */

static bool contents(const struct elf_file *f, const Elf64_Shdr *s, struct part *p)
{
    p->at = s->sh_offset;
    p->size = s->sh_size;
    return s->sh_type != SHT_NOBITS && lies_in(f, p->at, p->size);
}

/* A string table: its last byte must be 0, so that every name in it ends. */
static bool strings(const struct elf_file *f, uint32_t index, struct part *p)
{
    Elf64_Shdr s;
    char last;
    return index && header(f, index, &s) && s.sh_type == SHT_STRTAB && contents(f, &s, p) && p->size &&
           get(f, p->at + p->size - 1, &last, 1) && last == 0;
}

/* As much of a name as fits; empty if it does not lie in the table. */
static void text_at(const struct elf_file *f, uint64_t table, uint64_t table_size, uint32_t at, char *to,
                    size_t size)
{
    size_t n = at < table_size && table_size - at < size ? (size_t)(table_size - at) : size;
    if (at >= table_size || !get(f, table + at, to, n))
        to[0] = 0;
    to[size - 1] = 0;
}

static bool named(const struct elf_file *f, const char *name, Elf64_Shdr *s)
{
    Elf64_Shdr first;
    struct part names;
    char found[64];
    uint32_t index = f->header->e_shstrndx;
    if (index == SHN_XINDEX)
        index = header(f, 0, &first) ? first.sh_link : 0;
    if (!strings(f, index, &names))
        return false;
    for (unsigned i = 1; i < f->count && header(f, i, s); i++) {
        text_at(f, names.at, names.size, s->sh_name, found, sizeof(found));
        if (strcmp(found, name) == 0)
            return true;
    }
    return false;
}

bool elf_file_section(const struct elf_file *f, const char *name)
{
    Elf64_Shdr s;
    return named(f, name, &s);
}

/* ------------------------------------------------------------------ symbols */

bool elf_file_symbols(const struct elf_file *f, uint32_t type, struct elf_symbols *s)
{
    Elf64_Shdr h;
    struct part table, names;
    for (unsigned i = 1; i < f->count && header(f, i, &h); i++) {
        if (h.sh_type != type)
            continue;
        if (h.sh_entsize != sizeof(Elf64_Sym) || h.sh_offset % 8 || !contents(f, &h, &table) ||
            !strings(f, h.sh_link, &names))
            return false;
        s->count = table.size / sizeof(Elf64_Sym);
        s->at = table.at;
        s->first = in_memory(f, &table);
        s->names = in_memory(f, &names);
        s->names_size = names.size;
        s->names_at = names.at;
        return true;
    }
    return false;
}

const char *elf_symbol_name(const struct elf_symbols *s, const Elf64_Sym *symbol)
{
    return s->names && symbol->st_name < s->names_size ? s->names + symbol->st_name : "";
}

bool elf_symbol_is_code(const struct elf_file *f, const Elf64_Sym *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    Elf64_Shdr s;
    return symbol->st_value && symbol->st_shndx != SHN_UNDEF &&
           (type == STT_FUNC || type == STT_NOTYPE || type == STT_GNU_IFUNC) &&
           header(f, symbol->st_shndx, &s) && (s.sh_flags & SHF_EXECINSTR);
}

/* ------------------------------------------------------------------ what is where */

const void *elf_file_at(const struct elf_file *f, uint64_t address, size_t size)
{
    Elf64_Phdr p;
    for (unsigned i = 0; elf_file_segment(f, i, &p); i++) {
        if (p.p_type != PT_LOAD || address < p.p_vaddr)
            continue;
        uint64_t off = address - p.p_vaddr;
        /* A segment that reaches beyond the file counts for nothing, so that what is there whole is there in
         * part. p_offset is at most the file's size and off at most p_filesz: only the sum can be too large.
         */
        if (off > p.p_filesz || size > p.p_filesz - off || p.p_offset > f->size ||
            off > f->size - p.p_offset || !lies_in(f, p.p_offset + off, size))
            continue;
        return in_memory(f, &(struct part){p.p_offset + off, size});
    }
    return NULL;
}

size_t elf_file_build_id(const struct elf_file *f, const uint8_t **id)
{
    Elf64_Shdr s;
    struct part part;
    Elf64_Nhdr n;
    if (!named(f, ".note.gnu.build-id", &s) || !contents(f, &s, &part))
        return 0;
    const uint8_t *p = in_memory(f, &part);
    if (!p || part.size < sizeof(n) + 4)
        return 0;
    memcpy(&n, p, sizeof(n));
    if (n.n_type != NT_GNU_BUILD_ID || n.n_namesz != 4 || memcmp(p + sizeof(n), "GNU", 4) != 0 ||
        n.n_descsz > part.size - sizeof(n) - 4 || n.n_descsz > 64)
        return 0;
    *id = p + sizeof(n) + 4;
    return n.n_descsz;
}

const char *elf_file_debuglink(const struct elf_file *f)
{
    Elf64_Shdr s;
    struct part part;
    if (!named(f, ".gnu_debuglink", &s) || !contents(f, &s, &part))
        return NULL;
    const char *p = in_memory(f, &part);
    return p && part.size && memchr(p, 0, part.size) ? p : NULL;
}

/* ------------------------------------------------------------------ opened files, symbol by symbol */

struct walk {
    const struct elf_file *f;
    struct elf_symbols s;
    uint64_t i;
    Elf64_Sym some[AT_ONCE];
};

static bool walk_begin(struct walk *w, const struct elf_file *f, uint32_t type)
{
    w->f = f;
    w->i = 0;
    if (!elf_file_symbols(f, type, &w->s))
        return false;
    if (w->s.count > SYMBOLS_MOST)
        w->s.count = SYMBOLS_MOST;
    return true;
}

/* NULL: that was the last one, or the file has become shorter. */
static const Elf64_Sym *walk(struct walk *w)
{
    if (w->i >= w->s.count)
        return NULL;
    uint64_t at = w->i % AT_ONCE, left = w->s.count - w->i;
    if (at == 0 && !get(w->f, w->s.at + w->i * sizeof(w->some[0]), w->some,
                        (left < AT_ONCE ? left : AT_ONCE) * sizeof(w->some[0])))
        return NULL;
    w->i++;
    return &w->some[at];
}

/* A symbol's name, without its version. */
static void name_of(const struct walk *w, const Elf64_Sym *s, char *to, size_t size)
{
    text_at(w->f, w->s.names_at, w->s.names_size, s->st_name, to, size);
    to[strcspn(to, "@")] = 0;
}

/* Of several names for one place, the one that people know: __GI___poll, __poll, poll. */
static int familiar(const struct walk *w, const Elf64_Sym *s)
{
    char start[4];
    name_of(w, s, start, sizeof(start));
    int underscores = (int)strspn(start, "_");
    return start[0] ? 8 - 2 * underscores + (ELF64_ST_BIND(s->st_info) == STB_GLOBAL) : -1;
}

struct best {
    Elf64_Sym symbol;
    bool any;
    uint64_t start; /* of the last function that begins before the address, however far it reaches */
};

static void consider(const struct walk *w, const Elf64_Sym *s, uint64_t address, struct best *b)
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
        if (sized == was && s->st_value == b->symbol.st_value && familiar(w, s) <= familiar(w, &b->symbol))
            return;
    }
    b->symbol = *s;
    b->any = true;
}

static bool function_in(const struct elf_file *f, uint32_t type, uint64_t address, char *to, size_t size)
{
    struct walk w;
    struct best b = {.any = false};
    if (!walk_begin(&w, f, type))
        return false;
    for (const Elf64_Sym *s; (s = walk(&w));)
        consider(&w, s, address, &b);
    if (!b.any || w.i < w.s.count)
        return false;
    Elf64_Shdr s;
    if (!b.symbol.st_size && (b.symbol.st_value < b.start || !header(f, b.symbol.st_shndx, &s) ||
                              address < s.sh_addr || address - s.sh_addr >= s.sh_size))
        return false;
    name_of(&w, &b.symbol, to, size);
    return to[0] != 0;
}

static bool open_ours(struct elf_file *f, int fd)
{
    return elf_file_open_fd(f, fd) && f->header->e_machine == MACHINE &&
           (f->header->e_type == ET_DYN || f->header->e_type == ET_EXEC);
}

bool elf_file_place(int fd, uint64_t at, uint64_t *address, char *function, size_t size)
{
    struct elf_file f;
    Elf64_Phdr p;
    function[0] = 0;
    if (!open_ours(&f, fd))
        return false;
    for (unsigned i = 0; elf_file_segment(&f, i, &p); i++) {
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

bool elf_file_imports(int fd, const char *name)
{
    struct elf_file f;
    struct walk w;
    char found[64];
    if (!open_ours(&f, fd) || !walk_begin(&w, &f, SHT_DYNSYM))
        return false;
    for (const Elf64_Sym *s; (s = walk(&w));) {
        if (s->st_shndx != SHN_UNDEF)
            continue;
        name_of(&w, s, found, sizeof(found));
        if (strcmp(found, name) == 0)
            return true;
    }
    return false;
}
