/*
 * stacks.h: the stacks of another process, taken from outside.
 */
#ifndef RDGATE_CLI_STACKS_H
#define RDGATE_CLI_STACKS_H

/* Prints the stack of every thread, or one line that says why not; pid 0: the process is not there to be
 * asked. */
void stacks_say(int pid);

#endif
