/*
 * maps.h: one line of /proc/self/maps. Takes no lock, allocates nothing, asks no loader.
 */
#ifndef RDGATE_MAPS_H
#define RDGATE_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct mapping {
    uintptr_t from, to;
    uint64_t offset;
    char path[1024]; /* as the kernel writes it; empty if the mapping has none or it is too long */
};

/* The mapping that this address lies in. false: none, or it cannot be seen. */
bool maps_find(uintptr_t address, struct mapping *m);

#endif
