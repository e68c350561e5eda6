/*
 * patch.h: a librdkafka that is linked into the executable, where the loader binds nothing and a preload's
 * symbols are never asked for: its functions are redirected at their entries.
 */
#ifndef RDGATE_PATCH_H
#define RDGATE_PATCH_H

/* At start-up, before anything of the executable has run. Does nothing for an executable without librdkafka,
 * and says why where there is one that cannot be redirected. */
void patch_executable(void);
/* Before the application opens this file: if it has a copy hidden inside it is opened, and redirected, first.
 * Code that its constructors run is too early. */
void patch_module(const char *file, int flags);
/* In a forked child: nobody else patches. */
void patch_after_fork(void);

#endif
