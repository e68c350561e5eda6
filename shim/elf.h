/*
 * elf.h: reads the symbols of an object, without asking the loader: the dynamic ones of an object that it has
 * mapped, and all of a file's, from the file. Takes no lock and allocates nothing, so that a lookup cannot
 * wait behind somebody's dlopen and does not touch dlerror().
 */
#ifndef RDGATE_ELF_H
#define RDGATE_ELF_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The address of a function that this object defines in its dynamic symbol table; NULL if it does not. */
void *elf_function(const struct link_map *map, const char *name);
/* The object's DT_SONAME, or NULL. */
const char *elf_soname(const struct link_map *map);
/* The range of addresses that the object mapped at `base` (its ELF header) takes. Returns 0, or -1. */
int elf_range(const void *base, uintptr_t load, uintptr_t *from, uintptr_t *to);
/* Does the object ask others for a function of this name? */
int elf_undefined(const struct link_map *map, const char *name);
/* Has its dynamic section this entry? */
int elf_dynamic(const struct link_map *map, ElfW(Sxword) tag);

/* Files: opened for reading, and not trusted. They are read with pread, never mapped: one that is cut short
 * under a mapping kills with SIGBUS. */

/* The address, in the file's own terms (what addr2line takes), of what lies `at` bytes into it, and the name
 * of the function there, cut to fit; empty if the file names none. false: no ELF file for this machine, or
 * nothing of it is loaded from there. */
bool elf_place(int fd, uint64_t at, uint64_t *address, char *function, size_t size);
/* Does it ask others for this symbol? */
bool elf_imports(int fd, const char *name);

#endif
