/*
 * say.c: formatting without stdio or malloc. Pure: it writes nowhere.
 */
#include "say.h"

#include <string.h>

static void bytes(struct text *t, const char *s, size_t n)
{
    size_t room = sizeof(t->bytes) - 2 - t->used;
    if (n > room)
        n = room;
    memcpy(t->bytes + t->used, s, n);
    t->used += n;
}

void text_add(struct text *t, const char *s)
{
    bytes(t, s, strlen(s));
}

static void digits(struct text *t, uint64_t n, unsigned base)
{
    char out[24];
    size_t i = sizeof(out);
    do {
        out[--i] = "0123456789abcdef"[n % base];
        n /= base;
    } while (n);
    bytes(t, out + i, sizeof(out) - i);
}

void text_number(struct text *t, int64_t n)
{
    if (n < 0)
        text_add(t, "-");
    digits(t, n < 0 ? -(uint64_t)n : (uint64_t)n, 10);
}

void text_hex(struct text *t, uint64_t n)
{
    text_add(t, "0x");
    digits(t, n, 16);
}

void text_escaped(struct text *t, const char *s, size_t most)
{
    for (size_t i = 0; s && s[i] && i < most; i++) {
        char c = s[i] >= 0x20 && s[i] < 0x7f ? s[i] : '?';
        bytes(t, &c, 1);
    }
}

void text_duration(struct text *t, int64_t ms)
{
    if (ms < 1000) {
        text_number(t, ms);
        text_add(t, " ms");
        return;
    }
    text_number(t, ms / 1000);
    text_add(t, ".");
    text_number(t, ms % 1000 / 100);
    text_add(t, " s");
}

const char *text_end(struct text *t)
{
    t->bytes[t->used] = 0;
    return t->bytes;
}
