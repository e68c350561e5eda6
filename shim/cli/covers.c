/*
 * covers.c: see covers.h. It foretells what the shim does, by the same code where the shim has it (symbols.c,
 * inside.c, copy.c, plan_<arch>.c).
 */
#include "covers.h"
#include "within.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OBJECTS_MOST 512

void covers_say(struct covers *c, enum level level, const char *more, const char *format, ...)
{
    va_list list;
    if (level == LEVEL_NO)
        c->no = true;
    if (c->line_count == LINES_MOST)
        return;
    struct line *l = &c->lines[c->line_count];
    va_start(list, format);
    if (vasprintf(&l->text, format, list) >= 0) {
        l->level = level;
        l->more = more ? strdup(more) : NULL;
        c->line_count++;
    }
    va_end(list);
}

/* ------------------------------------------------------------------ tables */

bool covers_defect(unsigned version, int i, int *number, const char **fixed, const char **what)
{
    enum { ON_CLOSE, ON_DESTROY, ON_CALL };
    static const struct {
        int number;
        unsigned from, to;
        const char *fixed, *what;
    } defects[] = {
#define DEFECT(number, from, to, text, on, what) {number, from, to, text, what},
#include "../defects.def"
    };
    version >>= 8;
    for (size_t k = 0; version && k < sizeof(defects) / sizeof(*defects); k++) {
        if (version < defects[k].from || version >= defects[k].to || i-- > 0)
            continue;
        *number = defects[k].number;
        *fixed = defects[k].fixed;
        *what = defects[k].what;
        return true;
    }
    return false;
}

const char *covers_excuse(const char *name)
{
    static const struct {
        const char *pattern, *reason;
    } excuses[] = {
#define CALL(...)
#define EXCUSE(pattern, reason) {pattern, reason},
#include "../calls.def"
    };
    for (size_t i = 0; i < sizeof(excuses) / sizeof(*excuses); i++)
        if (fnmatch(excuses[i].pattern, name, 0) == 0)
            return excuses[i].reason;
    return NULL;
}

