/*
 * run.c: rdgate run. Puts the shim into LD_PRELOAD, options into RDGATE_*, and becomes the program. It finds
 * the shim beside itself or where it was installed, never in the current directory (CVE-2015-3887 of
 * proxychains).
 */
#include "cli.h"
#include "findings.h"
#include "../options.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void complain(const char *sentence)
{
    fprintf(stderr, "rdgate run: %s\n", sentence);
}

static void usage(FILE *to)
{
    fputs(
        "usage: rdgate run [options] -- program [arguments]\n\n"
        "  -n                     print what would be run, and do not\n"
        "  --observe              short for --mode observe: change nothing, only say\n"
        "  --report FILE          short for --log FILE\n"
        "  --exit-code N          exit with N if anything was found in the program, or in what it started,\n"
        "                         and it has ended with 0; it then runs as a child\n",
        to);
    for (int i = 0; i < option_count; i++) {
        char name[40];
        int n = 0;
        for (const char *p = option_infos[i].name; *p && n < 38; p++)
            name[n++] = *p == '_' ? '-' : (char)(*p | 0x20);
        name[n] = 0;
        fprintf(to, "  --%-20s %s\n", name, option_infos[i].help);
        if (option_infos[i].values)
            fprintf(to, "  %-22s one of: %s\n", "", option_infos[i].values);
        fprintf(to, "  %-22s default: %s\n", "", option_infos[i].fallback);
    }
    fprintf(to,
            "\nExits as the program does; %d wrong usage, %d no librdgate.so, %d and %d as a shell does when "
            "the\n"
            "program cannot be run or is not there.\n",
            EXIT_USAGE, EXIT_NO_SHIM, EXIT_NOT_RUN, EXIT_NO_PROGRAM);
}

/* Beside the command (a build tree), in ../lib, or where it was installed. */
bool cli_find_shim(char *found)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n > 0) {
        self[n] = 0;
        char *slash = strrchr(self, '/');
        if (slash)
            *slash = 0;
        const char *places[] = {"librdgate.so", "../lib/librdgate.so"};
        for (int i = 0; i < 2; i++) {
            char path[PATH_MAX + 32];
            snprintf(path, sizeof(path), "%s/%s", self, places[i]);
            if (realpath(path, found))
                return true;
        }
    }
    return realpath(RDGATE_LIBDIR "/librdgate.so", found) != NULL;
}

static bool names_shim(const char *list, const char *shim)
{
    size_t len = strlen(shim);
    for (const char *p = list; p && (p = strstr(p, shim)); p += len)
        if ((p == list || strchr(" :", p[-1])) && (!p[len] || strchr(" :", p[len])))
            return true;
    return false;
}

/* In quotes where a shell would need them, so that the line can be pasted. */
static void print_word(const char *word)
{
    if (*word && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=%+,@") ==
                     strlen(word)) {
        fputs(word, stdout);
        return;
    }
    putchar('\'');
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[]){*word, 0}, stdout);
    putchar('\'');
}

/* --max-wait-ms=5 or --max-wait-ms 5. Returns how many arguments it took, or -1. */
static int take_option(const char *arg, const char *next)
{
    char name[64] = "";
    size_t n = strcspn(arg + 2, "=");
    const char *value = arg[2 + n] == '=' ? arg + 3 + n : NULL;
    if (n == 0 || n >= sizeof(name)) {
        fprintf(stderr, "rdgate run: no option %s\n", arg);
        return -1;
    }
    for (size_t i = 0; i < n; i++)
        name[i] = arg[2 + i] == '-'
                      ? '_'
                      : (char)(arg[2 + i] >= 'a' && arg[2 + i] <= 'z' ? arg[2 + i] - 32 : arg[2 + i]);
    bool known = false;
    for (int i = 0; i < option_count; i++)
        known |= strcmp(option_infos[i].name, name) == 0;
    if (!known) {
        char near[64];
        int m = 0;
        for (const char *p = options_nearest(name); *p && m < 62; p++)
            near[m++] = *p == '_' ? '-' : (char)(*p | 0x20);
        near[m] = 0;
        fprintf(stderr, "rdgate run: no option --%.*s; did you mean --%s?\n", (int)n, arg + 2, near);
        return -1;
    }
    if (!value && !next) {
        fprintf(stderr, "rdgate run: option --%.*s needs a value\n", (int)n, arg + 2);
        return -1;
    }
    struct options scratch;
    options_default(&scratch);
    if (options_set(&scratch, name, value ? value : next, complain))
        return -1;
    char variable[80];
    snprintf(variable, sizeof(variable), "RDGATE_%s", name);
    setenv(variable, value ? value : next, 1);
    return value ? 1 : 2;
}

