/*
 * rewrite.h: memory for code near other code, and writing into code. No page is ever writable and executable
 * at once, and none that was executable stays without: where that cannot be had, nothing is written.
 */
#ifndef RDGATE_REWRITE_H
#define RDGATE_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum way { NO_WAY, BY_MEM, BY_MEMFD, BY_MPROTECT };

struct rewriter {
    enum way way;
    int fd;        /* of /proc/self/mem, or the memfd */
    int64_t used;  /* BY_MEMFD: bytes of it that are mapped */
    int errors[3]; /* errno of each way that was tried in vain */
};

/* Finds a way that works here, on memory of its own. false: there is none. */
bool rewrite_begin(struct rewriter *w);
void rewrite_end(struct rewriter *w);
/* Writes, and reads back what it wrote. */
bool rewrite(struct rewriter *w, uint64_t address, const void *bytes, size_t size);
/* `size` bytes, executable and not writable, that end below `below`, at most `reach` away from it. The gap
 * above an image is its heap's. NULL: there is no room. */
void *rewrite_area(uint64_t below, size_t size, uint64_t reach);

/* How much code the largest area takes: its pages are ours mapped once more, so that profilers have a name
 * for them. */
#define REWRITE_AREA 32768

#endif
