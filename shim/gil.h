/*
 * gil.h: waits for Python's interpreter lock. It is no pthread mutex: a thread that waits for it sleeps in a
 * condition variable, which names no owner; the lock itself does.
 */
#ifndef RDGATE_GIL_H
#define RDGATE_GIL_H

#include "snapshot.h"

/* Once, by a thread of the application, where it may enter the loader: is there a Python in this process? */
void gil_start(void);
/* If the thread, which peek_thread saw in a futex, waits for the interpreter lock: says so, where the lock
 * lies, and who holds it. Otherwise changes nothing. No locks, no allocation, no loader. */
void gil_look(struct seen_thread *t);

#endif
