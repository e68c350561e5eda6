/*
 * flight.c: reads flight files (flight.h). It must trust nothing in them: a file may be hostile, truncated,
 * of another version, or in the middle of being written. It reads a copy, checks that, and changes in the
 * copy what could do harm.
 */
#include "flight.h"
#include "../flight_pack.h"
#include "../verdict.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LATEST ((int64_t)1 << 60) /* of CLOCK_MONOTONIC; 36 years */
#define OLD_NS (10 * 1000000000LL)

/* ------------------------------------------------------------------ saying what is wrong */

/* One line: what comes from outside is shown without control characters. */
__attribute__((format(printf, 2, 3))) static bool no(char why[FLIGHT_WHY], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, FLIGHT_WHY, format, args);
    va_end(args);
    for (char *p = why; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    return false;
}

/* ------------------------------------------------------------------ processes */

/* Field 22 of /proc/PID/stat; 0: there is no such process. A zombie is none either. */
static uint64_t start_of(int pid)
{
    char path[64], stat[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    stat[n] = 0;
    const char *p = strrchr(stat, ')'); /* the name may hold anything */
    if (!p || p[1] != ' ' || p[2] == 'Z' || p[2] == 'X')
        return 0;
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoull(p + 1, NULL, 10) : 0;
}

static uint64_t own_namespace(void)
{
    struct stat s;
    return stat("/proc/self/ns/pid", &s) == 0 ? s.st_ino : 0;
}

static int64_t monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ------------------------------------------------------------------ making the copy harmless */

#define ENDS(text) ((text)[sizeof(text) - 1] = 0)

static int64_t sane(int64_t time)
{
    return time > 0 && time < LATEST ? time : 0;
}

static uint16_t sane_call(uint16_t call)
{
    return call < CALL_COUNT ? call : 0;
}

static uint8_t sane_callback(uint8_t callback)
{
    return callback <= CB_COUNT ? callback : 0;
}

static void mend_header(struct flight_header *h)
{
    ENDS(h->program);
    ENDS(h->shim);
    h->mono_ns = sane(h->mono_ns);
    if (h->wall_ns < 0 || h->wall_ns > (int64_t)1 << 62)
        h->wall_ns = 0;
    h->looked = sane(h->looked);
    if (h->instances > FLIGHT_INSTANCES)
        h->instances = FLIGHT_INSTANCES;
    if (h->rows > FLIGHT_CONSUMERS)
        h->rows = FLIGHT_CONSUMERS;
    if (h->snapshot > 2)
        h->snapshot = 0;
    if (h->pid <= 0)
        h->pid = 0;
    int64_t *const limits[] = {&h->stuck_ms, &h->max_wait_ms, &h->close_ms};
    for (int i = 0; i < 3; i++)
        if (*limits[i] < 0 || *limits[i] > INT_MAX)
            *limits[i] = 0;
    for (int i = 0; i < FLIGHT_INSTANCES; i++) {
        ENDS(h->instance[i].text);
        ENDS(h->instance[i].path);
        if (h->instance[i].cover > FLIGHT_BY_PATCHING)
            h->instance[i].cover = 0;
    }
}

static void mend_consumer(struct flight_consumer *c)
{
    ENDS(c->name);
    ENDS(c->group);
    if (c->state > FLIGHT_GONE)
        c->state = FLIGHT_FREE;
    c->born = sane(c->born);
    c->gone = sane(c->gone);
    c->longest_wait_ns = sane(c->longest_wait_ns);
    if (c->max_poll_ms < 0 || c->max_poll_ms > INT_MAX)
        c->max_poll_ms = 0;
    struct flight_now *n = &c->now;
    if (n->life > GONE)
        n->life = OPEN;
    n->owner_call = sane_call(n->owner_call);
    n->owner_callback = sane_callback(n->owner_callback);
    n->owner_since = sane(n->owner_since);
    n->waiting_since = sane(n->waiting_since);
    n->callback_since = sane(n->callback_since);
    n->polled = sane(n->polled);
    n->longest_gap_ns = sane(n->longest_gap_ns);
    n->committed = sane(n->committed);
    for (int i = 0; i < DEBTS; i++)
        if (n->debt[i] < 0)
            n->debt[i] = 0;
}

static void mend_thread(struct flight_thread *t)
{
    ENDS(t->name);
    if (t->tid < 0)
        t->tid = 0;
    if (t->consumer < -1 || t->consumer >= FLIGHT_CONSUMERS)
        t->consumer = -1;
    if (t->calls > FLIGHT_NEST)
        t->calls = FLIGHT_NEST;
    if (t->state > SEEN_RETURNING)
        t->state = SEEN_INSIDE;
    for (int i = 0; i < FLIGHT_NEST; i++) {
        t->nest[i].call = sane_call(t->nest[i].call);
        t->nest[i].callback = sane_callback(t->nest[i].callback);
        if (t->row[i] < -1 || t->row[i] >= FLIGHT_CONSUMERS)
            t->row[i] = -1;
    }
    t->since = sane(t->since);
    t->callback_since = sane(t->callback_since);
    t->waiting_since = sane(t->waiting_since);
    t->deadline = sane(t->deadline);
}

static void mend_ring(struct flight_ring *r, int ring)
{
    for (int i = 0; i < FLIGHT_EVENTS; i++) {
        struct flight_event *e = &r->event[i];
        uint64_t words[8];
        memcpy(words, e, sizeof(words));
        bool whole = e->number && (e->number - 1) % FLIGHT_EVENTS == (uint64_t)i &&
                     e->sum == flight_sum(words) && e->kind < FLIGHT_KINDS && e->kind != FLIGHT_NOTHING &&
                     e->consumer < FLIGHT_CONSUMERS && e->consumer % FLIGHT_RINGS == ring;
        if (!whole)
            e->number = 0;
        e->time = sane(e->time);
        e->call = sane_call(e->call);
        e->other_call = sane_call(e->other_call);
        e->callback = sane_callback(e->callback);
    }
}

static void mend_finding(struct flight_finding *f, int slot)
{
    ENDS(f->summary);
    ENDS(f->text);
    f->time = sane(f->time);
    if (f->length >= sizeof(f->text) || f->finding >= FINDINGS || f->severity > SEVERITY_ERROR ||
        !f->number || (f->number - 1) % FLIGHT_FINDINGS != (uint64_t)slot)
        f->number = 0;
    if (f->consumer < -1 || f->consumer >= FLIGHT_CONSUMERS)
        f->consumer = -1;
}

static void mend(struct flight_file *f)
{
    mend_header(&f->header);
    for (int i = 0; i < FLIGHT_CONSUMERS; i++)
        mend_consumer(&f->consumer[i]);
    for (int i = 0; i < FLIGHT_THREADS; i++)
        mend_thread(&f->thread[i]);
    for (int i = 0; i < FLIGHT_PLACES; i++) {
        ENDS(f->place[i].object);
        ENDS(f->place[i].function);
    }
    for (int i = 0; i < FLIGHT_FINDINGS; i++)
        mend_finding(&f->finding[i], i);
    for (int i = 0; i < FLIGHT_RINGS; i++)
        mend_ring(&f->ring[i], i);
}

/* ------------------------------------------------------------------ reading */

static bool read_all(int fd, void *to, size_t size, off_t at)
{
    while (size) {
        ssize_t n = pread(fd, to, size, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        to = (char *)to + n;
        size -= (size_t)n;
        at += n;
    }
    return true;
}

/* Is what the watchdog wrote in the copy of one look? */
static bool in_one_piece(const struct flight *f)
{
    const struct flight_header *h = &f->file->header;
    uint32_t look, number;
    if (!read_all(f->fd, &look, sizeof(look), offsetof(struct flight_file, header.look)) || look & 1 ||
        look != h->look)
        return false;
    if (!h->snapshot || h->snapshot > 2)
        return true;
    const struct flight_snapshot *s = &f->file->snapshot[h->snapshot - 1];
    off_t at = (off_t)((const char *)&s->sequence - (const char *)f->file);
    return read_all(f->fd, &number, sizeof(number), at) && !(number & 1) && number == s->sequence;
}

static void find_fate(struct flight *f)
{
    const struct flight_header *h = &f->file->header;
    int64_t now = monotonic(), latest = h->looked > h->mono_ns ? h->looked : h->mono_ns;
    for (int i = 0; i < FLIGHT_RINGS; i++)
        for (int k = 0; k < FLIGHT_EVENTS; k++)
            if (f->file->ring[i].event[k].number && f->file->ring[i].event[k].time > latest)
                latest = f->file->ring[i].event[k].time;
    f->captured = !f->pid && h->namespace && h->namespace != own_namespace();
    bool lives = f->captured ? latest <= now && now - latest < OLD_NS
                             : h->start && start_of(f->pid ? f->pid : h->pid) == h->start;
    f->fate = h->state == FLIGHT_ENDED ? FLIGHT_CLEAN : !lives ? FLIGHT_DIED : FLIGHT_RUNS;
    f->now = f->fate == FLIGHT_RUNS && latest <= now ? now : latest;
    if (f->fate == FLIGHT_RUNS && now - h->looked > OLD_NS)
        f->fate = FLIGHT_ASLEEP;
    if (!f->pid && !f->captured)
        f->pid = h->pid;
}

bool flight_again(struct flight *f, char why[FLIGHT_WHY])
{
    struct stat s;
    struct flight_header *h = &f->file->header;
    if (fstat(f->fd, &s))
        return no(why, "%s: %s", f->path, strerror(errno));
    size_t head = s.st_size < (off_t)sizeof(*h) ? (size_t)s.st_size : sizeof(*h);
    memset(h, 0, sizeof(*h));
    if (!read_all(f->fd, h, head, 0))
        return no(why, "%s: cannot be read: %s", f->path, strerror(errno));
    if (memcmp(h->magic, FLIGHT_MAGIC, sizeof(h->magic)) != 0) {
        bool empty = true;
        for (size_t i = 0; i < sizeof(h->magic); i++)
            empty &= !h->magic[i];
        return no(why,
                  empty && s.st_size == sizeof(*f->file)
                      ? "%s: is just being made, or its process died while it made it"
                      : "%s: is no flight file of rdgate",
                  f->path);
    }
    if (h->version != FLIGHT_VERSION)
        return no(
            why,
            "%s: has layout version %u, this rdgate reads version %d: use the rdgate that came with the "
            "librdgate.so of that process",
            f->path, h->version, FLIGHT_VERSION);
    if (h->size != sizeof(*f->file) || s.st_size < (off_t)sizeof(*f->file))
        return no(why, "%s: is truncated: %lld of %zu bytes are there", f->path, (long long)s.st_size,
                  sizeof(*f->file));
    if (h->words != flight_words()) {
        ENDS(h->shim);
        return no(why,
                  "%s: was written by librdgate %s, whose table of calls is not the one of this "
                  "rdgate " RDGATE_VERSION ": use the rdgate that came with it",
                  f->path, h->shim);
    }
    for (int tries = 0;; tries++) {
        if (!read_all(f->fd, f->file, sizeof(*f->file), 0))
            return no(why, "%s: cannot be read whole: it has just become shorter", f->path);
        f->torn = !in_one_piece(f);
        if (!f->torn || tries == 20)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    mend(f->file);
    find_fate(f);
    return true;
}

static bool begin(struct flight *f, int fd, const char *path, char why[FLIGHT_WHY])
{
    struct stat s;
    snprintf(f->path, sizeof(f->path), "%s", path);
    f->fd = fd;
    if (fstat(fd, &s) == 0 && !S_ISREG(s.st_mode)) {
        no(why, "%s: is no file", path);
        flight_shut(f);
        return false;
    }
    f->file = malloc(sizeof(*f->file));
    if (!f->file) {
        no(why, "out of memory");
        flight_shut(f);
        return false;
    }
    if (!flight_again(f, why)) {
        flight_shut(f);
        return false;
    }
    return true;
}

void flight_shut(struct flight *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    free(f->file);
    f->file = NULL;
}

#define READING (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

bool flight_open_file(struct flight *f, const char *path, char why[FLIGHT_WHY])
{
    struct stat s;
    *f = (struct flight){.fd = -1};
    int fd = open(path, READING);
    if (fd >= 0)
        return begin(f, fd, path, why);
    int e = errno;
    if (e == ELOOP)
        return no(why, "%s: is a symbolic link, which is not followed", path);
    if (e == EACCES && lstat(path, &s) == 0)
        return no(why, "%s: belongs to user %u: read it as that user, or as root", path, (unsigned)s.st_uid);
    if (e == EACCES)
        return no(why, "%s: lies where only another user may look: do it as that user, or as root", path);
    return no(why, "%s: %s", path, strerror(e));
}

/* ------------------------------------------------------------------ finding files */

/* PID.START */
static bool is_name(const char *name, int *pid, uint64_t *start)
{
    char *end;
    if (*name < '1' || *name > '9')
        return false;
    long n = strtol(name, &end, 10);
    if (*end != '.' || end[1] < '0' || end[1] > '9' || n > INT_MAX ||
        strspn(end + 1, "0123456789") != strlen(end + 1))
        return false;
    *pid = (int)n;
    *start = strtoull(end + 1, NULL, 10);
    return true;
}

struct listing {
    void (*each)(const char *path, void *with);
    void *with;
    int count;
};

/* Not one that somebody else has made there: its files could tell what they like. */
static void list_in(const char *directory, struct listing *l, int depth)
{
    struct stat s;
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), pid;
    uint64_t start;
    bool ours = fd >= 0 && fstat(fd, &s) == 0 && (s.st_uid == geteuid() || s.st_uid == 0 || geteuid() == 0);
    DIR *d = ours ? fdopendir(fd) : NULL;
    if (!d && fd >= 0)
        close(fd);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[PATH_MAX];
        if (depth == 0 && strncmp(e->d_name, "run.", 4) == 0 && /* rdgate run --exit-code */
            snprintf(path, sizeof(path), "%s/%s", directory, e->d_name) < (int)sizeof(path))
            list_in(path, l, 1);
        if (!is_name(e->d_name, &pid, &start) ||
            snprintf(path, sizeof(path), "%s/%s", directory, e->d_name) >= (int)sizeof(path))
            continue;
        l->count++;
        l->each(path, l->with);
    }
    if (d)
        closedir(d);
}

/* Every directory "before*after". */
static void list_all(const char *in, const char *prefix, const char *after, struct listing *l)
{
    DIR *d = opendir(in);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[PATH_MAX];
        if (e->d_name[0] != '.' && strncmp(e->d_name, prefix, strlen(prefix)) == 0 &&
            snprintf(path, sizeof(path), "%s/%s%s", in, e->d_name, after) < (int)sizeof(path))
            list_in(path, l, 0);
    }
    if (d)
        closedir(d);
}

