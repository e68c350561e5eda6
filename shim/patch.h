/*
 * patch.h: a librdkafka that is linked into the executable or hidden in a module, where the loader binds
 * nothing and a preload's symbols are never asked for: its functions are redirected at their entries.
 */
#ifndef RDGATE_PATCH_H
#define RDGATE_PATCH_H

#include <link.h>
#include <stdbool.h>

/* At start-up, before anything of the executable has run. Does nothing for an executable without librdkafka,
 * and says why where there is one that cannot be redirected. */
void patch_executable(void);
/* An object that is known to have a copy, if it is no executable. Nobody may be in it. `why_not`: it must not
 * be done, and that is to be said; or NULL. */
void patch_object(const struct link_map *map, bool executable, const char *why_not);

/* Modules (opening.c): before the application opens this file. If it has a copy hidden inside it is opened,
 * and redirected, first. Code that its constructors run is too early. */
void patch_module(const char *file, int flags);
/* In a forked child: nobody else patches. */
void patch_after_fork(void);

#endif
