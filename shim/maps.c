/*
 * maps.c: see maps.h.
 */
#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct reader {
    int fd;
    size_t at, have;
    char bytes[2048];
};

static int next(struct reader *r)
{
    if (r->at == r->have) {
        ssize_t n = read(r->fd, r->bytes, sizeof(r->bytes));
        r->at = 0;
        r->have = n > 0 ? (size_t)n : 0;
        if (!r->have)
            return -1;
    }
    return (unsigned char)r->bytes[r->at++];
}

/* A hexadecimal number, and the character that ends it. */
static uint64_t number(struct reader *r, int *end)
{
    uint64_t n = 0;
    for (;;) {
        int c = *end = next(r);
        if (c >= '0' && c <= '9')
            n = n * 16 + (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            n = n * 16 + (uint64_t)(c - 'a' + 10);
        else
            return n;
    }
}

static int word(struct reader *r)
{
    int c;
    do
        c = next(r);
    while (c >= 0 && c != ' ' && c != '\n');
    return c;
}

bool maps_find(uintptr_t address, struct mapping *m)
{
    int saved = errno, c = 0;
    struct reader r = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    bool found = false;
    while (r.fd >= 0 && c >= 0 && !found) {
        size_t n = 0;
        m->from = number(&r, &c);
        if (c != '-')
            break;
        m->to = number(&r, &c);
        found = address >= m->from && address < m->to;
        word(&r); /* rwxp */
        m->offset = number(&r, &c);
        word(&r);     /* device */
        c = word(&r); /* inode */
        while (c == ' ')
            c = next(&r);
        for (; c >= 0 && c != '\n'; c = next(&r)) {
            if (n < sizeof(m->path))
                m->path[n] = (char)c;
            n++;
        }
        m->path[n < sizeof(m->path) ? n : 0] = 0;
    }
    if (r.fd >= 0)
        close(r.fd);
    errno = saved;
    return found;
}
