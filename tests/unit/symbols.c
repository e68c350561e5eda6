/* links: symbols.o inside.o */
/* Reading of ELF files: what is right is found, and whatever is wrong with a file, nothing outside it is
 * touched. SYMBOLS_ROUNDS sets how many damaged files are read; the seed is always the same. */
#include "inside.h"
#include "symbols.h"
#include "tap.h"

#include <stdlib.h>
#include <sys/mman.h>

const struct call_info rdg_calls[CALL_COUNT] = {
#define CALL(kind, result, name, parameters, arguments, key, class, fail, timeout, traits)                   \
    {#name, class, traits},
#include "calls.def"
};

/* ------------------------------------------------------------------ a file to read, made here */

#define TEXT 0x1000 /* address and offset of the code */

struct maker {
    uint8_t bytes[0x8000];
    Elf64_Sym symbols[64];
    unsigned count;
    char names[4096];
    size_t used;
};

static struct maker m;

static uint32_t name(const char *s)
{
    size_t at = m.used;
    memcpy(m.names + at, s, strlen(s) + 1);
    m.used += strlen(s) + 1;
    return (uint32_t)at;
}

static void symbol(const char *s, unsigned bind, unsigned type, uint64_t at, uint64_t size)
{
    m.symbols[m.count++] = (Elf64_Sym){.st_name = name(s),
                                       .st_info = (unsigned char)ELF64_ST_INFO(bind, type),
                                       .st_shndx = type == STT_FILE ? SHN_ABS : 1,
                                       .st_value = at,
                                       .st_size = size};
}

static void function(const char *s, uint64_t at, uint64_t size)
{
    symbol(s, STB_GLOBAL, STT_FUNC, TEXT + at, size);
}

/* Sections: 1 code, 2 symbols, 3 their names, 4 build-id, 5 debuglink, 6 names of sections. */
static size_t make(void)
{
    static const char sections[] = "\0.text\0.symtab\0.strtab\0.note.gnu.build-id\0.gnu_debuglink\0.shstrtab";
    static const char note[] = "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\xab\xcd\xef\x01";
    Elf64_Ehdr e = {.e_phoff = 64,
                    .e_shoff = 0x200,
                    .e_phentsize = 56,
                    .e_phnum = 1,
                    .e_shentsize = 64,
                    .e_shnum = 7,
                    .e_shstrndx = 6};
    memcpy(e.e_ident, "\177ELF\2\1\1", 8);
    Elf64_Phdr p = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 0x3000, .p_memsz = 0x3000};
    Elf64_Shdr s[7] = {
        {0},
        {.sh_name = 1,
         .sh_type = SHT_PROGBITS,
         .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
         .sh_offset = TEXT,
         .sh_addr = TEXT,
         .sh_size = 0x2000},
        {.sh_name = 7,
         .sh_type = SHT_SYMTAB,
         .sh_offset = 0x4000,
         .sh_size = m.count * sizeof(Elf64_Sym),
         .sh_link = 3,
         .sh_entsize = sizeof(Elf64_Sym)},
        {.sh_name = 15, .sh_type = SHT_STRTAB, .sh_offset = 0x6000, .sh_size = m.used},
        {.sh_name = 23, .sh_type = SHT_NOTE, .sh_offset = 0x800, .sh_size = sizeof(note) - 1},
        {.sh_name = 42, .sh_type = SHT_PROGBITS, .sh_offset = 0x900, .sh_size = 16},
        {.sh_name = 57, .sh_type = SHT_STRTAB, .sh_offset = 0xa00, .sh_size = sizeof(sections)},
    };
    memset(m.bytes, 0, sizeof(m.bytes));
    memset(m.bytes + TEXT, 0x90, 0x2000);
    memcpy(m.bytes, &e, sizeof(e));
    memcpy(m.bytes + 64, &p, sizeof(p));
    memcpy(m.bytes + 0x200, s, sizeof(s));
    memcpy(m.bytes + 0x800, note, sizeof(note));
    memcpy(m.bytes + 0x900, "other.debug", 12);
    memcpy(m.bytes + 0xa00, sections, sizeof(sections));
    memcpy(m.bytes + 0x4000, m.symbols, sizeof(m.symbols));
    memcpy(m.bytes + 0x6000, m.names, m.used);
    return 0x7000;
}

