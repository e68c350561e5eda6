/*
 * image.c: see image.h. It asks the loader where the object lies, and never holds a lock.
 */
#include "image.h"
#include "copy.h"
#include "maps.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a large program it is the names that are read, all of them: at once, not page by page. */
static void read_ahead(const struct elf_file *f)
{
    struct elf_symbols s;
    if (!elf_file_symbols(f, SHT_SYMTAB, &s) || !s.first || !s.names)
        return;
    uintptr_t from[2] = {(uintptr_t)s.first, (uintptr_t)s.names};
    size_t size[2] = {s.count * sizeof(*s.first), s.names_size};
    for (int i = 0; i < 2; i++) {
        uintptr_t page = from[i] & ~(uintptr_t)4095;
        madvise((void *)page, from[i] + size[i] - page, MADV_WILLNEED);
    }
}

bool image_map_file(struct elf_file *f, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    void *p = MAP_FAILED;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (p == MAP_FAILED)
        return false;
    if (elf_file_open(f, p, (size_t)st.st_size) && f->count)
        return true;
    munmap(p, (size_t)st.st_size);
    f->bytes = NULL;
    return false;
}

void image_unmap_file(struct elf_file *f)
{
    if (f->bytes)
        munmap((void *)f->bytes, f->size);
    f->bytes = NULL;
}

static int find_segments(struct dl_phdr_info *info, size_t size, void *with)
{
    struct image *im = with;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC &&
            info->dlpi_addr + info->dlpi_phdr[i].p_vaddr == (uintptr_t)im->map->l_ld) {
            im->segments = info->dlpi_phdr;
            im->segment_count = info->dlpi_phnum;
            return 1;
        }
    }
    return 0;
}

/* The bytes that the loader has put at this address of the file's own, from a segment that nobody writes to.
 */
static const void *loaded_at(const struct image *im, uint64_t at, uint64_t size)
{
    for (int i = 0; i < im->segment_count; i++) {
        const ElfW(Phdr) *p = &im->segments[i];
        if (p->p_type == PT_LOAD && (p->p_flags & (PF_R | PF_W)) == PF_R && at >= p->p_vaddr &&
            at - p->p_vaddr <= p->p_filesz && size <= p->p_filesz - (at - p->p_vaddr))
            return (const void *)(im->map->l_addr + at);
    }
    return NULL;
}

/* The same header, and the same notes: the build-id is one of them. */
static bool same_file(const struct image *im)
{
    bool header = false;
    for (int i = 0; i < im->segment_count; i++) {
        const ElfW(Phdr) *p = &im->segments[i];
        uint64_t size = p->p_type == PT_NOTE                       ? p->p_filesz
                        : p->p_type == PT_LOAD && p->p_offset == 0 ? sizeof(Elf64_Ehdr)
                                                                   : 0;
        if (!size)
            continue;
        const void *here = loaded_at(im, p->p_vaddr, size), *there = elf_file_at(&im->file, p->p_vaddr, size);
        if (here && (!there || memcmp(here, there, size) != 0))
            return false;
        header |= here && p->p_type == PT_LOAD;
    }
    return header;
}

static bool try_file(struct image *im, const char *path)
{
    if (!image_map_file(&im->file, path))
        return false;
    if (same_file(im)) {
        read_ahead(&im->file);
        return true;
    }
    image_unmap_file(&im->file);
    return false;
}

bool image_open(struct image *im, const struct link_map *map, bool executable)
{
    struct mapping m;
    memset(im, 0, sizeof(*im));
    im->map = map;
    dl_iterate_phdr(find_segments, im);
    im->from = UINTPTR_MAX;
    for (int i = 0; i < im->segment_count; i++) {
        const ElfW(Phdr) *p = &im->segments[i];
        if (p->p_type != PT_LOAD)
            continue;
        uintptr_t from = map->l_addr + p->p_vaddr, to = from + p->p_memsz;
        im->from = from < im->from ? from : im->from;
        im->to = to > im->to ? to : im->to;
    }
    if (!im->to)
        return false;
    if (maps_find((uintptr_t)map->l_ld, &m))
        memcpy(im->path, m.path, sizeof(im->path));
    /* Not /proc/self/exe alone: of a program started as "ld.so program" that is the loader. */
    return (executable && try_file(im, "/proc/self/exe")) || (im->path[0] == '/' && try_file(im, im->path));
}

void image_close(struct image *im)
{
    image_unmap_file(&im->file);
}

bool image_speaks(const struct image *im)
{
    static const char property[] = "topic.metadata.refresh.sparse";
    for (int i = 0; i < im->segment_count; i++) {
        const ElfW(Phdr) *p = &im->segments[i];
        if (p->p_type == PT_LOAD && (p->p_flags & (PF_R | PF_W)) == PF_R &&
            memmem((const void *)(im->map->l_addr + p->p_vaddr), p->p_filesz, property, sizeof(property)))
            return true;
    }
    return false;
}

bool image_debug_file(const struct image *im, struct elf_file *f)
{
    char path[1400];
    for (int place = 0; copy_debug_file(&im->file, im->path, place, path, sizeof(path)); place++) {
        if (!image_map_file(f, path))
            continue;
        if (copy_same_build(f, &im->file))
            return true;
        image_unmap_file(f);
    }
    return false;
}

bool image_untouched(const struct image *im, uint64_t at, uint64_t size, uint64_t strict)
{
    const uint8_t *here = loaded_at(im, at, size), *there = elf_file_at(&im->file, at, size);
    for (uint64_t i = 0; here && there && i < size; i++)
        if ((i < strict || here[i] != 0xcc) && here[i] != there[i])
            return false;
    return here && there;
}
