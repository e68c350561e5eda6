/*
 * flight_pack.h: one record of snapshot.h into its fixed-width form and back, expanded from the lists of
 * flight_layout.h. Pure. What comes out of a file is made harmless here: flags become true or false, strings
 * end; numbers are as they are, and verdict.c and report.c check each index and count.
 */
#ifndef RDGATE_FLIGHT_PACK_H
#define RDGATE_FLIGHT_PACK_H

#include "flight_layout.h"

#include <string.h>

#define FLIGHT_OMIT(type, name)
#define FLIGHT_OUT(type, name) to->name = (type)from->name;
#define FLIGHT_IN(type, name)  to->name = (__typeof__(to->name))from->name;
#define FLIGHT_TEXT(name, size)                                                                              \
    _Static_assert(sizeof(to->name) == (size) && sizeof(from->name) == (size), #name);                       \
    memcpy(to->name, from->name, size);                                                                      \
    to->name[(size)-1] = 0;

#define FLIGHT_COPIES(what, FIELDS, wide)                                                                    \
    static inline void pack_##what(struct flight_##what *to, const struct wide *from)                        \
    {                                                                                                        \
        memset(to, 0, sizeof(*to));                                                                          \
        FIELDS(FLIGHT_OUT, FLIGHT_TEXT, FLIGHT_OMIT)                                                         \
    }                                                                                                        \
    static inline void unpack_##what(struct wide *to, const struct flight_##what *from)                      \
    {                                                                                                        \
        memset(to, 0, sizeof(*to));                                                                          \
        FIELDS(FLIGHT_IN, FLIGHT_TEXT, FLIGHT_OMIT)                                                          \
    }
FLIGHT_COPIES(debt, FLIGHT_DEBT, debt)
FLIGHT_COPIES(rebalance, FLIGHT_REBALANCED, seen_rebalance)
FLIGHT_COPIES(seen_call, FLIGHT_SEEN_CALL, seen_call)
FLIGHT_COPIES(seen_thread, FLIGHT_SEEN_THREAD, seen_thread)
FLIGHT_COPIES(seen_consumer, FLIGHT_SEEN_CONSUMER, seen_consumer)
FLIGHT_COPIES(edge, FLIGHT_EDGE, edge)

#endif