int flight_list(void (*each)(const char *path, void *with), void *with)
{
    struct listing l = {each, with, 0};
    char path[PATH_MAX];
    const char *directory = getenv("RDGATE_FLIGHT"), *runtime = getenv("XDG_RUNTIME_DIR");
    if (directory && *directory && strcmp(directory, "auto") != 0 && strcmp(directory, "off") != 0)
        list_in(directory, &l, 0);
    if (geteuid() == 0) {
        list_all("/run/user", "", "/rdgate", &l);
        list_all("/dev/shm", "rdgate-", "", &l);
    }
    /* What root has listed already is not listed again. */
    if (runtime && runtime[0] == '/' && !(geteuid() == 0 && strncmp(runtime, "/run/user/", 10) == 0)) {
        snprintf(path, sizeof(path), "%s/rdgate", runtime);
        list_in(path, &l, 0);
    }
    if (geteuid() != 0) {
        snprintf(path, sizeof(path), "/dev/shm/rdgate-%u", (unsigned)geteuid());
        list_in(path, &l, 0);
    }
    return l.count;
}

struct sought {
    int pid;
    uint64_t start;      /* of the process that has this number now, 0: none has */
    char path[PATH_MAX]; /* the newest, or the one that began then */
    struct timespec newest;
};

static void is_sought(const char *path, void *with)
{
    struct sought *k = with;
    struct stat s;
    int pid = 0;
    uint64_t start = 0;
    if (!is_name(strrchr(path, '/') + 1, &pid, &start) || pid != k->pid || lstat(path, &s) ||
        (k->start && k->start != start))
        return;
    if (!k->path[0] || s.st_mtim.tv_sec > k->newest.tv_sec ||
        (s.st_mtim.tv_sec == k->newest.tv_sec && s.st_mtim.tv_nsec > k->newest.tv_nsec)) {
        snprintf(k->path, sizeof(k->path), "%s", path);
        k->newest = s.st_mtim;
    }
}