/* An application with librdkafka in its middle, and parts of that elsewhere. */
static void describe(void)
{
    m.count = 0;
    m.used = 1;
    m.count++; /* the first is nobody */
    symbol("main.c", STB_LOCAL, STT_FILE, 0, 0);
    symbol("helper", STB_LOCAL, STT_FUNC, TEXT + 0x40, 16);
    symbol("rdkafka.c", STB_LOCAL, STT_FILE, 0, 0);
    symbol("destroy0", STB_LOCAL, STT_FUNC, TEXT + 0x1e0, 16);
    symbol("rd_kafka_new.cold", STB_LOCAL, STT_FUNC, TEXT + 0x10, 8);
    function("main", 0x20, 16);
    function("print_all", 0x80, 16); /* the application's, right before the library */
    function("rd_kafka_new", 0x100, 32);
    function("rd_kafka_destroy", 0x120, 3);
    function("rd_kafka_consumer_poll", 0x130, 16);
    function("rd_kafka_consumer_close", 0x140, 16);
    function("rd_kafka_conf_get", 0x150, 16);
    function("LZ4_compress", 0x160, 16);
    function("rd_list_init", 0x170, 16);
    function("rd_kafka_version", 0x180, 16);
    function("rd_kafka_other", 0x190, 16);
    function("application", 0x200, 16);
    function("rd_loop", 0x210, 16); /* the application's, too */
    function("rd_kafka_mine", 0x220, 16);
    function("last", 0x300, 16);
}

static struct inside in;

static bool inside_span(uint64_t at)
{
    for (int i = 0; i < in.spans; i++)
        if (TEXT + at - in.own[i].from < in.own[i].to - in.own[i].from)
            return true;
    return false;
}

static void finds(void)
{
    struct elf_file f;
    struct elf_symbols s;
    describe();
    size_t size = make();
    ok(elf_file_open(&f, m.bytes, size));
    ok(elf_file_symbols(&f, SHT_SYMTAB, &s));
    ok(!elf_file_symbols(&f, SHT_DYNSYM, &s));
    ok(elf_file_symbols(&f, SHT_SYMTAB, &s));
    const uint8_t *id;
    is(elf_file_build_id(&f, &id), 4);
    is(id[0], 0xab);
    is_text(elf_file_debuglink(&f), "other.debug");
    ok(elf_file_section(&f, ".text"));
    ok(!elf_file_section(&f, ".tex"));
    ok(elf_file_at(&f, TEXT, 16) == m.bytes + TEXT);
    ok(elf_file_at(&f, 0x2fff, 1) != NULL);
    ok(!elf_file_at(&f, 0x2fff, 2));
    ok(!elf_file_at(&f, UINT64_MAX, 1));

    ok(inside_find(&in, &f, &s, true));
    is(in.public, 9);
    ok(!in.lto);
    is(in.place[CALL_rd_kafka_new].at, TEXT + 0x100);
    is(in.place[CALL_rd_kafka_new].size, 32);
    is(in.place[CALL_rd_kafka_new].cold, TEXT + 0x10);
    is(in.place[CALL_rd_kafka_destroy].next, TEXT + 0x130);
    is(in.place[CALL_rd_kafka_consumer_poll].at, TEXT + 0x130);
    is(in.place[CALL_rd_kafka_assign].at, 0);
    ok(inside_span(0x100));
    ok(inside_span(0x165)); /* bundled code */
    ok(inside_span(0x1e8)); /* a static function of a file of its */
    ok(!inside_span(0x10)); /* a stray part: nothing is lost if it is not known */
    ok(!inside_span(0x20));
    ok(!inside_span(0x40));
    ok(!inside_span(0x88));
    ok(!inside_span(0x200));
    ok(!inside_span(0x218)); /* too few for a library */
    ok(!inside_span(0x228));
    ok(!inside_span(0x308));
}

/* Of two segments with the same addresses one reaches beyond the file: what is there whole is there in part.
 */
static void overlapping_segments(void)
{
    struct elf_file f;
    describe();
    size_t size = make();
    Elf64_Phdr p;
    memcpy(&p, m.bytes + 64, sizeof(p));
    memcpy(m.bytes + 64 + sizeof(p), &p, sizeof(p));
    p.p_offset = size - 8;
    p.p_vaddr = TEXT;
    p.p_filesz = 16;
    memcpy(m.bytes + 64, &p, sizeof(p));
    ((Elf64_Ehdr *)m.bytes)->e_phnum = 2;
    ok(elf_file_open(&f, m.bytes, size));
    ok(elf_file_at(&f, TEXT, 32) == m.bytes + TEXT);
    ok(elf_file_at(&f, TEXT, 16) == m.bytes + TEXT);
    ok(elf_file_at(&f, TEXT, 8) == m.bytes + size - 8);
}