const char *covers_version(unsigned version)
{
    static char words[4][32];
    static int turn;
    char *to = words[turn++ % 4];
    if (version)
        snprintf(to, sizeof(words[0]), "%u.%u.%u", version >> 24, version >> 16 & 255, version >> 8 & 255);
    else
        snprintf(to, sizeof(words[0]), "of unknown version");
    return to;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void covers_library(struct covers *c, const char *path, unsigned version, bool covered)
{
    if (c->library_count == LIBRARIES_MOST)
        return;
    snprintf(c->libraries[c->library_count].path, PATH_MAX, "%s", path);
    c->libraries[c->library_count].version = version;
    c->libraries[c->library_count++].covered = covered;
}

/* What this object asks of librdkafka. */
static void count_calls(struct covers *c, const struct binary *b)
{
    const char *name;
    for (size_t i = 0; c->other_count < OTHERS_MOST && (name = binary_asked(b, &i));) {
        int call = 0;
        while (call < CALL_COUNT && strcmp(rdg_calls[call].name, name) != 0)
            call++;
        if (call < CALL_COUNT && rdg_calls[call].class != PASS) {
            c->gated_count += !c->gated[call];
            c->gated[call] = true;
            continue;
        }
        int k = 0;
        while (k < c->other_count && strcmp(c->others[k], name) != 0)
            k++;
        if (k == c->other_count && (c->others[k] = strdup(name)))
            c->other_count++;
    }
}

/* ------------------------------------------------------------------ the file itself */

/* false: there is nothing more to be said. */
static bool say_format(struct covers *c, const struct binary *b)
{
    char more[512];
    const char *name = last_part(b->interpreter);
    switch (b->kind) {
    case FOREIGN_ELF:
        covers_say(c, LEVEL_NO,
                   "The loader leaves out a preload of another kind; take a librdgate.so built there.",
                   "ELF %s; librdgate.so is %s", binary_words(b),
#if defined(__x86_64__)
                   "64-bit x86-64"
#else
                   "64-bit aarch64"
#endif
        );
        return false;
    case ODD_ELF:
        covers_say(c, LEVEL_NO, NULL, "ELF %s, but neither a program nor a shared object", binary_words(b));
        return false;
    case STATIC:
    case STATIC_PIE: {
        struct inside in;
        bool inside = copy_find(&in, &b->f) || copy_speaks(&b->f);
        unsigned version = inside ? binary_version(b, &in) : 0;
        if (inside) {
            snprintf(more, sizeof(more),
                     "It cannot be covered as it is. Build it with an interpreter and %s.", within_advice(b));
            covers_library(c, "the program itself", version, false);
        }
        covers_say(c, LEVEL_NO, inside ? more : NULL,
                   "ELF %s, %s: no interpreter, so nothing is ever preloaded%s%s", binary_words(b),
                   b->kind == STATIC ? "static" : "static-pie",
                   inside ? "; librdkafka is inside, " : "; and there is no librdkafka in it",
                   inside ? covers_version(version) : "");
        return false;
    }
    case MODULE: covers_say(c, LEVEL_OK, NULL, "ELF %s, a shared object", binary_words(b)); return true;
    default: break;
    }
    if (strncmp(name, "ld-musl-", 8) == 0) {
        covers_say(c, LEVEL_NO,
                   "With LD_PRELOAD it would not even start: musl's loader gives up on a preload that it "
                   "cannot load. Run "
                   "the program's glibc build.",
                   "ELF %s, dynamic, interpreter %s: musl, and librdgate.so is built for glibc",
                   binary_words(b), name);
        return false;
    }
    bool glibc = strncmp(name, "ld-linux-", 9) == 0 || strcmp(name, "ld.so.1") == 0;
    covers_say(c, LEVEL_OK, NULL, "ELF %s, dynamic, interpreter %s%s", binary_words(b), name,
               glibc ? " (glibc)" : "");
    if (!glibc)
        covers_say(c, LEVEL_NOTE, NULL, "%s is no loader that is known here; librdgate.so needs glibc's",
                   b->interpreter);
    int fd = world_open(&c->world, b->interpreter);
    if (fd < 0)
        covers_say(c, LEVEL_NO, NULL, "its interpreter %s is not there: it cannot be started",
                   b->interpreter);
    else
        close(fd);
    return true;
}

/* setuid, setgid, capabilities: the loader ignores LD_PRELOAD, and we turn ourselves off. */
static void say_privileges(struct covers *c, const struct loaded *l)
{
    static const char more[] =
        "For such a program the loader ignores LD_PRELOAD, and librdgate.so turns itself off. What needs a "
        "capability can get it from who starts it (systemd: AmbientCapabilities=).";
    mode_t mode = l->b.st.st_mode;
    const char *what = mode & S_ISUID                         ? "setuid"
                       : (mode & S_ISGID) && (mode & S_IXGRP) ? "setgid"
                       : c->world.root < 0 && getxattr(l->path, "security.capability", NULL, 0) > 0
                           ? "given capabilities"
                           : NULL;
    struct statvfs fs;
    if (!what || l->b.kind != PROGRAM)
        return;
    if (c->world.root < 0 && statvfs(l->path, &fs) == 0 && fs.f_flag & ST_NOSUID)
        covers_say(c, LEVEL_NOTE, NULL, "it is %s, but lies on a file system that is mounted nosuid", what);
    else
        covers_say(c, LEVEL_NO, more, "it is %s", what);
}

/* ------------------------------------------------------------------ the parts of a program */

/* By what real.c knows one by; an interposer, as we are, has no version. */
static bool is_librdkafka(const struct binary *b)
{
    return binary_offers(b, "rd_kafka_new") && binary_offers(b, "rd_kafka_version");
}

static bool is_librdkafka_alone(const struct loaded *l)
{
    return strncmp(last_part(l->path), "librdkafka", 10) == 0 ||
           (l->b.soname && strncmp(l->b.soname, "librdkafka", 10) == 0);
}

/* A shared object that offers librdkafka's functions to others. Do its own calls go through the loader? */
static void say_offering(struct covers *c, const struct loaded *l, const char *how)
{
    static const char *const some[] = {"rd_kafka_new", "rd_kafka_destroy", "rd_kafka_consumer_close",
                                       "rd_kafka_consumer_poll", "rd_kafka_queue_poll"};
    unsigned version = binary_version(&l->b, NULL);
    bool binds = is_librdkafka_alone(l);
    for (size_t i = 0; i < sizeof(some) / sizeof(*some) && !binds; i++)
        binds = binary_binds(&l->b, some[i]);
    covers_library(c, l->path, version, binds);
    if (!binds) {
        covers_say(c, LEVEL_NO, "Link it without -Bsymbolic, or link librdkafka dynamically.",
                   "librdkafka %s is inside %s, which calls it directly (linked with -Bsymbolic or alike)",
                   covers_version(version), l->path);
        return;
    }
    c->by |= BY_PRELOAD;
    if (is_librdkafka_alone(l))
        covers_say(c, LEVEL_OK, NULL, "%s %s, version %s", how, l->path,
                   version ? covers_version(version) : "unknown");
    else
        covers_say(c, LEVEL_OK, NULL,
                   "%s %s, which has librdkafka %s inside and lets the loader bind its calls", how, l->path,
                   covers_version(version));
}

static void say_calls(struct covers *c)
{
    char also[64] = "";
    if (c->other_count)
        snprintf(also, sizeof(also), ", %d others have no gate%s", c->other_count,
                 c->verbose ? "" : " (-v lists them)");
    covers_say(c, LEVEL_NOTE, NULL, "%d gated call%s imported%s", c->gated_count,
               c->gated_count == 1 ? "" : "s", also);
    for (int i = 0; c->verbose && i < c->other_count; i++) {
        const char *why = covers_excuse(c->others[i]);
        covers_say(c, LEVEL_NOTE, NULL, "no gate: %s: %s", c->others[i],
                   why ? why : "takes no consumer, or is newer than this rdgate");
    }
}

static void say_defects(struct covers *c)
{
    for (int i = 0; i < c->library_count; i++) {
        int number;
        const char *fixed, *what;
        bool again = false;
        for (int k = 0; k < i; k++)
            again |= c->libraries[k].version == c->libraries[i].version;
        for (int d = 0; !again && covers_defect(c->libraries[i].version, d, &number, &fixed, &what); d++)
            covers_say(c, LEVEL_NOTE, NULL,
                       "librdkafka %s has a known defect, mended in %s: %s (librdkafka #%d)",
                       covers_version(c->libraries[i].version), fixed, what, number);
    }
}

/* Everything that the loader maps with the program: as ld.so would, breadth first. */
static int load_all(struct covers *c, struct loaded *first, struct loaded **all, char *missing, size_t size)
{
    int n = 1;
    missing[0] = 0;
    all[0] = first;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < all[i]->b.needed_count && n < OBJECTS_MOST; k++) {
            const char *name = all[i]->b.needed[k];
            bool known = false;
            for (int j = 1; j < n && !known; j++)
                known = strcmp(last_part(all[j]->path), last_part(name)) == 0 ||
                        (all[j]->b.soname && strcmp(all[j]->b.soname, name) == 0);
            struct loaded *l = known ? NULL : calloc(1, sizeof(*l));
            if (!l)
                continue;
            if (world_load(&c->world, all[i], name, l)) {
                all[n++] = l;
                continue;
            }
            free(l);
            if (!missing[0] || strncmp(name, "librdkafka", 10) == 0)
                snprintf(missing, size, "%s", name);
        }
    }
    return n;
}

