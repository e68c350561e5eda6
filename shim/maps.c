/*
 * maps.c: see maps.h.
 */
#include "maps.h"
#include "raw.h"
#include "say.h"

#include <stddef.h>
#include <string.h>

/* A line of /proc/self/maps: "from-to perms offset major:minor inode    path", a character at a time, since
 * it may be longer than any buffer, and some of the threads that look have small stacks. */
struct line {
    enum { FROM, TO, PERMISSIONS, OFFSET, MAJOR, MINOR, INODE, GAP, PATH } field;
    uint64_t value;
    size_t path, base;
};

static void field_ends(struct line *l, struct mapping *m)
{
    switch (l->field) {
    case FROM: m->from = l->value; break;
    case TO: m->to = l->value; break;
    case OFFSET: m->offset = l->value; break;
    case MAJOR: m->device = l->value << 32; break;
    case MINOR: m->device |= l->value; break;
    case INODE: m->inode = l->value; break;
    default: break;
    }
    l->value = 0;
    if (l->field < GAP)
        l->field++;
}

static void line_ends(struct line *l, struct mapping *m)
{
    static const char suffix[] = " (deleted)";
    const size_t length = sizeof(suffix) - 1;
    field_ends(l, m);
    m->path[m->cut ? 0 : l->path] = m->base[l->base] = 0;
    m->deleted = !m->cut && l->path > length && strcmp(m->path + l->path - length, suffix) == 0;
    char *end = m->deleted ? strstr(m->base, suffix) : NULL;
    if (end)
        *end = 0;
}

static void take(struct line *l, struct mapping *m, char c)
{
    if (l->field == GAP && c != ' ')
        l->field = PATH;
    if (l->field == PATH) {
        if (l->path < sizeof(m->path) - 1)
            m->path[l->path++] = c;
        else
            m->cut = true;
        if (c == '/')
            l->base = 0;
        else if (l->base < sizeof(m->base) - 1)
            m->base[l->base++] = c;
    } else if (l->field == PERMISSIONS && c != ' ') {
        m->code = m->code || c == 'x';
        m->shared = m->shared || c == 's';
    } else if (text_digit(c) < (l->field == INODE ? 10 : 16)) {
        l->value = l->value * (l->field == INODE ? 10 : 16) + text_digit(c);
    } else if (l->field != GAP) {
        field_ends(l, m);
    }
}

bool maps_search_in(int fd, bool (*is)(const struct mapping *m, void *with), void *with, struct mapping *m)
{
    char text[512];
    long n;
    bool found = false;
    struct line l = {0};
    memset(m, 0, sizeof(*m));
    while (!found && (n = raw_read(fd, text, sizeof(text))) > 0) {
        for (long i = 0; i < n && !found; i++) {
            if (text[i] != '\n') {
                take(&l, m, text[i]);
                continue;
            }
            line_ends(&l, m);
            found = is(m, with);
            if (!found)
                memset(m, 0, offsetof(struct mapping, path));
            l = (struct line){0};
        }
    }
    return found;
}

bool maps_search(bool (*is)(const struct mapping *m, void *with), void *with, struct mapping *m)
{
    int fd = raw_open("/proc/self/maps");
    memset(m, 0, sizeof(*m));
    if (fd < 0)
        return false;
    bool found = maps_search_in(fd, is, with, m);
    raw_close(fd);
    return found;
}

static bool holds(const struct mapping *m, void *address)
{
    return (uintptr_t)address >= m->from && (uintptr_t)address < m->to;
}

bool maps_find(uintptr_t address, struct mapping *m)
{
    return maps_search(holds, (void *)address, m);
}

bool maps_range(uintptr_t address, uintptr_t *from, uintptr_t *to)
{
    struct mapping m;
    bool found = maps_find(address, &m);
    *from = m.from;
    *to = m.to;
    return found;
}
