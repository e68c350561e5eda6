/*
 * process.c: rdgate check of a living process: what is mapped in it, by its environment, below its root. It
 * is not stopped, and nothing in it is touched.
 */
#include "check.h"
#include "cli.h"
#include "../maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

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
    struct covers *c;
    struct loaded *l;
    int count;
    char shim[PATH_MAX]; /* ours, as it is mapped; empty: it is not */
    bool shim_deleted;
    char root[PATH_MAX]; /* the process's */
    bool unreadable;     /* at least one */
};

static int open_mapped(const struct covers *c, const struct mapping *m, const char *path)
{
    char exact[96];
    snprintf(exact, sizeof(exact), "/proc/%d/map_files/%lx-%lx", c->pid, (unsigned long)m->from,
             (unsigned long)m->to);
    int fd = open(exact, O_RDONLY | O_CLOEXEC); /* takes CAP_CHECKPOINT_RESTORE */
    return fd >= 0 || m->deleted ? fd : world_open(&c->world, path);
}

/* A path as the process sees it: after a chroot the kernel shows it from our root. */
static const char *inside_root(const struct objects *o, const char *path)
{
    size_t n = strlen(o->root);
    return n > 1 && strncmp(path, o->root, n) == 0 && path[n] == '/' ? path + n : path;
}

