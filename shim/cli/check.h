/*
 * check.h: what the files of `rdgate check` share.
 */
#ifndef RDGATE_CHECK_H
#define RDGATE_CHECK_H

#include "covers.h"

enum { CHECK_WORKS = 0, CHECK_NO = 3, CHECK_USAGE = 100, CHECK_SYSTEM = 111 };

/* One line on stderr, and the end. */
__attribute__((format(printf, 1, 2), noreturn)) void die(const char *format, ...);
/* Takes over fd, which may be -1 with its errno; dies if it is nothing that can be checked. */
void open_named(struct loaded *l, const char *name, int fd);

/* Names the libraries of a list of preloads that are not ours; is ours among them? */
bool say_preloads(struct covers *c, const char *list, const char *from, const char *separators);
/* The same of /etc/ld.so.preload. */
bool say_preload_file(struct covers *c);
/* Takes the options from this environment. */
void say_options(struct covers *c, char *const *env, const char *whose);

/* All about the process c->pid. */
void check_process(struct covers *c);

#endif
