/*
 * world.h: the files that a program would find: below another process's root if need be (a container), by the
 * rules by which ld.so searches libraries.
 */
#ifndef RDGATE_WORLD_H
#define RDGATE_WORLD_H

#include "binary.h"

#include <limits.h>

struct world {
    int root;                 /* of somebody else's file system, or -1: ours */
    const char *library_path; /* LD_LIBRARY_PATH; NULL: none */
};

/* Opens a regular file; what is not one is opened without being touched, so that binary_open can say what it
 * is. Links are followed below the root. Returns a descriptor, or -1 and errno. */
int world_open(const struct world *w, const char *path);
/* A file that is part of a program, and who brought it: for $ORIGIN and for DT_RPATH, which is inherited. */
struct loaded {
    char path[PATH_MAX];
    struct binary b;
    const struct loaded *by; /* NULL: the program itself */
    /* of a process */
    uintptr_t base; /* where its first byte is mapped */
    bool deleted;
};
/* Finds the library of this name that `by` needs, and opens it. false: not found. On true binary_close is
 * due. */
bool world_load(const struct world *w, const struct loaded *by, const char *name, struct loaded *l);

#endif
