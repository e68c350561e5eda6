/*
 * lookup.h: what the assembly stubs for dlsym and dlopen ask C.
 */
#ifndef RDGATE_LOOKUP_H
#define RDGATE_LOOKUP_H

/* The real functions that the stubs jump to; set by real_start. */
extern void *(*rdg_real_dlsym)(void *, const char *);
extern void *(*rdg_real_dlopen)(const char *, int);

/* The answer to dlsym(handle, name) if it is ours to give. NULL: jump to the real one. NOT_THERE: the answer
 * is NULL, because only our own wrapper bears this name, and dlerror() is set. */
#define NOT_THERE ((void *)1)
void *rdg_lookup(void *handle, const char *name, const void *caller);
/* The flags that dlopen(file, flags) shall really use. */
int rdg_open_flags(const char *file, int flags);

/* Entry points of one library for the calls that name no handle, for callers who came through dlsym and whose
 * return address tells nothing (libffi, a JIT). NULL: the usual wrapper will do. */
void *odd_entry(int call, int library);

#endif