/* --observe, --report FILE, --exit-code N: how many arguments it took, 0: is none of them, -1: is wrong. */
static int take_short(char **argv, int i, int argc, int *code)
{
    const char *a = argv[i], *value = NULL;
    int took = 1;
    if (strcmp(a, "--observe") == 0)
        return setenv("RDGATE_MODE", "observe", 1) ? -1 : 1;
    for (int k = 0; k < 2; k++) {
        const char *name = k ? "--exit-code" : "--report";
        size_t n = strlen(name);
        if (strncmp(a, name, n) != 0 || (a[n] && a[n] != '='))
            continue;
        value = a[n] ? a + n + 1 : i + 1 < argc ? argv[i + 1] : NULL;
        took = a[n] ? 1 : 2;
        if (!value) {
            fprintf(stderr, "rdgate run: option %s needs a value\n", name);
            return -1;
        }
        if (!k) {
            char *log;
            if (asprintf(&log, "--log=%s", value) < 0)
                return -1;
            int r = take_option(log, NULL);
            free(log);
            return r < 0 ? -1 : took;
        }
        char *end;
        long number = strtol(value, &end, 10);
        if (*value < '0' || *value > '9' || *end || number < 1 || number > 255) {
            fputs("rdgate run: option --exit-code: valid is a whole number from 1 to 255\n", stderr);
            return -1;
        }
        *code = (int)number;
        return took;
    }
    return 0;
}

int cli_run(int argc, char **argv)
{
    bool dry = false;
    int code = 0;
    int i = 1;
    while (i < argc && argv[i][0] == '-') {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            usage(stdout);
            return 0;
        }
        if (strcmp(argv[i], "-n") == 0) {
            dry = true;
            i++;
            continue;
        }
        int took = take_short(argv, i, argc, &code);
        if (took < 0)
            return EXIT_USAGE;
        if (!took)
            took = argv[i][1] == '-' ? take_option(argv[i], i + 1 < argc ? argv[i + 1] : NULL) : -1;
        if (took < 0) {
            if (argv[i][1] != '-')
                fprintf(stderr, "rdgate run: no option %s\n", argv[i]);
            return EXIT_USAGE;
        }
        i += took;
    }
    if (i >= argc) {
        fputs("rdgate run: which program? (rdgate run [options] -- program …)\n", stderr);
        return EXIT_USAGE;
    }
    char shim[PATH_MAX];
    if (!cli_find_shim(shim)) {
        fprintf(stderr,
                "rdgate run: librdgate.so is neither beside rdgate nor in %s; make install puts it there\n",
                RDGATE_LIBDIR);
        return EXIT_NO_SHIM;
    }
    if (strpbrk(shim, " :")) {
        fprintf(stderr,
                "rdgate run: LD_PRELOAD cannot name %s: it has a space or colon; install it elsewhere\n",
                shim);
        return EXIT_NO_SHIM;
    }
    const char *before = getenv("LD_PRELOAD");
    char *preload;
    if (before && *before && names_shim(before, shim))
        preload = strdup(before);
    else if (asprintf(&preload, "%s%s%s", before ? before : "", before && *before ? ":" : "", shim) < 0)
        preload = NULL;
    if (!preload || setenv("LD_PRELOAD", preload, 1)) {
        free(preload);
        fputs("rdgate run: out of memory\n", stderr);
        return EXIT_NOT_RUN;
    }
    if (dry) {
        fputs("LD_PRELOAD=", stdout);
        print_word(preload);
        for (int k = 0; k < option_count; k++) {
            char variable[80];
            snprintf(variable, sizeof(variable), "RDGATE_%s", option_infos[k].name);
            const char *value = getenv(variable);
            if (!value)
                continue;
            printf(" %s=", variable);
            print_word(value);
        }
        for (int k = i; k < argc; k++) {
            putchar(' ');
            print_word(argv[k]);
        }
        putchar('\n');
        free(preload);
        return 0;
    }
    free(preload);
    if (code)
        return run_for_findings(argv + i, code);
    execvp(argv[i], argv + i);
    int e = errno;
    fprintf(stderr, "rdgate run: %s: %s\n", argv[i], strerror(e));
    return e == ENOENT ? EXIT_NO_PROGRAM : EXIT_NOT_RUN;
}
