/*
 * peek.c: what a foreign thread is doing. Every file of /proc may be missing; then the answer is "not seen".
 */
#include "peek.h"
#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uintptr_t hex(const char **p)
{
    uintptr_t n = 0;
    for (;; (*p)++) {
        char d = **p;
        if (d >= '0' && d <= '9')
            n = n * 16 + (uintptr_t)(d - '0');
        else if (d >= 'a' && d <= 'f')
            n = n * 16 + (uintptr_t)(d - 'a' + 10);
        else
            return n;
    }
}

bool mapping_of(uintptr_t address, uintptr_t *from, uintptr_t *to)
{
    int saved = errno;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    bool found = false, skip = false;
    char text[1024];
    size_t have = 0;
    ssize_t n;
    while (fd >= 0 && !found && (n = read(fd, text + have, sizeof(text) - 1 - have)) > 0) {
        have += (size_t)n;
        text[have] = 0;
        const char *line = text, *end;
        /* Only the two addresses at the start of a line count; a long path is skipped over. */
        while (!found && (end = memchr(line, '\n', (size_t)(text + have - line)))) {
            const char *p = line;
            *from = hex(&p);
            if (!skip && *p++ == '-') {
                *to = hex(&p);
                found = address >= *from && address < *to;
            }
            skip = false;
            line = end + 1;
        }
        have = (size_t)(text + have - line);
        if (have == sizeof(text) - 1) {
            have = 0;
            skip = true;
        }
        memmove(text, line, have);
    }
    if (fd >= 0)
        close(fd);
    errno = saved;
    return found;
}

/* proc(5), /proc/pid/task/tid/syscall: "nr args… sp pc" or "-1 sp pc". */
uintptr_t stack_pointer(int tid)
{
    struct text path = {0};
    text_add(&path, "/proc/self/task/");
    text_number(&path, tid);
    text_add(&path, "/syscall");
    int fd = open(text_end(&path), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    char line[256];
    ssize_t n = read(fd, line, sizeof(line) - 1);
    close(fd);
    if (n <= 0)
        return 0;
    line[n] = 0;
    char *sp = NULL, *pc = NULL;
    for (char *p = line; *p; p++) {
        if (*p == ' ') {
            sp = pc;
            pc = p + 1;
        }
    }
    return sp ? strtoull(sp, NULL, 16) : 0;
}
void peek_start(void) {}
void peek_thread(int tid, struct seen_thread *t) { peek_name(tid, t->name); }
void peek_name(int tid, char name[16])
{
    struct text path = {0};
    text_add(&path, "/proc/self/task/");
    text_number(&path, tid);
    text_add(&path, "/comm");
    int fd = open(text_end(&path), O_RDONLY | O_CLOEXEC);
    memset(name, 0, 16);
    if (fd >= 0) {
        ssize_t n = read(fd, name, 15);
        if (n > 0 && name[n - 1] == '\n') name[n - 1] = 0;
        close(fd);
    }
}
