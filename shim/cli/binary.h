/*
 * binary.h: what `rdgate check` knows of one file: an ELF file of any kind, or a script. Reads the file and
 * nothing else, and believes nothing in it.
 */
#ifndef RDGATE_BINARY_H
#define RDGATE_BINARY_H

#include "../copy.h"

#include <sys/stat.h>

enum binary_kind {
    SCRIPT,
    FOREIGN_ELF, /* of another class, byte order or machine */
    STATIC,      /* no interpreter, nothing dynamic */
    STATIC_PIE,
    PROGRAM, /* with an interpreter */
    MODULE,  /* a shared object */
    ODD_ELF, /* an object file, a core */
};

#define NEEDED_MOST 256

struct binary {
    struct elf_file f;
    struct stat st;
    enum binary_kind kind;
    char interpreter[512]; /* a script's: what follows #! */
    /* of its dynamic section; the strings lie in the file */
    const char *needed[NEEDED_MOST];
    int needed_count;
    const char *soname, *rpath, *runpath;
    bool no_default; /* searches no default directories */
    struct elf_symbols dynamic;
};

/* NULL, or what is wrong with the file. On NULL binary_close is due. */
const char *binary_open(struct binary *b, int fd);
/* The same for one of which nothing but its bytes is wanted. */
const char *binary_map(struct binary *b, int fd);
void binary_close(struct binary *b);

/* "64-bit x86-64" */
const char *binary_words(const struct binary *b);
/* Does it ask others for this function? Does it offer it to others? */
bool binary_asks(const void *binary, const char *name);
bool binary_offers(const struct binary *b, const char *name);
/* The next of the functions of librdkafka that it asks others for, from *i on; NULL: no more. */
const char *binary_asked(const struct binary *b, size_t *i);
/* Does it call its own function of this name as it would somebody else's, so that the loader decides? */
bool binary_binds(const struct binary *b, const char *name);
/* The version of the librdkafka that stands in it, as RD_KAFKA_VERSION; 0: cannot be seen. */
unsigned binary_version(const struct binary *b, const struct inside *in);
/* The newest version of glibc (minor * 1000 + patch) that it asks for, or, of a libc, offers; 0: none. */
unsigned binary_glibc(const struct binary *b, bool offers);
bool binary_contains(const struct binary *b, const char *text);

#endif
