/*
 * symbols.h: reads an ELF file that somebody has mapped or opened: sections, symbol tables, what lies at an
 * address, what a debug file is found by. No byte of the file is trusted, whatever it says of sizes. Takes no
 * lock, allocates nothing, and reads an opened file through the kernel alone.
 */
#ifndef RDGATE_SYMBOLS_H
#define RDGATE_SYMBOLS_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file {
    const uint8_t *bytes; /* in memory, aligned as mmap aligns; NULL: it is read from fd */
    uint64_t size;
    int fd;
    unsigned count; /* of sections; 0 if it has none, or no sane ones */
    Elf64_Ehdr header[1];
};

struct elf_symbols {
    const Elf64_Sym *first; /* NULL if the file is not in memory */
    size_t count;
    const char *names; /* the last of its bytes is 0; NULL if the file is not in memory */
    size_t names_size;
    uint64_t at, names_at; /* in the file */
};

/* false: not a 64-bit little-endian ELF file. */
bool elf_file_open(struct elf_file *f, const void *bytes, size_t size);
/* One that is not mapped: cut short under a mapping it would kill with SIGBUS. Nothing is to be closed. */
bool elf_file_open_fd(struct elf_file *f, int fd);

bool elf_file_segment(const struct elf_file *f, unsigned i, Elf64_Phdr *p);
/* Has it a section of this name? */
bool elf_file_section(const struct elf_file *f, const char *name);
/* SHT_SYMTAB or SHT_DYNSYM. false: no such table, or not a sane one. */
bool elf_file_symbols(const struct elf_file *f, uint32_t type, struct elf_symbols *s);

/* The address, in the file's own terms (what addr2line takes), of what lies `at` bytes into it, and the name
 * of the function there, cut to fit; empty if the file names none. false: no ELF file for this machine, or
 * nothing of it is loaded from there. */
bool elf_file_place(int fd, uint64_t at, uint64_t *address, char *function, size_t size);
/* Does it ask others for this symbol? */
bool elf_file_imports(int fd, const char *name);

/* These are for files in memory; of others they know nothing. */

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
