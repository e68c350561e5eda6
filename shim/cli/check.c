/*
 * check.c: rdgate check. Says for a program, a module, a script or a process whether librdgate.so covers it,
 * how, and if not, why and what to do. It only looks: it starts nothing, and no library is loaded, whatever
 * the file says.
 */
#include "check.h"
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct covers c;
static const char *target;

static void usage(FILE *to)
{
    fputs("usage: rdgate check [-v] [--json] PROGRAM|MODULE|PID\n\n"
          "Says how librdgate.so covers it, or why not and what to do. A PROGRAM without a slash is searched "
          "in PATH, then here;\n"
          "a number is a process (./123 is a file). It looks, and starts nothing; options of rdgate are "
          "taken from the\n"
          "environment, for a process from its own.\n\n"
          "  -v       list the calls of librdkafka that are imported and have no gate\n"
          "  --json   the same for machines: one object\n\n",
          to);
    fprintf(
        to,
        "Exits %d if it works, %d if not, %d for wrong usage, %d if the file or process cannot be read.\n",
        CHECK_WORKS, CHECK_NO, CHECK_USAGE, CHECK_SYSTEM);
}

/* ------------------------------------------------------------------ what comes out */

/* What files say of themselves does not get to the terminal as it is. */
static void put_clean(const char *s)
{
    for (; *s; s++)
        putchar((unsigned char)*s < ' ' || *s == 127 ? '?' : *s);
}

static const char *how_it_works(void)
{
    if (c.pid)
        return "rdgate is in this process, and sees its consumer calls";
    if (c.by & BY_PATCH)
        return "its functions are redirected, and the consumer calls are seen";
    if (c.by & BY_PRELOAD)
        return "preload will see the consumer calls";
    return "if it loads librdkafka, the calls are seen (dlsym, dlopen); check the module that does";
}

static void print_text(void)
{
    static const char *const words[] = {"ok", "NO", "note", "WORKS"};
    for (int i = 0; i < c.line_count; i++) {
        printf("%-5s ", words[c.lines[i].level]);
        put_clean(c.lines[i].text);
        putchar('\n');
        if (c.lines[i].more) {
            fputs("      ", stdout);
            put_clean(c.lines[i].more);
            putchar('\n');
        }
    }
}

static void put_json(const char *s)
{
    putchar('"');
    for (; *s; s++) {
        unsigned char b = (unsigned char)*s;
        if (b == '"' || b == '\\')
            printf("\\%c", b);
        else if (b < ' ' || b == 127)
            printf("\\u%04x", b);
        else if (b >= 128)
            printf("\\u00%02x", b); /* paths are bytes; as Latin-1 none is lost */
        else
            putchar(b);
    }
    putchar('"');
}

static void print_libraries(void)
{
    for (int i = 0; i < c.library_count; i++) {
        unsigned version = c.libraries[i].version;
        int number;
        const char *fixed, *what;
        printf("%s{\"path\":", i ? "," : "");
        put_json(c.libraries[i].path);
        if (version)
            printf(",\"version\":\"%u.%u.%u\"", version >> 24, version >> 16 & 255, version >> 8 & 255);
        printf(",\"covered\":%s,\"defects\":[", c.libraries[i].covered ? "true" : "false");
        for (int d = 0; covers_defect(version, d, &number, &fixed, &what); d++) {
            printf("%s{\"upstream\":%d,\"fixed_in\":", d ? "," : "", number);
            put_json(fixed);
            fputs(",\"what\":", stdout);
            put_json(what);
            putchar('}');
        }
        fputs("]}", stdout);
    }
}

static void print_json(void)
{
    static const char *const words[] = {"ok", "no", "note", "works"};
    static const char *const ways[] = {"preload", "dlsym", "patch"};
    const char *comma = "";
    fputs("{\"v\":1,\"target\":", stdout);
    put_json(target);
    if (c.pid)
        printf(",\"pid\":%d", c.pid);
    printf(",\"works\":%s,\"by\":[", c.no ? "false" : "true");
    for (int i = 0; i < 3 && !c.no; i++)
        if (c.by & (1u << i)) {
            printf("%s\"%s\"", comma, ways[i]);
            comma = ",";
        }
    fputs("],\"librdkafka\":[", stdout);
    print_libraries();
    printf("],\"gated\":%d,\"others\":[", c.gated_count);
    for (int i = 0; i < c.other_count; i++) {
        if (i)
            putchar(',');
        put_json(c.others[i]);
    }
    fputs("],\"lines\":[", stdout);
    for (int i = 0; i < c.line_count; i++) {
        printf("%s{\"is\":\"%s\",\"text\":", i ? "," : "", words[c.lines[i].level]);
        put_json(c.lines[i].text);
        if (c.lines[i].more) {
            fputs(",\"do\":", stdout);
            put_json(c.lines[i].more);
        }
        putchar('}');
    }
    puts("]}");
}

