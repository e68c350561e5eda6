/*
 * watch.h: the watchdog, one thread per process as long as there are consumers.
 */
#ifndef RDGATE_WATCH_H
#define RDGATE_WATCH_H

/* Handles that have no record: the inner ones of share consumers. */
extern _Atomic int rdg_uncounted;

/* A consumer was born: the thread runs when this returns, unless it cannot be made. Any thread. */
void watch_start(void);
/* A consumer is gone. With the last one the thread ends, and is waited for: it must never be the last thread
 * of a process whose main thread has called pthread_exit. */
void watch_consumer_gone(void);
/* In a forked child: there is no such thread here. */
void watch_after_fork(void);
/* The child touched what it inherited. */
void watch_in_child(void);

#endif
