/*
 * elf.c: throws rubbish at everything that reads ELF files: symbols.c, inside.c, copy.c and the decoder's
 * plans, and what the command has of its own. Built for libFuzzer (make fuzz); tests/fuzz/seeds makes what it
 * begins with.
 */
#include "cli/binary.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

static volatile uint64_t seen; /* so that nothing is left out as useless */

static void touch(const void *bytes, size_t size)
{
    const uint8_t *p = bytes;
    for (size_t i = 0; p && i < size; i++)
        seen += p[i];
}

static void touch_text(const char *s)
{
    if (s)
        touch(s, strlen(s) + 1);
}

static void read_copy(const struct elf_file *f)
{
    static struct inside in;
    struct plan plan;
    uint8_t slot[PLAN_SLOT];
    if (!copy_find(&in, f))
        return;
    touch_text(copy_recognised(&in));
    for (int i = 0; i < CALL_COUNT; i++) {
        if (!in.place[i].at)
            continue;
        const char *why = copy_plan(&plan, &in, f, i, 0x10000);
        touch_text(why);
        if (!why)
            seen +=
                plan_slot(&plan, elf_file_at(f, in.place[i].at, plan.moved), 0x20000, (void *)0x30000, slot);
    }
}

static void read_mapped(const uint8_t *data, size_t size)
{
    struct elf_file f;
    struct elf_symbols s;
    const uint8_t *id = NULL;
    char path[256];
    if (!elf_file_open(&f, data, size))
        return;
    size_t length = elf_file_build_id(&f, &id);
    touch(id, length);
    touch_text(elf_file_debuglink(&f));
    touch_text(copy_keep_symbols(&f));
    for (int i = 0; copy_debug_file(&f, "/usr/bin/program", i, path, sizeof(path)); i++)
        touch_text(path);
    for (uint32_t type = SHT_SYMTAB; type <= SHT_DYNSYM; type += SHT_DYNSYM - SHT_SYMTAB) {
        if (!elf_file_symbols(&f, type, &s))
            continue;
        for (size_t i = 0; i < s.count; i++) {
            touch_text(elf_symbol_name(&s, &s.first[i]));
            if (elf_symbol_is_code(&f, &s.first[i]))
                touch(elf_file_at(&f, s.first[i].st_value, 16), 16);
        }
    }
    seen += copy_speaks(&f) + copy_is_hidden(&f) + copy_same_build(&f, &f);
    read_copy(&f);
}

static void read_opened(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static struct binary b;
    char name[16];
    uint64_t address = 0;
    if (fd < 0)
        fd = memfd_create("elf", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    for (uint64_t at = 0; at < size + 64; at += size / 4 + 16) {
        elf_file_place(fd, at, &address, name, sizeof(name));
        touch_text(name);
    }
    seen += elf_file_imports(fd, "_dl_find_object");
    if (binary_open(&b, fd))
        return;
    touch_text(b.interpreter);
    if (b.kind != SCRIPT) {
        const char *asked;
        touch_text(binary_words(&b));
        for (int i = 0; i < b.needed_count; i++)
            touch_text(b.needed[i]);
        touch_text(b.soname);
        touch_text(b.rpath);
        touch_text(b.runpath);
        for (size_t i = 0; (asked = binary_asked(&b, &i));)
            touch_text(asked);
        seen += copy_possible(binary_asks, &b) + binary_offers(&b, "rd_kafka_new") +
                binary_binds(&b, "rd_kafka_destroy") + binary_version(&b, NULL) + binary_glibc(&b, true) +
                binary_glibc(&b, false);
    }
    binary_close(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_mapped(data, size);
    if (size)
        read_opened(data, size);
    return 0;
}

/* ------------------------------------------------------------------ damage where it tells */

static uint32_t below(unsigned *dice, uint32_t n)
{
    *dice = *dice * 1103515245u + 12345u;
    return n ? (*dice >> 8) % n : 0;
}

/* One field of one of the tables gets a number that readers stumble over. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    unsigned dice = seed;
    Elf64_Ehdr e;
    if (size < sizeof(e) || below(&dice, 3) == 0)
        return LLVMFuzzerMutate(data, size, most);
    memcpy(&e, data, sizeof(e));
    const struct {
        uint64_t at, entry, count;
    } tables[] = {
        {0, 64, 1},
        {e.e_phoff, 56, e.e_phnum},
        {e.e_shoff, 64, e.e_shnum},
        {0, 8, size / 8},
    };
    const uint64_t nasty[] = {
        0,
        1,
        2,
        3,
        7,
        8,
        0x7fffffff,
        0xffffffff,
        1ull << 32,
        1ull << 63,
        UINT64_MAX,
        0xffff,
        UINT64_MAX - 7,
        size,
        size - 1,
        size + 1,
        size - 8,
        size / 2,
        24,
        64,
    };
    for (uint32_t n = 1 + below(&dice, 4); n > 0; n--) {
        uint32_t t = below(&dice, 4);
        uint64_t count = tables[t].count < 64 || t == 3 ? tables[t].count : 64;
        size_t width = (size_t)1 << below(&dice, 4);
        uint64_t at = tables[t].at + below(&dice, (uint32_t)count) * tables[t].entry +
                      below(&dice, (uint32_t)tables[t].entry) / width * width;
        uint64_t value = nasty[below(&dice, sizeof(nasty) / sizeof(*nasty))];
        if (at > size || width > size - at)
            continue;
        if (below(&dice, 2)) { /* near what was there */
            memcpy(&value, data + at, width);
            value += below(&dice, 17) - 8ull;
        }
        memcpy(data + at, &value, width);
    }
    return size;
}
