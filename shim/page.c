/*
 * page.c: a bounded page of text. It knows columns, blanks and escapes, and nothing of what is written.
 */
#include "page.h"

#include <string.h>

static void put(struct page *p, char c)
{
    if (p->full || p->used + 1 >= p->size)
        p->full = true;
    else
        p->bytes[p->used++] = c;
}

/* Ends the line at the last blank; if there is none, here. */
static void wrap(struct page *p)
{
    size_t at = p->blank ? p->blank : p->used - 1, skip = p->blank ? 1 : 0;
    size_t tail = p->used - at - skip, indent = (size_t)p->indent;
    if (at + 1 + indent + tail + 1 >= p->size) {
        p->full = true;
        return;
    }
    memmove(p->bytes + at + 1 + indent, p->bytes + at + skip, tail);
    p->bytes[at] = '\n';
    memset(p->bytes + at + 1, ' ', indent);
    p->used = at + 1 + indent + tail;
    p->column = (int)(indent + tail);
    p->blank = 0;
}

static void one(struct page *p, char c, bool breaks)
{
    if (p->full)
        return;
    if (p->json && (c == '"' || c == '\\'))
        put(p, '\\');
    if (breaks && !p->json && p->column > p->indent)
        p->blank = p->used;
    put(p, c);
    if (!p->json && !p->full && ++p->column > PAGE_COLUMNS)
        wrap(p);
}

void page_char(struct page *p, char c)
{
    one(p, c == '~' ? ' ' : c, c == ' ');
}

void page_add(struct page *p, const char *s)
{
    for (; *s; s++)
        page_char(p, *s);
}

void page_raw(struct page *p, const char *s)
{
    for (; *s; s++)
        put(p, *s);
}

void page_escaped(struct page *p, const char *s, size_t most)
{
    for (size_t i = 0; s && i < most && s[i]; i++)
        one(p, s[i] >= 0x20 && s[i] < 0x7f ? s[i] : '?', false);
}

void page_number(struct page *p, int64_t n)
{
    char out[24];
    size_t i = sizeof(out);
    uint64_t rest = n < 0 ? -(uint64_t)n : (uint64_t)n;
    do {
        out[--i] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (n < 0)
        out[--i] = '-';
    page_escaped(p, out + i, sizeof(out) - i);
}

void page_hex(struct page *p, uint64_t n)
{
    char out[20];
    size_t i = sizeof(out);
    do {
        out[--i] = "0123456789abcdef"[n % 16];
        n /= 16;
    } while (n);
    out[--i] = 'x';
    out[--i] = '0';
    page_escaped(p, out + i, sizeof(out) - i);
}

static void amount(struct page *p, int64_t n, const char *unit)
{
    page_number(p, n);
    page_add(p, unit);
}

void page_duration(struct page *p, int64_t ms)
{
    int64_t s = ms / 1000;
    if (ms < 1000) {
        amount(p, ms, "~ms");
    } else if (s < 600) {
        amount(p, s, ".");
        amount(p, ms % 1000 / 100, "~s");
    } else if (s < 7200) {
        amount(p, s / 60, "~min");
    } else if (s < 172800) {
        amount(p, s / 3600, "~h~");
        amount(p, s % 3600 / 60, "~min");
    } else {
        amount(p, s / 86400, "~days");
    }
}

static void padded(struct page *p, int64_t n, int digits)
{
    for (int64_t least = 10; digits > 1; digits--, least *= 10)
        if (n < least)
            page_char(p, '0');
    page_number(p, n);
}

void page_time(struct page *p, int64_t ms)
{
    if (ms < 0 || ms > 253402300799999) /* the year 9999 */
        ms = 0;
    int64_t days = ms / 86400000, rest = ms % 86400000;
    /* days of years that begin in March, in eras of 400 years (H. Hinnant, days_from_civil) */
    int64_t z = days + 719468, era = z / 146097, doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), m = (5 * doy + 2) / 153;
    int64_t month = m < 10 ? m + 3 : m - 9;
    padded(p, yoe + era * 400 + (month <= 2), 4);
    page_char(p, '-');
    padded(p, month, 2);
    page_char(p, '-');
    padded(p, doy - (153 * m + 2) / 5 + 1, 2);
    page_char(p, 'T');
    padded(p, rest / 3600000, 2);
    page_char(p, ':');
    padded(p, rest / 60000 % 60, 2);
    page_char(p, ':');
    padded(p, rest / 1000 % 60, 2);
    page_char(p, '.');
    padded(p, rest % 1000, 3);
    page_char(p, 'Z');
}

void page_line(struct page *p, int indent)
{
    put(p, '\n');
    p->column = 0;
    p->blank = 0;
    p->indent = indent;
}
