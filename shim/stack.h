/*
 * stack.h: stacks of threads, and names for the addresses in them. No allocation, no loader.
 */
#ifndef RDGATE_STACK_H
#define RDGATE_STACK_H

#include "snapshot.h"

/* Once, by a thread of the application, where it may enter the loader: makes ready what unwinding needs. */
void stack_start(void);
/* This thread's own stack, the innermost frame first, without this library's frames as far as they are known.
 * Returns how many; 0 where it cannot be had. Cheap, takes no lock. Async-signal-safe after stack_start. */
int stack_here(uintptr_t *frames, int most);
/* Asks another thread of this process by signal, and waits for the answer for so many milliseconds. -1: it
 * did not answer. A system call of that thread that is never restarted (poll, epoll_wait, nanosleep) sees
 * EINTR, so it is only done on request or for a proven deadlock. One caller at a time (the watchdog). */
int stack_of(int tid, uintptr_t *frames, int most, int64_t wait_ms);
/* Says where an address lies: the file, and the function by the file's own symbol table. false: not known. */
bool place_name(uintptr_t address, struct place *p);

#endif
