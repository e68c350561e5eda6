/*
 * around.c: what `rdgate check` looks at beside the files themselves: other preloads, options, and files that
 * cannot be opened.
 */
#include "check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void die(const char *format, ...)
{
    char words[PATH_MAX + 256];
    va_list list;
    va_start(list, format);
    vsnprintf(words, sizeof(words), format, list);
    va_end(list);
    for (char *p = words; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?';
    fprintf(stderr, "rdgate check: %s\n", words);
    exit(CHECK_SYSTEM);
}

void open_named(struct loaded *l, const char *name, int fd)
{
    const char *why = fd < 0 ? strerror(errno) : binary_open(&l->b, fd);
    if (fd >= 0)
        close(fd);
    if (why)
        die(fd < 0 ? "%s: %s" : "%s %s", name, why);
}

/* A library that is preloaded, too. */
static void other_preload(struct covers *c, const char *path, const char *from, bool before)
{
    struct binary b;
    int fd = strchr(path, '/') ? world_open(&c->world, path) : -1;
    const char *what = "";
    if (fd >= 0) {
        if (!binary_open(&b, fd)) {
            if (b.kind == MODULE && binary_offers(&b, "rd_kafka_consumer_poll"))
                what = "; it has functions of librdkafka's names, and must hand those calls on";
            else if (b.kind == MODULE && binary_offers(&b, "dlsym"))
                what = "; it has a dlsym of its own, and lookups may not come to us";
            binary_close(&b);
        }
        close(fd);
    }
    covers_say(c, LEVEL_NOTE, NULL, "%s names %s, which comes %s librdgate.so%s", from, path,
               before ? "before" : "behind", what);
}

/* Is ours among them? */
bool say_preloads(struct covers *c, const char *list, const char *from, const char *separators)
{
    char *words = strdup(list), *rest = words, *word;
    bool ours = false;
    while (words && (word = strsep(&rest, separators))) {
        const char *slash = strrchr(word, '/');
        if (!*word)
            continue;
        if (strcmp(slash ? slash + 1 : word, "librdgate.so") == 0)
            ours = true;
        else
            other_preload(c, word, from, !ours);
    }
    free(words);
    return ours;
}

bool say_preload_file(struct covers *c)
{
    char text[4096];
    int fd = world_open(&c->world, "/etc/ld.so.preload");
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0 && say_preloads(c, text, "/etc/ld.so.preload", " \t\n:");
}

static struct covers *complaining; /* options_parse hands nothing on */

static void complain(const char *sentence)
{
    covers_say(complaining, LEVEL_NOTE, NULL, "%s", sentence);
}

void say_options(struct covers *c, char *const *env, const char *whose)
{
    complaining = c;
    options_parse(&c->options, env, complain);
    if (c->options.mode == OFF)
        covers_say(c, LEVEL_NO, NULL, "RDGATE_MODE=off in %s environment turns rdgate off", whose);
}
