/*
 * symbols.h: reads an ELF file that somebody has mapped: sections, full symbol tables, what a debug file is
 * found by. Pure: bytes in, answers out; no byte of the file is trusted, whatever it says of sizes.
 */
#ifndef RDGATE_SYMBOLS_H
#define RDGATE_SYMBOLS_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file {
    const uint8_t *bytes; /* aligned as mmap aligns */
    size_t size;
    const Elf64_Ehdr *header;
    const Elf64_Shdr *sections;
    unsigned count;
};

struct elf_symbols {
    const Elf64_Sym *first;
    size_t count;
    const char *names; /* the last of its bytes is 0 */
    size_t names_size;
};

/* false: not a 64-bit little-endian ELF file with sections of the size we know. */
bool elf_file_open(struct elf_file *f, const void *bytes, size_t size);
/* The section of this name; NULL if there is none. */
const Elf64_Shdr *elf_file_section(const struct elf_file *f, const char *name);
/* SHT_SYMTAB or SHT_DYNSYM. false: no such table, or not a sane one. */
bool elf_file_symbols(const struct elf_file *f, uint32_t type, struct elf_symbols *s);
/* Never NULL; empty if the symbol has none. */
const char *elf_symbol_name(const struct elf_symbols *s, const Elf64_Sym *symbol);
/* Does the symbol stand in code? */
bool elf_symbol_is_code(const struct elf_file *f, const Elf64_Sym *symbol);
/* The `size` bytes that the loader puts at this address (less the load address); NULL if they are not all in
 * the file. */
const void *elf_file_at(const struct elf_file *f, uint64_t address, size_t size);
/* The build-id; returns its size, 0 if there is none. */
size_t elf_file_build_id(const struct elf_file *f, const uint8_t **id);
/* The file name in .gnu_debuglink, or NULL. */
const char *elf_file_debuglink(const struct elf_file *f);

#endif
