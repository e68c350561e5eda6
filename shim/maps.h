/*
 * maps.h: the lines of /proc/self/maps. Read through the kernel alone: no locks, no allocation, no loader.
 * Nothing here changes errno or is a point of cancellation.
 */
#ifndef RDGATE_MAPS_H
#define RDGATE_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct mapping {
    uintptr_t from, to;
    uint64_t offset;
    uint64_t device, inode; /* only good to be compared with another mapping's */
    bool code;              /* executable */
    bool shared;
    bool deleted;    /* its file has no name any more */
    bool cut;        /* the path is longer than fits; then it is empty */
    char base[48];   /* the last part of the path, cut to fit; [name] for what is no file */
    char path[1024]; /* as the kernel writes it; empty if the mapping has none */
};

/* The mapping that this address lies in. false: none, or it cannot be seen. */
bool maps_find(uintptr_t address, struct mapping *m);
/* The first mapping of which `is` says true; it may read m, which is filled in. */
bool maps_search(bool (*is)(const struct mapping *m, void *with), void *with, struct mapping *m);
/* The same with the maps of another process, which `fd` is opened on. */
bool maps_search_in(int fd, bool (*is)(const struct mapping *m, void *with), void *with, struct mapping *m);
/* The range of the mapping that this address lies in. A thread, a fiber and a coroutine each have a stack of
 * their own, and a guard page keeps their mappings apart. false: none, or it cannot be seen. */
bool maps_range(uintptr_t address, uintptr_t *from, uintptr_t *to);

#endif
