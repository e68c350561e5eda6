/*
 * inside.h: finds librdkafka among the symbols of a file that has much else inside: where its functions begin
 * and end, and which stretches of code are all its own. Pure but for scratch memory of its own.
 */
#ifndef RDGATE_INSIDE_H
#define RDGATE_INSIDE_H

#include "real.h"
#include "symbols.h"

#define X(name) +1
enum { HELPER_COUNT = 0 FOR_HELPERS(X), INSIDE_COUNT = CALL_COUNT + HELPER_COUNT };
#undef X

/* The table's names, then the helpers'. */
const char *inside_name(int i);

/* A function. Addresses are those of the file, before the load address is added. */
struct where {
    uint64_t at; /* 0: not there */
    uint64_t size;
    uint64_t next; /* where the next symbol begins */
    uint64_t cold, cold_size;
    bool odd; /* no plain function, or named twice */
};

struct inside {
    struct where place[INSIDE_COUNT];
    struct span own[SPANS];
    int spans;
    int public; /* how many names begin with rd_kafka_ */
    bool lto;   /* traces of link-time optimisation among them */
};

/* false: no memory. `whole`: the table is a .symtab, in which nothing is missing. */
bool inside_find(struct inside *in, const struct elf_file *f, const struct elf_symbols *s, bool whole);

#endif