/* Who opens libraries, and asks for functions by name. */
static const struct loaded *opener(struct loaded *const *all, int n)
{
    for (int i = 0; i < n; i++) {
        const char *name = all[i]->b.soname ? all[i]->b.soname : "";
        if (strncmp(name, "libc.", 5) == 0 || strncmp(name, "ld-linux", 8) == 0 ||
            strncmp(name, "libdl.", 6) == 0 || strncmp(name, "libpthread.", 11) == 0)
            continue; /* glibc's own */
        if (binary_asks(&all[i]->b, "dlopen") || binary_asks(&all[i]->b, "dlmopen"))
            return all[i];
    }
    return NULL;
}

/* ld.so would not even start it, or, in a container, not with us. */
static void say_glibc(struct covers *c, struct loaded *const *all, int n)
{
    struct binary b;
    const char *shim = strrchr(c->shim, '/');
    int fd = shim ? open(c->shim, O_RDONLY | O_CLOEXEC) : -1;
    unsigned needs = 0, has = 0;
    if (fd >= 0 && !binary_open(&b, fd)) {
        needs = b.kind == MODULE ? binary_glibc(&b, false) : 0;
        binary_close(&b);
    }
    if (fd >= 0)
        close(fd);
    for (int i = 0; i < n; i++)
        if (all[i]->b.soname && strcmp(all[i]->b.soname, "libc.so.6") == 0)
            has = binary_glibc(&all[i]->b, true);
    if (needs && has && needs > has)
        covers_say(c, LEVEL_NO, "Build librdgate.so where that glibc is.",
                   "librdgate.so needs glibc 2.%u, and this program has 2.%u", needs / 1000, has / 1000);
}

