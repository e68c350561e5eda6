/*
 * main.c: the rdgate command. One row per subcommand, one file each; no logic of theirs here.
 */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static const struct subcommand {
    const char *name, *synopsis;
    int (*run)(int argc, char **argv);
} subcommands[] = {
    {"run", "start a program with librdgate.so in front of librdkafka", cli_run},
    {"ps", "list processes under rdgate, and the dead that left a flight file", cli_ps},
    {"dump", "show all that is known of a process, also after its death", cli_dump},
    {"top", "watch consumers: who is inside, who waits, who is late", cli_top},
    {"trace", "draw what happened last, as a page or for Perfetto", cli_trace},
    {"metrics", "print counters and gauges for Prometheus", cli_metrics},
    {"check", "say whether that will work for a program or a process, and why", cli_check},
};

static void usage(FILE *to)
{
    fputs("usage: rdgate SUBCOMMAND [options]\n\n", to);
    for (size_t i = 0; i < sizeof(subcommands) / sizeof(*subcommands); i++)
        fprintf(to, "  %-8s %s\n", subcommands[i].name, subcommands[i].synopsis);
    fputs("\nrdgate SUBCOMMAND --help tells more; rdgate --version says which this is.\n", to);
}

int main(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        usage(stdout);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        puts("rdgate " RDGATE_VERSION);
        return 0;
    }
    for (size_t i = 0; argc > 1 && i < sizeof(subcommands) / sizeof(*subcommands); i++)
        if (strcmp(argv[1], subcommands[i].name) == 0)
            return subcommands[i].run(argc - 1, argv + 1);
    if (argc > 1)
        fprintf(stderr, "rdgate: no subcommand %s\n", argv[1]);
    usage(stderr);
    return EXIT_USAGE;
}
