/*
 * within.h: a librdkafka inside a program or a module, which keeps its calls to itself: are its entries
 * redirected, can they be, and if not, what else?
 */
#ifndef RDGATE_WITHIN_H
#define RDGATE_WITHIN_H

#include "covers.h"

/* Is there one in this file that the shim would look for? */
bool within(const struct loaded *l, bool program);
/* What is to be said of it. */
void within_say(struct covers *c, const struct loaded *l, bool program);
/* How its build is told to link librdkafka dynamically. */
const char *within_advice(const struct binary *b);

#endif