static bool take_mapping(const struct mapping *m, void *with)
{
    struct objects *o = with;
    char path[sizeof(m->path)];
    if (m->path[0] != '/' || o->count == OBJECTS_MOST || m->offset != 0)
        return false;
    snprintf(path, sizeof(path), "%s", inside_root(o, m->path));
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
    int fd = open_mapped(o->c, m, path);
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
static void say_absent(struct covers *c, const char *preload, bool in_file)
{
    char visible[PATH_MAX];
    const char *named = preload ? strstr(preload, "librdgate.so") : NULL;
    if (is_secure(c->pid)) {
        covers_say(c, LEVEL_NO, NULL,
                   "librdgate.so is not loaded: the process was started setuid, setgid or with capabilities, "
                   "and the "
                   "loader ignored LD_PRELOAD");
        return;
    }
    if (!named && !in_file) {
        covers_say(c, LEVEL_NO, "Start it with: rdgate run -- program",
                   "librdgate.so is not loaded: nothing named it "
                   "when the process started");
    } else {
        size_t n = 0;
        while (named && named > preload && !strchr(" :", named[-1]))
            named--;
        if (named)
            n = strcspn(named, " :");
        snprintf(visible, sizeof(visible), "%.*s", (int)n, named ? named : "");
        int fd = strchr(visible, '/') ? world_open(&c->world, visible) : -1;
        if (fd < 0)
            covers_say(c, LEVEL_NO, NULL, "librdgate.so is not loaded: the process sees no %s",
                       visible[0] ? visible : "librdgate.so");
        else
            covers_say(c, LEVEL_NO, NULL,
                       "librdgate.so is not loaded, although LD_PRELOAD names it: the loader has "
                       "said why on stderr, or the program removed it");
        if (fd >= 0)
            close(fd);
        return;
    }
    /* Would it work from a container? */
    if (c->world.root >= 0 && c->shim[0]) {
        int fd = world_open(&c->world, c->shim);
        if (fd < 0)
            covers_say(c, LEVEL_NOTE, NULL,
                       "the process has a root of its own (a container), and there is no %s there", c->shim);
        else
            close(fd);
    }
}

static void open_root(struct covers *c, struct objects *o)
{
    char path[64];
    struct stat its, ours;
    snprintf(path, sizeof(path), "/proc/%d/root", c->pid);
    ssize_t n = readlink(path, o->root, sizeof(o->root) - 1);
    o->root[n > 0 ? n : 0] = 0;
    if (stat(path, &its) == 0 && stat("/", &ours) == 0 &&
        (its.st_dev != ours.st_dev || its.st_ino != ours.st_ino))
        c->world.root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The program, which comes first, and all else that is mapped. */
static void open_objects(struct covers *c, struct objects *o)
{
    static const char gone[] = " (deleted)";
    char path[64], its[PATH_MAX];
    struct mapping m;
    snprintf(path, sizeof(path), "/proc/%d/exe", c->pid);
    ssize_t n = readlink(path, its, sizeof(its) - 1);
    if (n < 0)
        die("process %d: %s", c->pid,
            errno == ENOENT ? "a thread of the kernel, or it has ended" : strerror(errno));
    its[n] = 0;
    if ((size_t)n > strlen(gone) && strcmp(its + n - strlen(gone), gone) == 0) {
        its[n - (ssize_t)strlen(gone)] = 0;
        o->l[0].deleted = true;
    }
    snprintf(o->l[0].path, sizeof(o->l[0].path), "%s", inside_root(o, its));
    open_named(&o->l[0], its, open(path, O_RDONLY | O_CLOEXEC));
    o->count = 1;
    snprintf(path, sizeof(path), "/proc/%d/maps", c->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        die("process %d: %s", c->pid, strerror(errno));
    maps_search_in(fd, take_mapping, o, &m);
    close(fd);
}

static void say_shim(struct covers *c, const struct objects *o, bool named)
{
    covers_say(c, LEVEL_OK, NULL, "%s is loaded", o->shim);
    if (o->shim_deleted)
        covers_say(c, LEVEL_NOTE, NULL,
                   "that file has been replaced or removed since; the process has the old one");
    if (!named)
        covers_say(c, LEVEL_NOTE, NULL,
                   "neither LD_PRELOAD nor /etc/ld.so.preload named it: whoever opened it did so late, and "
                   "calls that "
                   "were bound before do not come to it");
    if (is_secure(c->pid))
        covers_say(c, LEVEL_NO, NULL,
                   "the process runs with rights of another user, and rdgate has turned itself off");
}

void check_process(struct covers *c)
{
    struct objects o = {.c = c, .l = calloc(OBJECTS_MOST, sizeof(*o.l))};
    size_t size, env_size;
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d", c->pid);
    if (!o.l || access(path, F_OK))
        die("there is no process %d", c->pid);
    char *status = process_file(c->pid, "status", &size);
    char *text = process_file(c->pid, "environ", &env_size);
    if (!status || !text)
        die("process %d: %s%s", c->pid, strerror(errno),
            errno == EACCES || errno == EPERM ? " (only its user and root may look)" : "");
    char **env = split_environment(text, env_size);
    if (!env)
        die("no memory");
    if (!cli_find_shim(c->shim))
        c->shim[0] = 0;
    open_root(c, &o);
    open_objects(c, &o);

    covers_say(c, LEVEL_OK, NULL, "process %d runs %s%s", c->pid, o.l[0].path,
               o.l[0].deleted ? ", which has been replaced or removed since" : "");
    say_options(c, env, "its");
    const char *preload = in_environment(env, "LD_PRELOAD");
    bool in_file = say_preload_file(c), in_variable = preload && say_preloads(c, preload, "LD_PRELOAD", " :");
    if (o.shim[0])
        say_shim(c, &o, in_file || in_variable);
    covers_process(c, o.l, o.count);
    if (!o.shim[0] && (o.l[0].b.kind == PROGRAM || o.l[0].b.kind == MODULE))
        say_absent(c, preload, in_file);
    if (o.unreadable)
        covers_say(c, LEVEL_NOTE, NULL,
                   "not every file that is mapped can be read; what is in those is not known");
    if (!c->no && !c->library_count)
        covers_say(c, LEVEL_NOTE, NULL, "no librdkafka is loaded in it yet");
    if (status_of(status, "\nSeccomp:") > 0)
        covers_say(c, LEVEL_NOTE, NULL,
                   "a seccomp filter is on it: rdgate may see less of its threads, and may not be let "
                   "redirect functions");
    free(status);
    free(text);
    free(env);
    for (int i = 0; i < o.count; i++)
        binary_close(&o.l[i].b);
    free(o.l);
}
