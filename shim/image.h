/*
 * image.h: an object in memory and the file that it was loaded from. Only believed when both are the same.
 */
#ifndef RDGATE_IMAGE_H
#define RDGATE_IMAGE_H

#include "symbols.h"

#include <link.h>

struct image {
    const struct link_map *map;
    const ElfW(Phdr) * segments;
    int segment_count;
    uintptr_t from, to;
    char path[1024];
    struct elf_file file;
};

/* false: there is no such file, or it is not the one that was loaded. What is known of it stays in `im`. */
bool image_open(struct image *im, const struct link_map *map, bool executable);
void image_close(struct image *im);
/* Is librdkafka in it? For one whose file is not known. */
bool image_speaks(const struct image *im);
/* Finds the object's debug file; the caller closes it. false: there is none, or it is of another build. */
bool image_debug_file(const struct image *im, struct elf_file *f);
/* Is this code, `size` bytes of it at this address less the load address, as it is in the file? Behind the
 * first `strict` bytes a debugger may have set breakpoints. */
bool image_untouched(const struct image *im, uint64_t at, uint64_t size, uint64_t strict);

/* A file, mapped. */
bool image_map_file(struct elf_file *f, const char *path);
void image_unmap_file(struct elf_file *f);

#endif