/* The file that the process has mapped, wherever it lies in whatever container. 1: open; 0: there is none;
 * -1: there is one, why says what is wrong with it; -2: it cannot be seen. */
static int open_mapped(struct flight *f, int pid, char why[FLIGHT_WHY])
{
    char path[PATH_MAX * 2], *line = NULL;
    size_t size = 0;
    int found = 0, ignored;
    uint64_t start;
    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "re");
    if (!maps)
        return errno == EACCES || errno == EPERM ? -2 : 0;
    while (!found && getline(&line, &size, maps) > 0) {
        char *file = strchr(line, '/'), *slash;
        if (!file || !strstr(line, "rw-s"))
            continue;
        file[strcspn(file, "\n")] = 0;
        slash = strrchr(file, '/');
        if (strlen(file) >= PATH_MAX || !is_name(slash + 1, &ignored, &start))
            continue;
        snprintf(path, sizeof(path), "/proc/%d/root%s", pid, file);
        int fd = open(path, READING);
        if (fd < 0)
            continue;
        *f = (struct flight){.fd = -1, .pid = pid};
        found = begin(f, fd, file, why) ? 1 : -1;
    }
    free(line);
    fclose(maps);
    return found;
}

bool flight_open(struct flight *f, const char *what, char why[FLIGHT_WHY])
{
    char *end;
    long pid = strtol(what, &end, 10);
    *f = (struct flight){.fd = -1};
    if (*what < '0' || *what > '9' || *end)
        return flight_open_file(f, what, why);
    if (pid <= 0 || pid > INT_MAX)
        return no(why, "%s: is no process", what);
    int mapped = open_mapped(f, (int)pid, why);
    if (mapped == 1)
        return true;
    if (mapped == -1)
        return false;
    struct sought k = {.pid = (int)pid, .start = start_of((int)pid)};
    flight_list(is_sought, &k);
    if (k.path[0])
        return flight_open_file(f, k.path, why);
    if (mapped == -2)
        return no(why, "process %ld belongs to another user: look at it as that user, or as root", pid);
    if (k.start)
        return no(
            why,
            "process %ld has no flight file: it does not run under rdgate, has made no consumer yet, or "
            "RDGATE_FLIGHT is off",
            pid);
    return no(why, "there is no process %ld, and it left no flight file behind", pid);
}

