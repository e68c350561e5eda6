/*
 * peek.h: what can be seen of a thread, and of the address space, from outside. Reads /proc and memory only
 * through the kernel: no locks, no allocation, no loader, no fault whatever the address. Nothing here changes
 * errno or is a point of cancellation.
 */
#ifndef RDGATE_PEEK_H
#define RDGATE_PEEK_H

#include "snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Finds out whether this libc's mutexes look as we believe. Once, by a thread of the application, before the
 * watchdog begins to look. Without it, or if they do not, no owner of an ordinary mutex is ever named. */
void peek_start(void);

/* Fills in name, sleep, syscall, futex, mutex_owner and mutex_elsewhere, and nothing else. What cannot be
 * seen is SLEEP_UNKNOWN, -1, 0. */
void peek_thread(int tid, struct seen_thread *t);
/* The thread's name; empty if it cannot be seen. */
void peek_name(int tid, char name[16]);

/* Is this a thread of this process that has not ended? */
bool peek_lives(int tid);
/* One number of a thread's "status" that follows `label`, in hexadecimal. */
bool peek_status(int tid, const char *label, uint64_t *number);
/* Copies from our own address space; false if not all of it can be read. */
bool peek_memory(uintptr_t from, void *to, size_t size);

/* The stack pointer of a thread that sleeps in the kernel; 0 if it runs or cannot be seen. */
uintptr_t stack_pointer(int tid);

#endif
