/*
 * check.c: rdgate check. Says for a program, a module, a script or a process whether librdgate.so covers it,
 * how, and if not, why and what to do. It only looks: it starts nothing, and no library is loaded, whatever
 * the file says.
 */
#include "cli.h"
#include "covers.h"
#include "../maps.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

enum { CHECK_WORKS = 0, CHECK_NO = 3, CHECK_USAGE = 100, CHECK_SYSTEM = 111 };

static struct covers c;
static const char *target;

static void usage(FILE *to)
{
    fputs("usage: rdgate check [-v] [--json] PROGRAM|MODULE|PID\n\n"
          "Says how librdgate.so covers it, or why not and what to do. A PROGRAM without a slash is searched "
          "in PATH;\n"
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

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
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

/* ------------------------------------------------------------------ what comes out */

/* What files say of themselves does not get to the terminal as it is. */
static void put_clean(const char *s)
{
    for (; *s; s++)
        putchar((unsigned char)*s < ' ' || *s == 127 ? '?' : *s);
}

static const char *how_it_works(void)
{
    static char words[256];
    if (c.pid)
        return "rdgate is in this process, and sees its consumer calls";
    if (c.by & BY_PATCH)
        return "its functions are redirected, and the consumer calls are seen";
    if (c.by & BY_PRELOAD)
        return "preload will see the consumer calls";
    snprintf(words, sizeof(words),
             "if it loads librdkafka, the calls are seen (dlsym, dlopen); check the module that does");
    return words;
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

/* ------------------------------------------------------------------ what stands around it */

static void open_named(struct loaded *l, const char *name, int fd)
{
    const char *why = fd < 0 ? strerror(errno) : binary_open(&l->b, fd);
    if (fd >= 0)
        close(fd);
    if (why)
        die(fd < 0 ? "%s: %s" : "%s %s", name, why);
}

/* A library that is preloaded, too. */
static void say_other_preload(const char *path, const char *from, bool before)
{
    struct binary b;
    int fd = strchr(path, '/') ? world_open(&c.world, path) : -1;
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
    covers_say(&c, LEVEL_NOTE, NULL, "%s names %s, which comes %s librdgate.so%s", from, path,
               before ? "before" : "behind", what);
}

/* Is ours among them? */
static bool say_preloads(const char *list, const char *from, const char *separators)
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
            say_other_preload(word, from, !ours);
    }
    free(words);
    return ours;
}

static bool say_preload_file(void)
{
    char text[4096];
    int fd = world_open(&c.world, "/etc/ld.so.preload");
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0 && say_preloads(text, "/etc/ld.so.preload", " \t\n:");
}

static void say_options(const char *whose)
{
    if (c.options.mode == OFF)
        covers_say(&c, LEVEL_NO, NULL, "RDGATE_MODE=off in %s environment turns rdgate off", whose);
}

static void complain(const char *sentence)
{
    covers_say(&c, LEVEL_NOTE, NULL, "%s", sentence);
}

/* ------------------------------------------------------------------ a file */

/* As execvp would find it; path[PATH_MAX]. */
static bool search_path(const char *name, char *path)
{
    const char *p = getenv("PATH");
    if (strchr(name, '/') || !*name)
        return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
    for (p = p ? p : "/usr/bin:/bin"; p; p = *p ? p + 1 : NULL) {
        size_t n = strcspn(p, ":");
        int length = snprintf(path, PATH_MAX, "%.*s%s%s", (int)n, n ? p : ".", "/", name);
        if (length < PATH_MAX && access(path, X_OK) == 0)
            return true;
        p += n;
    }
    return false;
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
    return word && search_path(word, path);
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
        die("%s: not in PATH", name);
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
    options_parse(&c.options, environ, complain);
    say_options("the");
    const char *preload = getenv("LD_PRELOAD");
    say_preload_file();
    if (preload)
        say_preloads(preload, "LD_PRELOAD", " :");
    covers_file(&c, &l);
    binary_close(&l.b);
}

/* ------------------------------------------------------------------ a process */

static char *process_file(int pid, const char *name, size_t *size)
{
    char path[64];
    size_t room = 1 << 20, have = 0;
    char *text = malloc(room + 1);
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 0;
    while (fd >= 0 && text && have < room && (n = read(fd, text + have, room - have)) > 0)
        have += (size_t)n;
    int e = errno;
    if (fd >= 0)
        close(fd);
    if (fd < 0 || !text || n < 0) {
        free(text);
        errno = fd >= 0 && !text ? ENOMEM : e;
        return NULL;
    }
    text[have] = 0;
    *size = have;
    return text;
}

static bool is_secure(int pid)
{
    size_t size;
    char *p = process_file(pid, "auxv", &size);
    bool secure = false;
    for (size_t i = 0; p && i + 16 <= size; i += 16) {
        uint64_t pair[2];
        memcpy(pair, p + i, 16);
        secure |= pair[0] == AT_SECURE && pair[1];
    }
    free(p);
    return secure;
}

#define OBJECTS_MOST 512
struct objects {
    struct loaded *l;
    int count;
    char shim[PATH_MAX]; /* ours, as it is mapped; empty: it is not */
    bool shim_deleted;
    bool unreadable; /* at least one */
};

static int open_mapped(const struct mapping *m, const char *path)
{
    char exact[96];
    snprintf(exact, sizeof(exact), "/proc/%d/map_files/%lx-%lx", c.pid, (unsigned long)m->from,
             (unsigned long)m->to);
    int fd = open(exact, O_RDONLY | O_CLOEXEC); /* takes CAP_CHECKPOINT_RESTORE */
    return fd >= 0 || m->deleted ? fd : world_open(&c.world, path);
}

static bool take_mapping(const struct mapping *m, void *with)
{
    struct objects *o = with;
    char path[sizeof(m->path)];
    if (m->path[0] != '/' || o->count == OBJECTS_MOST || m->offset != 0)
        return false;
    memcpy(path, m->path, sizeof(path));
    if (m->deleted)
        path[strlen(path) - strlen(" (deleted)")] = 0;
    for (int i = 0; i < o->count; i++) {
        if (strcmp(o->l[i].path, path) == 0) {
            if (!o->l[i].base)
                o->l[i].base = m->from;
            return false;
        }
    }
    const char *slash = strrchr(path, '/');
    if (strcmp(slash + 1, "librdgate.so") == 0) {
        memcpy(o->shim, path, sizeof(path));
        o->shim_deleted = m->deleted;
    }
    struct loaded *l = &o->l[o->count];
    struct stat st;
    int fd = open_mapped(m, path);
    /* Data files are mapped, too: fonts, databases. */
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        o->unreadable |= fd < 0 && m->code;
        if (fd >= 0)
            close(fd);
        return false;
    }
    if (!binary_open(&l->b, fd)) {
        if (l->b.kind == MODULE || l->b.kind == PROGRAM) {
            memcpy(l->path, path, sizeof(path));
            l->base = m->from;
            l->deleted = m->deleted;
            l->by = o->l;
            o->count++;
        } else {
            binary_close(&l->b);
        }
    }
    close(fd);
    return false;
}

