/*
 * loader open FLAGS PATH SYMBOL [DIR]   dlopen, call SYMBOL, dlclose, all twice; in DIR if given
 * loader errors LIBM                    what dlerror says of things that are not there
 * loader probe                          is librdkafka there? A program with optional Kafka asks so
 * loader stable LIBRDKAFKA              a function has one address, whenever and however it is asked for
 * FLAGS: words of now, lazy, local, global, deepbind, nodelete joined by commas.
 * The program is not linked with librdkafka.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A plugin has its own; which one it gets depends on how it was opened. */
__attribute__((visibility("default"), noinline)) const char *whose(void)
{
    return "program";
}

static int flags_of(const char *text)
{
    int flags = 0;
    if (strstr(text, "now"))
        flags |= RTLD_NOW;
    if (strstr(text, "lazy"))
        flags |= RTLD_LAZY;
    if (strstr(text, "global"))
        flags |= RTLD_GLOBAL;
    if (strstr(text, "deepbind"))
        flags |= RTLD_DEEPBIND;
    if (strstr(text, "nodelete"))
        flags |= RTLD_NODELETE;
    return flags;
}

static int open_twice(char **argv, const char *dir)
{
    if (dir && chdir(dir)) {
        perror(dir);
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        void *h = dlopen(argv[3], flags_of(argv[2]));
        int (*run)(void);
        if (!h) {
            printf("dlopen=%s\n", dlerror());
            return 0;
        }
        *(void **)&run = dlsym(h, argv[4]);
        if (!run) {
            printf("dlsym=%s\n", dlerror());
            return 0;
        }
        printf("run=%d\n", run());
        printf("dlclose=%d\n", dlclose(h));
        fflush(stdout);
    }
    printf("dlerror=%s\n", dlerror());
    return 0;
}

static void *tell(const char *what, void *p)
{
    const char *e = dlerror();
    printf("%s=%s: %s\n", what, p ? "found" : "null", e ? e : "no error");
    return p;
}

static int errors(const char *libm)
{
    void *h = tell("dlopen libm", dlopen(libm, RTLD_NOW));

    tell("dlsym(libm, cos)", dlsym(h, "cos"));
    tell("dlsym(libm, nonesuch)", dlsym(h, "nonesuch"));
    tell("dlsym(libm, rd_kafka_nonesuch)", dlsym(h, "rd_kafka_nonesuch"));
    tell("dlsym(libm, rd_kafka_consumer_poll)", dlsym(h, "rd_kafka_consumer_poll"));
    tell("dlsym(libm, rd_kafka_new)", dlsym(h, "rd_kafka_new"));
    tell("dlsym(default, nonesuch)", dlsym(RTLD_DEFAULT, "nonesuch"));
    tell("dlsym(default, puts)", dlsym(RTLD_DEFAULT, "puts"));
    tell("dlsym(default, whose)", dlsym(RTLD_DEFAULT, "whose"));
    tell("dlsym(next, whose)", dlsym(RTLD_NEXT, "whose"));
    tell("dlsym(next, puts)", dlsym(RTLD_NEXT, "puts"));
    tell("dlvsym(libm, cos, NONE_1)", dlvsym(h, "cos", "NONE_1"));
    tell("dlopen /nonesuch.so", dlopen("/nonesuch.so", RTLD_NOW));
    tell("dlopen nonesuch.so", dlopen("nonesuch.so", RTLD_LAZY | RTLD_DEEPBIND));
    tell("dlopen no flags", dlopen(libm, 0));
    tell("dlopen noload", dlopen("libnonesuch.so.1", RTLD_NOW | RTLD_NOLOAD));
    tell("dlopen self", dlopen(NULL, RTLD_NOW));
    tell("dlopen self deepbind", dlopen(NULL, RTLD_NOW | RTLD_DEEPBIND));
    tell("dlmopen /nonesuch.so", dlmopen(LM_ID_BASE, "/nonesuch.so", RTLD_NOW));
    /* an error is told once, and a success does not disturb it */
    (void)dlsym(h, "nonesuch");
    (void)dlsym(h, "cos");
    tell("after success", h);
    tell("after that", h);
    return 0;
}

static const char *names[] = {"rd_kafka_version", "rd_kafka_new",      "rd_kafka_consumer_poll",
                              "rd_kafka_commit",  "rd_kafka_position", "rd_kafka_destroy"};
#define NAMES (sizeof names / sizeof *names)

static int probe(void)
{
    for (size_t i = 0; i < NAMES; i++) {
        printf("default.%s=%s\n", names[i], dlsym(RTLD_DEFAULT, names[i]) ? "found" : "null");
        printf("next.%s=%s\n", names[i], dlsym(RTLD_NEXT, names[i]) ? "found" : "null");
    }
    return 0;
}

static int stable(const char *librdkafka)
{
    void *h = dlopen(librdkafka, RTLD_NOW | RTLD_LOCAL), *first[NAMES], *h2;
    int changes = 0, missing = 0;

    if (!h) {
        printf("%s\n", dlerror());
        return 1;
    }
    for (size_t i = 0; i < NAMES; i++)
        first[i] = dlsym(h, names[i]);
    h2 = dlopen(librdkafka, RTLD_LAZY | RTLD_GLOBAL);
    for (size_t i = 0; i < NAMES; i++) {
        missing += !first[i];
        changes += first[i] != dlsym(h, names[i]) || first[i] != dlsym(h2, names[i]);
    }
    printf("missing=%d\nchanges=%d\n", missing, changes);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 5 && !strcmp(argv[1], "open"))
        return open_twice(argv, argc > 5 ? argv[5] : NULL);
    if (argc == 3 && !strcmp(argv[1], "errors"))
        return errors(argv[2]);
    if (argc == 2 && !strcmp(argv[1], "probe"))
        return probe();
    if (argc == 3 && !strcmp(argv[1], "stable"))
        return stable(argv[2]);
    fprintf(stderr, "loader open|errors|probe|stable ...\n");
    return 2;
}