static void say_parts(struct covers *c, struct loaded *const *all, int n)
{
    const struct loaded *first = all[0];
    const char *who = NULL; /* asks for librdkafka */
    int offering = 0;
    bool copies = false;
    say_glibc(c, all, n);
    for (int i = 0; i < n; i++) {
        const struct loaded *l = all[i];
        bool program = l->b.kind == PROGRAM && i == 0;
        bool offers = is_librdkafka(&l->b);
        if (!offers || !is_librdkafka_alone(l)) {
            if (binary_asks(&l->b, "rd_kafka_new") || binary_asks(&l->b, "rd_kafka_version") ||
                binary_asks(&l->b, "rd_kafka_consumer_poll")) {
                if (!who)
                    who = l == first ? "needs" : l->b.soname ? l->b.soname : last_part(l->path);
            }
            count_calls(c, &l->b);
        }
        if (offers && !program) {
            char how[2 * PATH_MAX + 64];
            if (c->pid)
                snprintf(how, sizeof(how), "has loaded");
            else if (l == first)
                snprintf(how, sizeof(how), "is");
            else if (!who || strcmp(who, "needs") == 0)
                snprintf(how, sizeof(how), "needs %s ->", l->b.soname ? l->b.soname : last_part(l->path));
            else
                snprintf(how, sizeof(how), "needs %s, which needs %s ->", who,
                         l->b.soname ? l->b.soname : last_part(l->path));
            say_offering(c, l, how);
            offering++;
        } else if (within(l, program)) {
            /* The loader maps what is needed before us: only the program and what it opens are looked into.
             */
            copies = true;
            if (program || l == first || c->pid) {
                within_say(c, l, program);
            } else {
                covers_library(c, l->path, 0, false);
                covers_say(c, LEVEL_NO, "Link that library with librdkafka dynamically.",
                           "librdkafka is inside %s, which it needs and which keeps it to itself", l->path);
            }
        }
        if (l->deleted && offers)
            covers_say(c, LEVEL_NOTE, NULL,
                       "%s has been replaced or removed since; the process has the old one", l->path);
    }
    if (who && !offering && !c->pid)
        covers_say(c, LEVEL_NO, NULL,
                   "nothing that it needs offers the functions of librdkafka that %s asks for",
                   strcmp(who, "needs") == 0 ? "it" : who);
    if (offering && c->gated_count + c->other_count)
        say_calls(c);
    const struct loaded *opens = opener(all, n);
    if (opens && !c->no && (!c->by || c->verbose)) {
        if (!c->by && !c->pid)
            covers_say(c, LEVEL_OK, NULL, "%s opens libraries while it runs (dlopen)",
                       opens == first    ? "it"
                       : opens->b.soname ? opens->b.soname
                                         : opens->path);
        c->by |= BY_DLSYM;
    }
    if (!c->no && !c->by && !offering && !copies && first->b.kind != MODULE && !c->pid)
        covers_say(c, LEVEL_NO, "If it starts other programs, check those: LD_PRELOAD is inherited.",
                   "there is no librdkafka in it, it needs none, and it opens no libraries");
    say_defects(c);
}

void covers_file(struct covers *c, struct loaded *l)
{
    static struct loaded *all[OBJECTS_MOST];
    char missing[256];
    if (!say_format(c, &l->b))
        return;
    say_privileges(c, l);
    int n = load_all(c, l, all, missing, sizeof(missing));
    if (missing[0])
        covers_say(c, strncmp(missing, "librdkafka", 10) == 0 ? LEVEL_NO : LEVEL_NOTE,
                   "Is it in LD_LIBRARY_PATH where the program runs?", "%s, which is needed, is not found",
                   missing);
    say_parts(c, all, n);
    if (l->b.kind == MODULE && !c->no && !c->by)
        covers_say(c, LEVEL_NO, NULL, "there is no librdkafka in it, and it needs none");
    for (int i = 1; i < n; i++) {
        binary_close(&all[i]->b);
        free(all[i]);
    }
}

void covers_process(struct covers *c, struct loaded *objects, int count)
{
    static struct loaded *all[OBJECTS_MOST];
    int n = 0;
    if (!say_format(c, &objects[0].b))
        return;
    for (int i = 0; i < count && n < OBJECTS_MOST; i++)
        all[n++] = &objects[i];
    say_parts(c, all, n);
}
