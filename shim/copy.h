/*
 * copy.h: judges a copy of librdkafka inside something else, by its file: is it one, is it whole, can its
 * entries be redirected, and if not, why. Pure. What patch.c does and what `rdgate check` foretells are
 * decided here.
 */
#ifndef RDGATE_COPY_H
#define RDGATE_COPY_H

#include "inside.h"
#include "plan.h"

/* Finds it by the names of its functions, in the full table or in the dynamic one. */
bool copy_find(struct inside *in, const struct elf_file *f);
/* Is there a full table of symbols at all? */
bool copy_has_symbols(const struct elf_file *f);
/* Without symbols only its strings tell that it is there. */
bool copy_speaks(const struct elf_file *f);
/* A module whose copy has its names all in the full table and none in the dynamic one. */
bool copy_is_hidden(const struct elf_file *f);
/* Is there anything to be looked into? librdkafka resolves names and addresses, sends and receives messages,
 * starts threads, and names them or throws dice; who binds it dynamically needs nothing of this. `asks`: does
 * the object ask others for it? */
bool copy_possible(bool (*asks)(const void *object, const char *name), const void *object);

/* NULL: it is one, beyond doubt; "": it is none; otherwise why there is no telling. */
const char *copy_recognised(const struct inside *in);
/* The functions without which nothing may be gated. */
bool copy_vital(int call);
/* NULL: this function's entry can be redirected; otherwise why not. */
const char *copy_plan(struct plan *plan, const struct inside *in, const struct elf_file *f, int call,
                      uint64_t load);
/* What to say of one that has no symbols. */
const char *copy_keep_symbols(const struct elf_file *f);
/* Where gdb looks for the debug file of the object at `path`, most likely first; false: no more places. */
bool copy_debug_file(const struct elf_file *f, const char *path, int place, char *to, size_t size);
/* Are these of one build? */
bool copy_same_build(const struct elf_file *a, const struct elf_file *b);

#endif
