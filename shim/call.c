/*
 * call.c: the calls of calls.def as data: name, class, traits. No logic.
 */
#include "call.h"

const struct call_info rdg_calls[CALL_COUNT] = {
#define CALL(kind, result, name, parameters, arguments, key, class, fail, timeout, traits)                   \
    {#name, class, traits},
#include "calls.def"
};
