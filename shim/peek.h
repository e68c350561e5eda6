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
void peek_start(void);
void peek_thread(int tid, struct seen_thread *t);
void peek_name(int tid, char name[16]);

#endif