/* One field of /proc/PID/status, as a number; -1: not there. */
static long status_of(const char *status, const char *label)
{
    const char *p = strstr(status, label);
    return p ? strtol(p + strlen(label), NULL, 10) : -1;
}

static const char *in_environment(char *const *env, const char *name)
{
    size_t n = strlen(name);
    for (; *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

static char **split_environment(char *text, size_t size)
{
    size_t n = 0;
    char **env = calloc(size / 2 + 2, sizeof(*env));
    for (char *p = text; env && p < text + size; p += strlen(p) + 1)
        if (*p && n < size / 2 + 1)
            env[n++] = p;
    return env;
}

/* Why is it not there? Where the program's file alone says so, that has been said already. */
static void say_absent(const char *preload, bool in_file)
{
    char visible[PATH_MAX];
    const char *named = preload ? strstr(preload, "librdgate.so") : NULL;
    if (is_secure(c.pid)) {
        covers_say(&c, LEVEL_NO, NULL,
                   "librdgate.so is not loaded: the process was started setuid, setgid or with capabilities, "
                   "and the "
                   "loader ignored LD_PRELOAD");
        return;
    }
    if (!named && !in_file) {
        covers_say(&c, LEVEL_NO, "Start it with: rdgate run -- program",
                   "librdgate.so is not loaded: nothing named it "
                   "when the process started");
    } else {
        size_t n = 0;
        while (named && named > preload && !strchr(" :", named[-1]))
            named--;
        if (named)
            n = strcspn(named, " :");
        snprintf(visible, sizeof(visible), "%.*s", (int)n, named ? named : "");
        int fd = strchr(visible, '/') ? world_open(&c.world, visible) : -1;
        if (fd < 0)
            covers_say(&c, LEVEL_NO, NULL, "librdgate.so is not loaded: the process sees no %s",
                       visible[0] ? visible : "librdgate.so");
        else
            covers_say(&c, LEVEL_NO, NULL,
                       "librdgate.so is not loaded, although LD_PRELOAD names it: the loader has "
                       "said why on stderr, or the program removed it");
        if (fd >= 0)
            close(fd);
        return;
    }
    /* Would it work from a container? */
    if (c.world.root >= 0 && c.shim[0]) {
        int fd = world_open(&c.world, c.shim);
        if (fd < 0)
            covers_say(&c, LEVEL_NOTE, NULL,
                       "the process has a root of its own (a container), and there is no %s there", c.shim);
        else
            close(fd);
    }
}

static void check_process(int pid)
{
    char path[64], its[PATH_MAX];
    struct objects o = {.l = calloc(OBJECTS_MOST, sizeof(*o.l))};
    struct mapping m;
    struct stat a, b;
    size_t size, env_size;
    c.pid = pid;
    snprintf(path, sizeof(path), "/proc/%d", pid);
    if (!o.l || access(path, F_OK))
        die("there is no process %d", pid);
    char *status = process_file(pid, "status", &size);
    char *text = process_file(pid, "environ", &env_size);
    if (!status || !text)
        die("process %d: %s (only its user and root may look)", pid, strerror(errno));
    char **env = split_environment(text, env_size);
    if (!env)
        die("no memory");
    snprintf(path, sizeof(path), "/proc/%d/root", pid);
    if (stat(path, &a) == 0 && stat("/", &b) == 0 && (a.st_dev != b.st_dev || a.st_ino != b.st_ino))
        c.world.root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (!cli_find_shim(c.shim))
        c.shim[0] = 0;
    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    ssize_t n = readlink(path, its, sizeof(its) - 1);
    if (n < 0)
        die("process %d: %s", pid,
            errno == ENOENT ? "a thread of the kernel, or it has ended" : strerror(errno));
    its[n] = 0;
    char *end = strstr(its, " (deleted)");
    if (end && !end[strlen(" (deleted)")]) {
        *end = 0;
        o.l[0].deleted = true;
    }
    memcpy(o.l[0].path, its, sizeof(its));
    open_named(&o.l[0], its, open(path, O_RDONLY | O_CLOEXEC));
    o.count = 1;
    covers_say(&c, LEVEL_OK, NULL, "process %d runs %s%s", pid, its,
               o.l[0].deleted ? ", which has been replaced or removed since" : "");
    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        die("process %d: %s", pid, strerror(errno));
    maps_search_in(fd, take_mapping, &o, &m);
    close(fd);

    options_parse(&c.options, env, complain);
    say_options("its");
    const char *preload = in_environment(env, "LD_PRELOAD");
    bool in_file = say_preload_file(), in_variable = preload && say_preloads(preload, "LD_PRELOAD", " :");
    if (o.shim[0]) {
        covers_say(&c, LEVEL_OK, NULL, "%s is loaded", o.shim);
        if (o.shim_deleted)
            covers_say(&c, LEVEL_NOTE, NULL,
                       "that file has been replaced or removed since; the process has the old one");
        if (!in_file && !in_variable)
            covers_say(&c, LEVEL_NOTE, NULL,
                       "neither LD_PRELOAD nor /etc/ld.so.preload named it: whoever opened it did so "
                       "late, and calls that were bound before do not come to it");
        if (is_secure(pid))
            covers_say(&c, LEVEL_NO, NULL,
                       "the process runs with rights of another user, and rdgate has turned itself off");
    }
    covers_process(&c, o.l, o.count);
    if (!o.shim[0] && (o.l[0].b.kind == PROGRAM || o.l[0].b.kind == MODULE))
        say_absent(preload, in_file);
    if (o.unreadable)
        covers_say(&c, LEVEL_NOTE, NULL,
                   "not every file that is mapped can be read; what is in those is not known");
    if (!c.no && !c.library_count)
        covers_say(&c, LEVEL_NOTE, NULL, "no librdkafka is loaded in it yet");
    if (status_of(status, "\nSeccomp:") > 0)
        covers_say(&c, LEVEL_NOTE, NULL,
                   "a seccomp filter is on it: rdgate may see less of its threads, and may not be let "
                   "redirect functions");
    free(status);
    free(text);
    free(env);
    for (int i = 0; i < o.count; i++)
        binary_close(&o.l[i].b);
    free(o.l);
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
    if (number(target))
        check_process(number(target));
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
