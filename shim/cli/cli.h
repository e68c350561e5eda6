/*
 * cli.h: what the subcommands of rdgate share.
 */
#ifndef RDGATE_CLI_H
#define RDGATE_CLI_H

#include <stdbool.h>

/* Exit codes of rdgate itself; otherwise it exits as the program does. */
enum {
    EXIT_USAGE = 2,     /* the command line is wrong */
    EXIT_NO_FLIGHT = 4, /* there is no flight file, or it cannot be read */
    EXIT_NO_SHIM = 125, /* librdgate.so is not to be found */
    EXIT_NOT_RUN = 126, /* the program cannot be executed */
    EXIT_NO_PROGRAM = 127,
};

int cli_run(int argc, char **argv);
int cli_top(int argc, char **argv);
int cli_metrics(int argc, char **argv);
int cli_trace(int argc, char **argv);
int cli_dump(int argc, char **argv);
int cli_ps(int argc, char **argv);
int cli_check(int argc, char **argv);

/* librdgate.so as `rdgate run` finds it; found[PATH_MAX]. */
bool cli_find_shim(char *found);

#endif
