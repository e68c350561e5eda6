/*
 * clean.c: text from outside, made harmless. A consumer's name may hold escape sequences that a terminal
 * would obey.
 */
#include "clean.h"

#include <langinfo.h>
#include <stdint.h>
#include <string.h>

/* The length of the UTF-8 sequence at p, and its character; 0: it is none. Reads no further than the end of
 * the string. */
static int sequence(const unsigned char *p, uint32_t *c)
{
    int n = *p < 0x80                 ? 1
            : *p >= 0xc2 && *p < 0xe0 ? 2
            : *p >= 0xe0 && *p < 0xf0 ? 3
            : *p >= 0xf0 && *p < 0xf5 ? 4
                                      : 0;
    if (n == 0)
        return 0;
    *c = n == 1 ? *p : *p & (0x7fu >> n);
    for (int i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        *c = *c << 6 | (p[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    return *c >= least[n] && *c <= 0x10ffff && !(*c >= 0xd800 && *c < 0xe000) ? n : 0;
}

/* Controls, and what turns the direction of writing or is not seen. */
static bool hidden(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || c >= 0xe0000;
}

void clean(char *to, size_t size, const char *from, bool ascii)
{
    const unsigned char *p = (const unsigned char *)from;
    size_t n = 0;
    while (size && *p) {
        uint32_t c = 0;
        int length = sequence(p, &c), took = length ? length : 1;
        if (!length || hidden(c) || (ascii && c >= 0x80)) {
            if (n + 1 >= size)
                break;
            to[n++] = '?';
        } else {
            if (n + (size_t)length >= size)
                break;
            memcpy(to + n, p, (size_t)length);
            n += (size_t)length;
        }
        p += took;
    }
    if (size)
        to[n] = 0;
}

bool speaks_utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}
