/*
 * page.h: bytes of any number into a buffer of any size, wrapped for people or escaped for JSON. Pure: no
 * stdio, no malloc. What does not fit is dropped and `full` says so.
 */
#ifndef RDGATE_PAGE_H
#define RDGATE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_COLUMNS 100

struct page {
    char *bytes;
    size_t size, used;
    size_t blank; /* where this line can be broken, 0: nowhere */
    int column, indent;
    bool json; /* inside a JSON string: no wrapping, but escapes */
    bool full;
};

void page_char(struct page *p, char c);
/* Our own words; ~ is a blank at which no line is broken. */
void page_add(struct page *p, const char *s);
/* As they are: the syntax of JSON, fences. */
void page_raw(struct page *p, const char *s);
/* A string from outside, at most `most` bytes; it is never broken and has no control characters. */
void page_escaped(struct page *p, const char *s, size_t most);
void page_number(struct page *p, int64_t n);
void page_hex(struct page *p, uint64_t n);
/* Milliseconds, for people: 450 ms, 12.3 s, 11 min, 3 h 12 min, 4 days. */
void page_duration(struct page *p, int64_t ms);
/* ISO 8601, UTC, with milliseconds. */
void page_time(struct page *p, int64_t ms);
/* Ends the line; the next is wrapped to this indent. */
void page_line(struct page *p, int indent);

#endif
