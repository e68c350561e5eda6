/*
 * binary.c: see binary.h. ELF is read with symbols.c, as the shim does, so that both see the same.
 */
#include "binary.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILE_MOST    (4ull << 30)
#define ENTRIES_MOST 8192 /* of a dynamic section; each costs a search */

#if defined(__x86_64__)
#    define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#    define OUR_MACHINE EM_AARCH64
#endif

/* ------------------------------------------------------------------ the dynamic section */

struct entry {
    int64_t tag;
    uint64_t value;
};

/* Entry i, of the segment's; false: there are no more. */
static bool entry(const struct binary *b, const Elf64_Phdr *dynamic, uint64_t i, struct entry *e)
{
    Elf64_Dyn d;
    if (i >= ENTRIES_MOST || i >= dynamic->p_filesz / sizeof(d))
        return false;
    const void *p = elf_file_at(&b->f, dynamic->p_vaddr + i * sizeof(d), sizeof(d));
    if (!p)
        return false;
    memcpy(&d, p, sizeof(d));
    *e = (struct entry){d.d_tag, d.d_un.d_val};
    return d.d_tag != DT_NULL;
}

static bool find_segment(const struct binary *b, uint32_t type, Elf64_Phdr *p)
{
    for (unsigned i = 0; elf_file_segment(&b->f, i, p); i++)
        if (p->p_type == type)
            return true;
    return false;
}

static uint64_t value_of(const struct binary *b, int64_t tag)
{
    Elf64_Phdr dynamic;
    struct entry e;
    if (find_segment(b, PT_DYNAMIC, &dynamic))
        for (uint64_t i = 0; entry(b, &dynamic, i, &e); i++)
            if (e.tag == tag)
                return e.value;
    return 0;
}

static const char *string_at(const char *strings, uint64_t size, uint64_t at)
{
    return strings && at < size && memchr(strings + at, 0, size - at) ? strings + at : NULL;
}

static void read_dynamic(struct binary *b)
{
    Elf64_Phdr dynamic;
    struct entry e;
    uint64_t size = value_of(b, DT_STRSZ);
    const char *s = elf_file_at(&b->f, value_of(b, DT_STRTAB), size);
    if (!find_segment(b, PT_DYNAMIC, &dynamic))
        return;
    for (uint64_t i = 0; entry(b, &dynamic, i, &e); i++) {
        const char *text = string_at(s, size, e.value);
        switch (e.tag) {
        case DT_NEEDED:
            if (text && b->needed_count < NEEDED_MOST)
                b->needed[b->needed_count++] = text;
            break;
        case DT_SONAME: b->soname = text; break;
        case DT_RPATH: b->rpath = text; break;
        case DT_RUNPATH: b->runpath = text; break;
        case DT_FLAGS_1: b->no_default = e.value & DF_1_NODEFLIB; break;
        }
    }
}

/* ------------------------------------------------------------------ opening */

static enum binary_kind kind_of(const struct binary *b)
{
    Elf64_Phdr p;
    const Elf64_Ehdr *e = b->f.header;
    if (e->e_machine != OUR_MACHINE)
        return FOREIGN_ELF;
    if (e->e_type != ET_EXEC && e->e_type != ET_DYN)
        return ODD_ELF;
    if (find_segment(b, PT_INTERP, &p))
        return PROGRAM;
    if (!find_segment(b, PT_DYNAMIC, &p) || e->e_type == ET_EXEC)
        return STATIC;
    return value_of(b, DT_FLAGS_1) & DF_1_PIE ? STATIC_PIE : MODULE;
}

static void cut_short(int number)
{
    (void)number;
    static const char line[] = "rdgate check: a file has become shorter while it was read\n";
    if (write(2, line, sizeof(line) - 1) < 0)
        _exit(112);
    _exit(111);
}

