/*
 * peek.h: what can be seen of a thread from outside. Reads /proc only; no locks, no allocation, no loader.
 */
#ifndef RDGATE_PEEK_H
#define RDGATE_PEEK_H

#include "snapshot.h"

#include <stdbool.h>
#include <stdint.h>

/* The mapping that this address lies in, as /proc/self/maps has it. A thread, a fiber and a coroutine each
 * have a stack of their own, and a guard page keeps their mappings apart. false: none, or it cannot be seen.
 */
bool mapping_of(uintptr_t address, uintptr_t *from, uintptr_t *to);
/* The stack pointer of a thread that sleeps in the kernel; 0 if it runs or cannot be seen. */
uintptr_t stack_pointer(int tid);

/* Once, by the thread that makes the first consumer: finds out whether pthread mutexes look as they should.
 * If not, no owner is ever named. */
void peek_start(void);
/* Fills in tid, name, sleep, syscall, futex, mutex_owner and mutex_elsewhere; what cannot be seen is "not
 * known". */
void peek_thread(int tid, struct seen_thread *t);
/* The kernel's name of the thread; empty if it cannot be seen. */
void peek_name(int tid, char name[16]);

#endif