static void other_copies(void)
{
    struct elf_file f;
    struct elf_symbols s;
    describe();
    function("rd_kafka_new", 0x320, 32);
    symbol("rd_kafka_poll.lto_priv.3", STB_LOCAL, STT_FUNC, TEXT + 0x340, 16);
    size_t size = make();
    ok(elf_file_open(&f, m.bytes, size));
    ok(elf_file_symbols(&f, SHT_SYMTAB, &s));
    ok(inside_find(&in, &f, &s, true));
    ok(in.place[CALL_rd_kafka_new].odd); /* there twice */
    ok(in.lto);
    is(in.place[CALL_rd_kafka_poll].at, 0);
}

/* ------------------------------------------------------------------ damage */

static uint64_t seed = 20240607;

static uint32_t rnd(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33);
}

static volatile uint64_t seen; /* so that nothing is left out as useless */

/* Reads all that can be read; the bytes end where a page without access begins. */
static void read_all(const uint8_t *bytes, size_t size)
{
    struct elf_file f;
    struct elf_symbols s;
    const uint8_t *id;
    uint64_t sum = 0;
    if (!elf_file_open(&f, bytes, size))
        return;
    elf_file_section(&f, ".go.buildinfo");
    size_t n = elf_file_build_id(&f, &id);
    for (size_t i = 0; i < n; i++)
        sum += id[i];
    const char *link = elf_file_debuglink(&f);
    sum += link ? strlen(link) : 0;
    static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
    for (int t = 0; t < 2; t++) {
        if (!elf_file_symbols(&f, types[t], &s) || !inside_find(&in, &f, &s, t == 0))
            continue;
        for (int i = 0; i < INSIDE_COUNT; i++) {
            const uint8_t *p = elf_file_at(&f, in.place[i].at, in.place[i].size);
            if (p && in.place[i].size)
                sum += p[0] + p[in.place[i].size - 1];
        }
    }
    seen += sum;
}

static const uint64_t nasty[] = {
    0,          1,          7,          8,          0x7fff,     0x8000,         0xffff,
    0x7fffffff, 0xffffffff, 1ull << 32, 1ull << 63, UINT64_MAX, UINT64_MAX - 7, 0x6fff,
    0x7000,     0x7001,     64,         24};

static void damage(uint8_t *bytes, size_t size)
{
    /* where the structure is: headers, sections, notes, symbols, names */
    static const struct {
        size_t from, size;
    } parts[] = {{0, 64},     {64, 56},    {0x200, 448},   {0x800, 32},
                 {0x900, 16}, {0xa00, 96}, {0x4000, 1536}, {0x6000, 1024}};
    for (unsigned n = 1 + rnd() % 4; n; n--) {
        size_t part = rnd() % (sizeof(parts) / sizeof(*parts));
        size_t at = parts[part].from + rnd() % parts[part].size;
        if (rnd() % 2) {
            if (at < size)
                bytes[at] = (uint8_t)rnd();
        } else {
            static const size_t widths[] = {1, 2, 4, 8};
            size_t w = widths[rnd() % 4];
            uint64_t v = nasty[rnd() % (sizeof(nasty) / sizeof(*nasty))];
            at &= ~(w - 1);
            if (at + w <= size)
                memcpy(bytes + at, &v, w);
        }
    }
}

static void fuzz(void)
{
    const char *wanted = getenv("SYMBOLS_ROUNDS");
    long rounds = wanted ? atol(wanted) : 1000000;
    describe();
    size_t size = make();
    uint8_t *area = mmap(NULL, 0x7000 + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ok(area != MAP_FAILED && mprotect(area + 0x7000, 4096, PROT_NONE) == 0);
    for (long i = 0; i < rounds; i++) {
        /* whole, or cut off anywhere */
        size_t n = i % 4 ? size : rnd() % size & ~(size_t)7;
        uint8_t *bytes = area + 0x7000 - n;
        memcpy(bytes, m.bytes, n);
        damage(bytes, n);
        read_all(bytes, n);
    }
    tap_point(1, "damaged files were read", __FILE__, __LINE__);
}

int main(void)
{
    finds();
    overlapping_segments();
    other_copies();
    fuzz();
    return done();
}
