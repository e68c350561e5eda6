/*
 * stack.h: where a thread is: its frames, and their names. Takes no lock that the application could hold,
 * does not allocate and does not ask the loader, but for stack_start.
 *
 * Frames are addresses, the innermost first. Each lies inside the instruction that calls the frame before it:
 * the return address, less one; so the name of a function that ends with a call is its own, not the next
 * one's.
 */
#ifndef RDGATE_STACK_H
#define RDGATE_STACK_H

#include "snapshot.h"

#include <stdbool.h>
#include <stdint.h>

/* Once, by a thread of the application, before any of the others: loads what backtrace() needs. */
void stack_start(void);

/* This thread's own stack, its first frame being the caller of stack_here. Returns how many there are. */
int stack_here(uintptr_t *frames, int most);

/* Asks a thread of this process for its stack, by a signal, and waits for the answer; -1 if there was none.
 * One caller at a time. What the thread notices: poll, epoll_wait, select, nanosleep, and what else signal(7)
 * lists, return EINTR although the handler asks for a restart; locks and condition variables go on. */
int stack_of(int tid, uintptr_t *frames, int most, int64_t wait_ms);

/* What lies at this address, from /proc/self/maps and from the file itself, if it is still the one that was
 * mapped. p->offset is the address in the file's own terms, as addr2line takes it, or, when the file cannot
 * be read, how far into it. true: it is code of a file. Reads the file: for reports, not for every call. */
bool place_name(uintptr_t address, struct place *p);

#endif
