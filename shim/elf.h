/*
 * elf.h: reads the dynamic symbols of an object that the loader has mapped, without asking the loader. Takes
 * no lock and allocates nothing, so that a lookup cannot wait behind somebody's dlopen and does not touch
 * dlerror(). Files are another matter: symbols.h.
 */
#ifndef RDGATE_ELF_H
#define RDGATE_ELF_H

#include <link.h>
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

#endif
