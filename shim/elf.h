/*
 * elf.h: reads the dynamic symbols of an object that the loader has mapped, without asking the loader.
 * Takes no lock and allocates nothing, so that a lookup cannot wait behind somebody's dlopen and does not
 * touch dlerror().
 */
#ifndef RDGATE_ELF_H
#define RDGATE_ELF_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* The address of a function that this object defines in its dynamic symbol table; NULL if it does not. */
void *elf_function(const struct link_map *map, const char *name);
/* The object's DT_SONAME, or NULL. */
const char *elf_soname(const struct link_map *map);
/* The range of addresses that the object mapped at `base` (its ELF header) takes. Returns 0, or -1. */
int elf_range(const void *base, uintptr_t load, uintptr_t *from, uintptr_t *to);
/* For files that nobody has loaded or checked: the function that lies at this offset of the file, by .symtab
 * or else .dynsym. `size` bytes at `file`, which may be any rubbish. Returns false if none is known. */
bool elf_function_at(const unsigned char *file, size_t size, uint64_t offset, char *name, size_t name_size);

#endif
