/*
 * say.h: text without stdio or malloc. A struct text on the caller's stack never overflows: what does not fit
 * is cut. Everything here may be called with any lock held and in a forked child.
 */
#ifndef RDGATE_SAY_H
#define RDGATE_SAY_H

#include <stddef.h>
#include <stdint.h>

struct text {
    size_t used;
    char bytes[1024];
};

void text_add(struct text *t, const char *s);
void text_number(struct text *t, int64_t n);
void text_hex(struct text *t, uint64_t n);
/* A string from outside, at most `most` bytes of it, with control and non-ASCII characters shown as ?. */
void text_escaped(struct text *t, const char *s, size_t most);
/* Milliseconds as 12.3 s or 450 ms. */
void text_duration(struct text *t, int64_t ms);
/* The text, terminated. */
const char *text_end(struct text *t);

/* What a hexadecimal digit is worth; more than any base if it is none. */
static inline unsigned text_digit(char c)
{
    return c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) : 99;
}

#endif
