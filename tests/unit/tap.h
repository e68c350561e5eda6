/* tap.h: what unit tests print. is(got, wanted), is_text(...), ok(condition); end with return done(). */
#pragma once

#include <stdio.h>
#include <string.h>

static int tap_points, tap_failures;

#define ok(condition) tap_point((condition), #condition, __FILE__, __LINE__)
#define is(got, wanted)                                                                                      \
    do {                                                                                                     \
        long long got_ = (got), wanted_ = (wanted);                                                          \
        if (!tap_point(got_ == wanted_, #got " is " #wanted, __FILE__, __LINE__))                            \
            printf("#   got %lld, not %lld\n", got_, wanted_);                                               \
    } while (0)
#define is_text(got, wanted)                                                                                 \
    do {                                                                                                     \
        const char *got_ = (got), *wanted_ = (wanted);                                                       \
        if (!tap_point(strcmp(got_, wanted_) == 0, #got " is " #wanted, __FILE__, __LINE__))                 \
            printf("#   got \"%s\", not \"%s\"\n", got_, wanted_);                                           \
    } while (0)

static int tap_point(int good, const char *what, const char *file, int line)
{
    /* a description ends where TAP's directives begin */
    printf("%sok %d %.*s\n", good ? "" : "not ", ++tap_points, (int)strcspn(what, "#\n"), what);
    if (!good) {
        tap_failures++;
        printf("#   at %s:%d\n", file, line);
    }
    fflush(stdout);
    return good;
}

static int done(void)
{
    printf("1..%d\n", tap_points);
    return tap_failures > 0;
}