/* ------------------------------------------------------------------ a file */

/* As execvp would find it, or here; path[PATH_MAX]. */
static bool search_path(const char *name, char *path)
{
    const char *p = getenv("PATH");
    struct stat st;
    if (strchr(name, '/') || !*name)
        return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
    for (p = p ? p : "/usr/bin:/bin"; p; p = *p ? p + 1 : NULL) {
        size_t n = strcspn(p, ":");
        int length = snprintf(path, PATH_MAX, "%.*s/%s", n ? (int)n : 1, n ? p : ".", name);
        if (length < PATH_MAX && access(path, X_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode))
            return true;
        p += n;
    }
    return snprintf(path, PATH_MAX, "./%s", name) < PATH_MAX && access(path, F_OK) == 0;
}

/* What a script is run by; of `env name` and `env -S name` that name. */
static bool interpreter_of(const struct binary *b, char *path)
{
    char line[sizeof(b->interpreter)], *rest = line;
    memcpy(line, b->interpreter, sizeof(line));
    char *word = strsep(&rest, " \t");
    while (word && !*word)
        word = strsep(&rest, " \t");
    const char *slash = word ? strrchr(word, '/') : NULL;
    if (word && strcmp(slash ? slash + 1 : word, "env") == 0)
        do
            word = strsep(&rest, " \t");
        while (word && (!*word || *word == '-' || strchr(word, '=')));
    return word && search_path(word, path) && access(path, F_OK) == 0;
}

static void check_file(const char *name)
{
    static struct loaded l;
    char next[PATH_MAX];
    c.world.library_path = getenv("LD_LIBRARY_PATH");
    if (!cli_find_shim(c.shim)) {
        c.shim[0] = 0;
        covers_say(&c, LEVEL_NO, NULL, "librdgate.so is neither beside rdgate nor in %s", RDGATE_LIBDIR);
    }
    if (!search_path(name, l.path))
        die("%s: neither in PATH nor here", name);
    for (int depth = 0;; depth++) {
        open_named(&l, l.path, world_open(&c.world, l.path));
        if (l.b.kind != SCRIPT)
            break;
        if (depth == 4)
            die("%s: too many scripts run by scripts", l.path);
        bool found = interpreter_of(&l.b, next);
        covers_say(&c, found ? LEVEL_OK : LEVEL_NO, NULL, "a script, run by %s%s", l.b.interpreter,
                   found ? "" : ", which is not found");
        binary_close(&l.b);
        if (!found)
            return;
        if (l.b.st.st_mode & (S_ISUID | S_ISGID))
            covers_say(&c, LEVEL_NOTE, NULL, "setuid and setgid mean nothing for a script");
        memcpy(l.path, next, sizeof(next));
    }
    char *real = realpath(l.path, NULL);
    if (real && strlen(real) < sizeof(l.path))
        memcpy(l.path, real, strlen(real) + 1);
    free(real);
    say_options(&c, environ, "the");
    const char *preload = getenv("LD_PRELOAD");
    say_preload_file(&c);
    if (preload)
        say_preloads(&c, preload, "LD_PRELOAD", " :");
    covers_file(&c, &l);
    binary_close(&l.b);
}

/* ------------------------------------------------------------------ */

static int number(const char *s)
{
    int n = 0;
    for (const char *p = s; *p; p++) {
        if (!isdigit((unsigned char)*p) || n > 99999999)
            return 0;
        n = n * 10 + (*p - '0');
    }
    return n;
}

int cli_check(int argc, char **argv)
{
    bool json = false;
    int i = 1;
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
            usage(stdout);
            return CHECK_WORKS;
        }
        if (strcmp(argv[i], "-v") == 0) {
            c.verbose = true;
        } else if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else {
            fprintf(stderr, "rdgate check: no option %s\n", argv[i]);
            usage(stderr);
            return CHECK_USAGE;
        }
    }
    if (i + 1 != argc) {
        fputs(i == argc ? "rdgate check: which program or process?\n" : "rdgate check: one at a time\n",
              stderr);
        usage(stderr);
        return CHECK_USAGE;
    }
    target = argv[i];
    c.world.root = -1;
    options_default(&c.options);
    c.pid = number(target);
    if (c.pid)
        check_process(&c);
    else
        check_file(target);
    if (!c.no)
        covers_say(&c, LEVEL_WORKS, NULL, "%s", how_it_works());
    if (json)
        print_json();
    else
        print_text();
    return fflush(stdout) || ferror(stdout) ? CHECK_SYSTEM : c.no ? CHECK_NO : CHECK_WORKS;
}
