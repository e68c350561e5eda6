/*
 * see.h: from live records to the plain data of snapshot.h. Reads what other threads write; takes no lock of
 * a gate.
 */
#ifndef RDGATE_SEE_H
#define RDGATE_SEE_H

#include "gate.h"
#include "snapshot.h"

/* pid, program, time. */
void see_process(struct snapshot *s);
/* The ledger included (which takes the registry lock). `clock`: now_ns() in ms. */
void see_consumer(struct consumer *c, struct seen_consumer *s, int64_t clock);
/* One call of a thread. age and callback_age are the caller's to fill in, and consumer. */
void see_call(const struct visit *v, struct seen_call *s, int64_t clock);

#endif