static const char *take(struct binary *b)
{
    const uint8_t *bytes = b->f.bytes;
    if (b->st.st_size > 2 && memcmp(bytes, "#!", 2) == 0) {
        b->kind = SCRIPT;
        size_t n = (size_t)b->st.st_size - 2;
        n = n < 255 ? n : 255; /* as much as the kernel reads */
        memcpy(b->interpreter, bytes + 2, n);
        b->interpreter[strcspn(b->interpreter, "\n")] = 0;
        return NULL;
    }
    if (b->st.st_size < 20 || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        return "is neither an ELF file nor a script";
    if (!elf_file_open(&b->f, bytes, (size_t)b->st.st_size)) {
        if (bytes[EI_CLASS] == ELFCLASS64 && bytes[EI_DATA] == ELFDATA2LSB)
            return "begins like an ELF file and is cut short";
        b->kind = FOREIGN_ELF;
        return NULL;
    }
    b->kind = kind_of(b);
    if (b->kind == FOREIGN_ELF || b->kind == ODD_ELF)
        return NULL;
    Elf64_Phdr p;
    if (find_segment(b, PT_INTERP, &p)) {
        const char *s = elf_file_at(&b->f, p.p_vaddr, p.p_filesz);
        if (!s || p.p_filesz == 0 || p.p_filesz > sizeof(b->interpreter) || s[p.p_filesz - 1])
            return "is an ELF file whose interpreter has no proper name";
        memcpy(b->interpreter, s, p.p_filesz);
    }
    read_dynamic(b);
    elf_file_symbols(&b->f, SHT_DYNSYM, &b->dynamic);
    return NULL;
}

const char *binary_map(struct binary *b, int fd)
{
    memset(b, 0, sizeof(*b));
    if (fstat(fd, &b->st))
        return "cannot be looked at";
    if (S_ISDIR(b->st.st_mode))
        return "is a directory";
    if (!S_ISREG(b->st.st_mode))
        return "is not a regular file";
    if (b->st.st_size == 0)
        return "is empty";
    if ((uint64_t)b->st.st_size > FILE_MOST)
        return "is larger than 4 GiB";
    void *p = mmap(NULL, (size_t)b->st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return "cannot be mapped";
    signal(SIGBUS, cut_short);
    b->f.bytes = p;
    return NULL;
}

const char *binary_open(struct binary *b, int fd)
{
    const char *why = binary_map(b, fd);
    if (!why)
        why = take(b);
    if (why)
        binary_close(b);
    return why;
}

void binary_close(struct binary *b)
{
    if (b->f.bytes)
        munmap((void *)b->f.bytes, (size_t)b->st.st_size);
    b->f.bytes = NULL;
}

const char *binary_words(const struct binary *b)
{
    static char words[64];
    static const struct {
        uint16_t machine;
        const char *name;
    } known[] = {
        {EM_X86_64, "x86-64"}, {EM_386, "i386"},    {EM_AARCH64, "aarch64"},
        {EM_ARM, "arm"},       {EM_PPC64, "ppc64"}, {EM_S390, "s390"},
        {EM_RISCV, "riscv"},   {EM_MIPS, "mips"},   {EM_LOONGARCH, "loongarch"},
    };
    const uint8_t *p = b->f.bytes;
    bool little = p[EI_DATA] != ELFDATA2MSB;
    unsigned machine = little ? p[18] | (unsigned)p[19] << 8 : p[19] | (unsigned)p[18] << 8;
    const char *name = NULL;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (known[i].machine == machine)
            name = known[i].name;
    int n = snprintf(words, sizeof(words), "%s ", p[EI_CLASS] == ELFCLASS32 ? "32-bit" : "64-bit");
    if (name)
        snprintf(words + n, sizeof(words) - (size_t)n, "%s%s", name, little ? "" : " (big-endian)");
    else
        snprintf(words + n, sizeof(words) - (size_t)n, "machine %u", machine);
    return words;
}

/* ------------------------------------------------------------------ symbols */

static const Elf64_Sym *symbol(const struct binary *b, const char *name, bool undefined)
{
    for (size_t i = 1; b->dynamic.first && i < b->dynamic.count; i++) {
        const Elf64_Sym *s = &b->dynamic.first[i];
        if ((s->st_shndx == SHN_UNDEF) == undefined && strcmp(elf_symbol_name(&b->dynamic, s), name) == 0)
            return s;
    }
    return NULL;
}

bool binary_asks(const void *binary, const char *name)
{
    return symbol(binary, name, true) != NULL;
}

bool binary_offers(const struct binary *b, const char *name)
{
    return symbol(b, name, false) != NULL;
}

const char *binary_asked(const struct binary *b, size_t *i)
{
    while (b->dynamic.first && *i < b->dynamic.count) {
        const Elf64_Sym *s = &b->dynamic.first[(*i)++];
        const char *name = elf_symbol_name(&b->dynamic, s);
        if (s->st_shndx == SHN_UNDEF && strncmp(name, "rd_kafka_", 9) == 0)
            return name;
    }
    return NULL;
}

static bool binds_in(const struct binary *b, uint64_t table, uint64_t size, size_t wanted)
{
    Elf64_Rela r;
    const uint8_t *p = elf_file_at(&b->f, table, size);
    for (uint64_t i = 0; p && i < size / sizeof(r); i++) {
        memcpy(&r, p + i * sizeof(r), sizeof(r));
        if (ELF64_R_SYM(r.r_info) == wanted)
            return true;
    }
    return false;
}

bool binary_binds(const struct binary *b, const char *name)
{
    const Elf64_Sym *s = symbol(b, name, false);
    if (!s)
        return false;
    size_t wanted = (size_t)(s - b->dynamic.first);
    return !(value_of(b, DT_FLAGS) & DF_SYMBOLIC) && ELF64_ST_VISIBILITY(s->st_other) == STV_DEFAULT &&
           (binds_in(b, value_of(b, DT_JMPREL), value_of(b, DT_PLTRELSZ), wanted) ||
            binds_in(b, value_of(b, DT_RELA), value_of(b, DT_RELASZ), wanted));
}

bool binary_contains(const struct binary *b, const char *text)
{
    return memmem(b->f.bytes, (size_t)b->f.size, text, strlen(text)) != NULL;
}

/* ------------------------------------------------------------------ versions */

/* rd_kafka_version() does nothing but return a number, and what is said of it must be one of librdkafka. */
static unsigned returned(const uint8_t *code, size_t size)
{
    uint32_t n = 0;
#if defined(__x86_64__)
    size_t i = size > 4 && memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0 ? 4 : 0; /* endbr64 */
    if (size >= i + 4 && memcmp(code + i, "\x55\x48\x89\xe5", 4) == 0)       /* a frame */
        i += 4;
    if (size < i + 5 || code[i] != 0xb8)
        return 0;
    memcpy(&n, code + i + 1, 4);
#else
    uint32_t word[4];
    if (size < sizeof(word))
        return 0;
    memcpy(word, code, sizeof(word));
    const uint32_t *w = word[0] == 0xd503245f ? word + 1 : word; /* bti c */
    if ((w[0] & 0xffe0001f) != 0x52800000 || (w[1] & 0xffe0001f) != 0x72a00000)
        return 0; /* mov w0, #; movk w0, #, lsl #16 */
    n = (w[0] >> 5 & 0xffff) | (w[1] >> 5 & 0xffff) << 16;
#endif
    return n >= 0x00080000 && n < 0x10000000 ? n : 0;
}

unsigned binary_version(const struct binary *b, const struct inside *in)
{
    const Elf64_Sym *s = symbol(b, "rd_kafka_version", false);
    uint64_t at = s ? s->st_value : 0, size = s ? s->st_size : 0;
    for (int i = CALL_COUNT; !at && in && i < INSIDE_COUNT; i++) {
        if (strcmp(inside_name(i), "rd_kafka_version") == 0) {
            at = in->place[i].at;
            size = in->place[i].size;
        }
    }
    size = size > 16 ? 16 : size;
    const uint8_t *code = at ? elf_file_at(&b->f, at, size) : NULL;
    return code ? returned(code, size) : 0;
}

static unsigned glibc_number(const char *name)
{
    unsigned minor = 0, patch = 0;
    if (!name || strncmp(name, "GLIBC_2.", 8) != 0)
        return 0;
    return sscanf(name + 8, "%5u.%3u", &minor, &patch) >= 1 ? minor * 1000 + patch : 0;
}

unsigned binary_glibc(const struct binary *b, bool offers)
{
    uint64_t size = value_of(b, DT_STRSZ), at = value_of(b, offers ? DT_VERDEF : DT_VERNEED), aux;
    const char *strings = elf_file_at(&b->f, value_of(b, DT_STRTAB), size);
    unsigned newest = 0;
    /* Chains of offsets, which may lead in circles. */
    for (int i = 0; at && i < 4096; i++) {
        uint32_t next, count, name;
        if (offers) {
            Elf64_Verdef d;
            Elf64_Verdaux a;
            const void *p = elf_file_at(&b->f, at, sizeof(d));
            if (!p)
                break;
            memcpy(&d, p, sizeof(d));
            if (!(p = elf_file_at(&b->f, at + d.vd_aux, sizeof(a))))
                break;
            memcpy(&a, p, sizeof(a));
            unsigned n = glibc_number(string_at(strings, size, a.vda_name));
            newest = n > newest ? n : newest;
            next = d.vd_next;
        } else {
            Elf64_Verneed v;
            Elf64_Vernaux a;
            const void *p = elf_file_at(&b->f, at, sizeof(v));
            if (!p)
                break;
            memcpy(&v, p, sizeof(v));
            aux = at + v.vn_aux;
            count = v.vn_cnt;
            for (uint32_t k = 0; k < count && k < 256 && (p = elf_file_at(&b->f, aux, sizeof(a))); k++) {
                memcpy(&a, p, sizeof(a));
                name = a.vna_name;
                unsigned n = glibc_number(string_at(strings, size, name));
                newest = n > newest ? n : newest;
                if (!a.vna_next)
                    break;
                aux += a.vna_next;
            }
            next = v.vn_next;
        }
        at = next ? at + next : 0;
    }
    return newest;
}