/* ------------------------------------------------------------------ what is in it */

int64_t flight_wall_ms(const struct flight *f, int64_t time)
{
    const struct flight_header *h = &f->file->header;
    return (h->wall_ns + (sane(time) - h->mono_ns)) / 1000000;
}

int64_t flight_age_ms(const struct flight *f, int64_t time)
{
    return time <= 0 ? -1 : f->now > time ? (f->now - time) / 1000000 : 0;
}

const struct flight_place *flight_place(const struct flight *f, uint64_t address)
{
    for (int i = 0; address && i < FLIGHT_PLACES; i++)
        if (f->file->place[i].address == address)
            return &f->file->place[i];
    return NULL;
}

static int older(const void *a, const void *b)
{
    const struct flight_event *x = *(const struct flight_event *const *)a,
                              *y = *(const struct flight_event *const *)b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

size_t flight_events(const struct flight *f, int row, const struct flight_event **events, size_t most,
                     uint64_t *lost)
{
    size_t n = 0;
    *lost = 0;
    for (int i = 0; i < FLIGHT_RINGS; i++) {
        const struct flight_ring *r = &f->file->ring[i];
        if (row >= 0 && row % FLIGHT_RINGS != i)
            continue;
        uint64_t whole = 0;
        for (int k = 0; k < FLIGHT_EVENTS; k++) {
            const struct flight_event *e = &r->event[k];
            if (!e->number)
                continue;
            whole++;
            if (n < most &&
                (row < 0 || (e->consumer == row && e->generation == f->file->consumer[row].generation)))
                events[n++] = e;
        }
        *lost += r->head > whole ? r->head - whole : 0;
    }
    qsort(events, n, sizeof(const struct flight_event *), older);
    return n;
}

int flight_findings(const struct flight *f, const struct flight_finding *out[FLIGHT_FINDINGS])
{
    int n = 0;
    for (int i = 0; i < FLIGHT_FINDINGS; i++) {
        const struct flight_finding *one = &f->file->finding[i];
        int at = n;
        if (!one->number)
            continue;
        for (; at > 0 && out[at - 1]->number > one->number; at--)
            out[at] = out[at - 1];
        out[at] = one;
        n++;
    }
    return n;
}

static int64_t sane_ms(int64_t ms)
{
    return ms > -((int64_t)1 << 52) && ms < (int64_t)1 << 52 ? ms : -1;
}

static void see_thread(const struct flight *f, struct seen_thread *t, const struct flight_seen_thread *from)
{
    unpack_seen_thread(t, from);
    t->asleep = sane_ms(t->asleep);
    if (t->calls > SEEN_CALLS)
        t->calls = SEEN_CALLS;
    if (t->sleep > SLEEP_GONE)
        t->sleep = SLEEP_UNKNOWN;
    for (int i = 0; i < SEEN_CALLS; i++) {
        struct seen_call *c = &t->call[i];
        unpack_seen_call(c, &from->call[i]);
        c->call = sane_call(c->call);
        c->callback = sane_callback(c->callback);
        c->class = c->class > PASS ? PASS : c->class;
        c->state = c->state > SEEN_RETURNING ? SEEN_INSIDE : c->state;
        c->timeout_left = sane_ms(c->timeout_left);
        c->age = sane_ms(c->age);
        c->waiting = sane_ms(c->waiting);
        c->callback_age = sane_ms(c->callback_age);
        const struct flight_place *p = flight_place(f, from->call[i].caller);
        c->caller.address = from->call[i].caller;
        if (p) {
            c->caller.offset = p->offset;
            memcpy(c->caller.object, p->object, sizeof(c->caller.object));
            memcpy(c->caller.function, p->function, sizeof(c->caller.function));
        }
    }
}

static void see_consumer(struct seen_consumer *c, const struct flight_seen_consumer *from)
{
    unpack_seen_consumer(c, from);
    unpack_rebalance(&c->rebalance, &from->rebalance);
    if (c->life > GONE)
        c->life = OPEN;
    c->rebalance.answer = sane_call(c->rebalance.answer);
    c->rebalance.age = sane_ms(c->rebalance.age);
    c->rebalance.answer_age = sane_ms(c->rebalance.answer_age);
    c->last_poll = sane_ms(c->last_poll);
    c->last_commit = sane_ms(c->last_commit);
    c->ended_age = sane_ms(c->ended_age);
    c->made_age = sane_ms(c->made_age);
    if (from->ended_call && from->ended_call <= CALL_COUNT)
        c->ended_call = rdg_calls[from->ended_call - 1].name;
    for (int i = 0; i < DEBTS; i++) {
        unpack_debt(&c->debt[i], &from->debt[i]);
        c->debt[i].call = sane_call(c->debt[i].call);
        c->debt[i].age = sane_ms(c->debt[i].age);
    }
}

bool flight_seen(const struct flight *f, struct flight_seen *to)
{
    const struct flight_header *h = &f->file->header;
    memset(to, 0, sizeof(*to));
    if (!h->snapshot)
        return false;
    const struct flight_snapshot *s = &f->file->snapshot[h->snapshot - 1];
    if (s->sequence & 1 || s->consumers > FLIGHT_SEEN_CONSUMERS || s->threads > FLIGHT_SEEN_THREADS ||
        s->edges > FLIGHT_SEEN_EDGES || !(s->consumers || s->threads))
        return false;
    for (uint32_t i = 0; i < s->consumers; i++) {
        see_consumer(&to->consumer[i], &s->consumer[i]);
        to->row[i] =
            s->consumer[i].row >= 0 && s->consumer[i].row < FLIGHT_CONSUMERS ? s->consumer[i].row : -1;
    }
    for (uint32_t i = 0; i < s->threads; i++)
        see_thread(f, &to->thread[i], &s->thread[i]);
    for (uint32_t i = 0; i < s->edges; i++) {
        unpack_edge(&to->edge[i], &s->edge[i]);
        if (to->edge[i].kind > EDGE_ANSWER) /* nothing that we know */
            to->edge[i].from = to->edge[i].to = -1;
    }
    to->time = sane(s->time);
    to->deadlock = s->deadlock;
    to->snapshot = (struct snapshot){.pid = h->pid,
                                     .time = s->time_ms,
                                     .consumers = (int)s->consumers,
                                     .threads = (int)s->threads,
                                     .edges = (int)s->edges,
                                     .consumer = to->consumer,
                                     .thread = to->thread,
                                     .edge = to->edge};
    memcpy(to->snapshot.program, h->program, sizeof(to->snapshot.program));
    return true;
}
