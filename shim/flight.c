/*
 * flight.c: the writer of the flight file (flight.h). It must not wait for anybody, allocate, print, or let
 * the program feel that it fails: without a file everything else goes on as it was. No payloads and no values
 * of options go into the file: names of consumers and groups, calls, threads, error codes, counts and times.
 *
 * THE FILE is made for its full size before it is mapped (fallocate), so that a full file system is an error
 * here and not a SIGBUS later; RLIMIT_FSIZE is looked at before, since what exceeds it is a signal. It lies
 * in a directory that is ours alone, and is made under a name that nobody had (O_EXCL, O_NOFOLLOW). It stays
 * mapped until the process ends, so a writer never has to ask whether it is still there.
 *
 * EVENTS. Each writer takes a number and with it a slot, and writes the slot with plain stores. Who is
 * overtaken by 256 others while it writes leaves a slot of two events behind, whose sum then does not fit;
 * readers drop it. So nobody waits, and nothing is read that was not written.
 */
#include "flight.h"
#include "flight_pack.h"
#include "handle.h"
#include "ledger.h"
#include "notes.h"
#include "options.h"
#include "peek.h"
#include "raw.h"
#include "report.h"
#include "shim.h"
#include "stack.h"
#include "verdict.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#define MS         1000000LL
#define KEPT       16  /* files of dead processes */
#define MOST       512 /* entries of the directory that one cleaning looks at */
#define OLD_NS     (600 * 1000 * MS)
#define NAME_LOOKS 64 /* looks after which a thread's name is read again */

static struct flight_file *file;
static struct lock rows; /* the making of the file, and who has which row */
static bool tried;
static int parent;
static char path[512], directory[448];

extern char *program_invocation_short_name;

/* ------------------------------------------------------------------ where */

static bool add(char *to, size_t size, const char *more)
{
    size_t used = strlen(to), n = strlen(more);
    if (used + n >= size)
        return false;
    memcpy(to + used, more, n + 1);
    return true;
}

static bool add_number(char *to, size_t size, uint64_t n)
{
    char digits[24];
    size_t i = sizeof(digits) - 1;
    digits[i] = 0;
    do
        digits[--i] = (char)('0' + n % 10);
    while (n /= 10);
    return add(to, size, digits + i);
}

static bool status(int fd, struct stat *s)
{
    return raw(SYS_newfstatat, fd, (long)"", (long)s, AT_EMPTY_PATH) == 0;
}

#define OPEN_DIRECTORY (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK)

/* The directory `name` in `in`, ours and nobody else's, made if need be; a negative error. */
static int private_directory(int in, const char *name)
{
    struct stat s;
    raw(SYS_mkdirat, in, (long)name, 0700, 0);
    int fd = (int)raw(SYS_openat, in, (long)name, OPEN_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0 || (status(fd, &s) && s.st_uid == geteuid() && !(s.st_mode & 077)))
        return fd;
    raw_close(fd);
    return -EPERM;
}

static int in_runtime_directory(void)
{
    struct stat s;
    const char *name = secure_getenv("XDG_RUNTIME_DIR");
    if (!name || name[0] != '/')
        return -ENOENT;
    int in = (int)raw(SYS_openat, AT_FDCWD, (long)name, OPEN_DIRECTORY | O_NOFOLLOW, 0);
    if (in < 0)
        return in;
    int fd = status(in, &s) && s.st_uid == geteuid() && !(s.st_mode & 077) ? private_directory(in, "rdgate")
                                                                           : -EPERM;
    raw_close(in);
    return fd;
}

static int in_shared_memory(void)
{
    char name[32] = "rdgate-";
    int in = (int)raw(SYS_openat, AT_FDCWD, (long)"/dev/shm", OPEN_DIRECTORY, 0);
    if (in < 0)
        return in;
    add_number(name, sizeof(name), geteuid());
    int fd = private_directory(in, name);
    raw_close(in);
    return fd;
}

/* A directory that the user has named: nobody may replace in it what we make there. */
static int named_directory(const char *name)
{
    struct stat s;
    raw(SYS_mkdirat, AT_FDCWD, (long)name, 0700, 0);
    int fd = (int)raw(SYS_openat, AT_FDCWD, (long)name, OPEN_DIRECTORY, 0);
    if (fd < 0)
        return fd;
    if (status(fd, &s) && (s.st_uid == geteuid() || s.st_uid == 0) &&
        (!(s.st_mode & 022) || s.st_mode & S_ISVTX))
        return fd;
    raw_close(fd);
    return -EPERM;
}

/* Field 22 of /proc/PID/stat: when the process began; 0: there is none. A zombie is none any more. */
static uint64_t start_of(const char *pid)
{
    char name[48] = "/proc/", stat[512], *p;
    if (!add(name, sizeof(name), pid) || !add(name, sizeof(name), "/stat"))
        return 0;
    int fd = raw_open(name);
    if (fd < 0)
        return 0;
    long n = raw_read(fd, stat, sizeof(stat) - 1);
    raw_close(fd);
    stat[n > 0 ? n : 0] = 0;
    p = strrchr(stat, ')'); /* the name may hold anything */
    if (!p || p[1] != ' ' || p[2] == 'Z' || p[2] == 'X')
        return 0;
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    uint64_t start = 0;
    for (p = p ? p + 1 : NULL; p && *p >= '0' && *p <= '9'; p++)
        start = start * 10 + (uint64_t)(*p - '0');
    return start;
}

static uint64_t own_namespace(void)
{
    struct stat s;
    return raw(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/ns/pid", (long)&s, 0) == 0 ? s.st_ino : 0;
}

/* ------------------------------------------------------------------ making it */

static void fill_in(struct flight_header *h, uint64_t start)
{
    struct timespec t;
    h->version = FLIGHT_VERSION;
    h->size = sizeof(*file);
    h->words = flight_words();
    h->pid = getpid();
    h->start = start;
    h->namespace = own_namespace();
    h->parent = parent;
    h->uid = geteuid();
    clock_gettime(CLOCK_REALTIME, &t);
    h->mono_ns = now_ns();
    h->wall_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    if (program_invocation_short_name)
        strncat(h->program, program_invocation_short_name, sizeof(h->program) - 1);
    strncat(h->shim, RDGATE_VERSION, sizeof(h->shim) - 1);
    h->mode = (uint32_t)rdg_options.mode;
    h->stuck_ms = rdg_options.stuck_ms;
    h->max_wait_ms = rdg_options.max_wait_ms;
    h->close_ms = rdg_options.close_ms;
    h->looked = h->mono_ns;
}

/* In this directory: 0, or a negative error. */
static int make_in(int in, const char *name, uint64_t start)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < sizeof(*file))
        return -EFBIG;
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = (int)raw(SYS_openat, in, (long)name, flags, 0600);
    if (fd == -EEXIST) {
        /* Nobody else is this process: it is what we were before an exec. */
        raw(SYS_unlinkat, in, (long)name, 0, 0);
        fd = (int)raw(SYS_openat, in, (long)name, flags, 0600);
    }
    if (fd < 0)
        return fd;
    long r = raw(SYS_fchmod, fd, 0600, 0, 0);
    if (r == 0)
        r = raw(SYS_fallocate, fd, 0, 0, sizeof(*file));
    void *p = MAP_FAILED;
    if (r == 0) {
        p = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
        r = p == MAP_FAILED ? -errno : 0;
    }
    raw_close(fd);
    if (r) {
        raw(SYS_unlinkat, in, (long)name, 0, 0);
        return (int)r;
    }
    struct flight_file *f = p;
    uint64_t magic;
    fill_in(&f->header, start);
    f->header.state = FLIGHT_LIVE;
    memcpy(&magic, FLIGHT_MAGIC, sizeof(magic));
    __atomic_store_n((uint64_t *)(void *)f->header.magic, magic, __ATOMIC_RELEASE);
    file = f;
    return 0;
}

/* The true name of an open directory, for later. */
static bool name_of(int fd, char *to, size_t size)
{
    char link[32] = "/proc/self/fd/";
    add_number(link, sizeof(link), (uint64_t)fd);
    long n = raw(SYS_readlinkat, AT_FDCWD, (long)link, (long)to, (long)size - 1);
    to[n > 0 ? n : 0] = 0;
    return n > 0 && n < (long)size - 1 && to[0] == '/';
}

/* With `rows`. What goes wrong last is what is said, if anything is. */
static int make(void)
{
    char name[64] = "";
    const char *where = rdg_options.flight;
    uint64_t start = start_of("self");
    add_number(name, sizeof(name), (uint64_t)getpid());
    add(name, sizeof(name), ".");
    add_number(name, sizeof(name), start);
    int (*const places[])(void) = {in_runtime_directory, in_shared_memory};
    bool usual = strcmp(where, "auto") == 0;
    int r = start ? -ENOENT : -ESRCH;
    for (int i = 0; r && start && i < (usual ? 2 : 1); i++) {
        int in = r = usual ? places[i]() : named_directory(where);
        if (in < 0)
            continue;
        r = name_of(in, directory, sizeof(directory)) ? make_in(in, name, start) : -ENAMETOOLONG;
        raw_close(in);
    }
    path[0] = 0;
    if (!r) {
        add(path, sizeof(path), directory);
        add(path, sizeof(path), "/");
        add(path, sizeof(path), name);
    }
    return r;
}

/* ------------------------------------------------------------------ rows */

static struct flight_consumer *free_row(void)
{
    struct flight_consumer *oldest = NULL;
    for (int i = 0; i < FLIGHT_CONSUMERS; i++) {
        struct flight_consumer *r = &file->consumer[i];
        if (r->state == FLIGHT_FREE)
            return r;
        if (r->state == FLIGHT_GONE && (!oldest || r->gone < oldest->gone))
            oldest = r;
    }
    return oldest;
}

/* Which of the header's instances; with `rows`. */
static uint16_t instance_of(const struct library *lib)
{
    struct flight_header *h = &file->header;
    for (uint32_t i = 0; i < h->instances; i++)
        if (h->instance[i].from == lib->from && h->instance[i].to == lib->to)
            return (uint16_t)i;
    if (h->instances == FLIGHT_INSTANCES)
        return FLIGHT_INSTANCES;
    struct flight_instance *one = &h->instance[h->instances];
    one->version = (uint32_t)lib->version;
    one->cover = lib->patched ? FLIGHT_BY_PATCHING : lib->by_name ? FLIGHT_BY_DLSYM : FLIGHT_BY_LINKING;
    one->from = lib->from;
    one->to = lib->to;
    memcpy(one->text, lib->text, sizeof(one->text));
    memcpy(one->path, lib->path, sizeof(one->path) - 1); /* of a longer one, its beginning */
    __atomic_store_n(&h->instances, h->instances + 1, __ATOMIC_RELEASE);
    return (uint16_t)(h->instances - 1);
}

static void take_row(struct consumer *c)
{
    struct flight_consumer *r = free_row();
    if (!r) {
        file->header.consumers_lost++;
        return;
    }
    uint32_t generation = r->generation + 1, row = (uint32_t)(r - file->consumer) + 1;
    __atomic_store_n(&r->state, FLIGHT_FREE, __ATOMIC_RELEASE);
    memset(r, 0, sizeof(*r));
    r->generation = generation;
    r->made_tid = c->made_tid;
    r->instance = instance_of(c->lib);
    r->born = now_ns();
    memcpy(r->name, c->name, sizeof(r->name));
    memcpy(r->group, c->group, sizeof(r->group));
    r->max_poll_ms = c->max_poll_ms;
    r->flags = c->cooperative ? FLIGHT_COOPERATIVE : 0;
    __atomic_store_n(&r->state, FLIGHT_OPEN, __ATOMIC_RELEASE);
    if (file->header.rows < row)
        file->header.rows = row;
    c->flight_generation = generation;
    __atomic_store_n(&c->flight, r, __ATOMIC_RELEASE);
}

void flight_born(struct consumer *c, uint16_t call)
{
    int saved = errno, r = 0;
    bool first = false;
    if (strcmp(rdg_options.flight, "off") == 0 || rdg_options.mode == OFF)
        return;
    lock_take(&rows);
    if (!file && !tried) {
        first = tried = true;
        r = make();
    }
    if (file)
        take_row(c);
    lock_drop(&rows);
    if (first)
        report_flight(r ? NULL : path, -r);
    if (call < CALL_COUNT)
        flight_note(c, (struct flight_event){.kind = FLIGHT_BORN, .call = call});
    errno = saved;
}

void flight_gone(struct consumer *c, uint16_t call)
{
    struct flight_consumer *r = c->flight;
    if (!r)
        return;
    flight_note(c, (struct flight_event){.kind = FLIGHT_DESTROYED, .call = call});
    r->gone = now_ns();
    memset(&r->now.owner, 0, offsetof(struct flight_now, polled) - offsetof(struct flight_now, owner));
    memset(r->now.debt, 0, sizeof(r->now.debt));
    r->now.life = GONE;
    __atomic_store_n(&r->state, FLIGHT_GONE, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------ events */

void flight_note(struct consumer *c, struct flight_event e)
{
    struct flight_consumer *row = c->flight;
    uint64_t words[8];
    if (!row)
        return;
    e.consumer = (uint16_t)(row - file->consumer);
    e.generation = c->flight_generation;
    e.time = now_ns();
    if (!e.tid && rdg_self)
        e.tid = rdg_self->tid;
    struct flight_ring *ring = &file->ring[e.consumer % FLIGHT_RINGS];
    e.number = __atomic_fetch_add(&ring->head, 1, __ATOMIC_RELAXED) + 1;
    memcpy(words, &e, sizeof(words));
    e.sum = flight_sum(words);
    memcpy(words, &e, sizeof(words));
    uint64_t *slot = (uint64_t *)(void *)&ring->event[(e.number - 1) % FLIGHT_EVENTS];
    for (int i = 0; i < 8; i++)
        __atomic_store_n(&slot[i], words[i], __ATOMIC_RELAXED);
}

static uint16_t level_of(const struct visit *v)
{
    return (uint16_t)(v - v->self->visits);
}

/* Of a call: who is in it and how deep. */
static struct flight_event of_call(const struct visit *v, enum flight_event_kind kind)
{
    return (struct flight_event){.kind = (uint8_t)kind,
                                 .call = v->call,
                                 .tid = v->self->tid,
                                 .level = level_of(v),
                                 .caller = (uintptr_t)v->caller};
}

void flight_begins(const struct visit *v)
{
    flight_count(v->consumer, FLIGHT_COUNT_calls);
    flight_note(v->consumer, of_call(v, FLIGHT_CALL_BEGINS));
}

void flight_ends(const struct visit *v, int code)
{
    struct flight_event e = of_call(v, FLIGHT_CALL_ENDS);
    e.code = code;
    flight_note(v->consumer, e);
}

void flight_poll(const struct visit *v, int code)
{
    struct flight_event e = of_call(v, FLIGHT_POLL);
    e.code = code;
    e.callback = v->callback;
    e.flags = (uint16_t)(v->marks | (v->since ? FLIGHT_WAITED : 0) | (v->callback ? FLIGHT_CALLED : 0) |
                         (code ? FLIGHT_FAILED : 0) | (v->sent_home ? FLIGHT_CUT_SHORT : 0));
    flight_note(v->consumer, e);
}

static void count_wait(struct flight_consumer *r, int64_t ns)
{
    int bucket = 0;
    for (int64_t us = ns / 1000; us && bucket < FLIGHT_BUCKETS - 1; us >>= 1)
        bucket++;
    __atomic_fetch_add(&r->waits[bucket], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&r->waited_ns, (uint64_t)ns, __ATOMIC_RELAXED);
    int64_t longest = __atomic_load_n(&r->longest_wait_ns, __ATOMIC_RELAXED);
    while (ns > longest && !__atomic_compare_exchange_n(&r->longest_wait_ns, &longest, ns, true,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

void flight_waits(const struct visit *v, const struct visit *who)
{
    if (!v->consumer->flight)
        return;
    struct flight_event e = of_call(v, FLIGHT_WAIT_BEGINS);
    if (who) {
        e.other = who->self->tid;
        e.other_call = who->call;
    }
    flight_count(v->consumer, FLIGHT_COUNT_collisions);
    flight_count(v->consumer, FLIGHT_COUNT_waits);
    flight_note(v->consumer, e);
}

void flight_waited(const struct visit *v, enum admission a)
{
    struct flight_consumer *r = v->consumer->flight;
    if (!r)
        return;
    struct flight_event e = of_call(v, FLIGHT_WAIT_ENDS);
    e.value = now_ns() - v->since;
    e.code = a == REFUSED_IT ? v->code : 0;
    e.flags = a == REFUSED_IT    ? FLIGHT_REFUSED
              : a == OUT_OF_TIME ? FLIGHT_TIMED_OUT
              : v->passed        ? FLIGHT_LET_PAST
                                 : 0;
    if (e.flags & FLIGHT_LET_PAST)
        flight_count(v->consumer, FLIGHT_COUNT_passed);
    count_wait(r, e.value);
    flight_note(v->consumer, e);
}

void flight_preempts(struct consumer *c, struct visit *o)
{
    o->marks |= FLIGHT_PREEMPTED;
    if (!c->flight)
        return;
    flight_count(c, FLIGHT_COUNT_preemptions);
    flight_note(c, (struct flight_event){
                       .kind = FLIGHT_PREEMPTS,
                       .other = o->self->tid,
                       .other_call = o->call,
                       .call = rdg_self && rdg_self->top ? rdg_self->top->call : o->call,
                   });
}

void flight_window(const struct visit *v, enum flight_event_kind kind)
{
    if (!v->consumer->flight)
        return;
    struct flight_event e = of_call(v, kind);
    e.callback = v->callback;
    e.caller = 0;
    if (kind == FLIGHT_CALLBACK_BEGINS)
        flight_count(v->consumer, FLIGHT_COUNT_callbacks);
    if (e.callback != CB_consume_cb + 1) /* one for each message would leave no room for anything else */
        flight_note(v->consumer, e);
}

void flight_loan(const struct visit *v)
{
    if (!v->consumer->flight)
        return;
    flight_count(v->consumer, FLIGHT_COUNT_loans);
    flight_note(v->consumer, of_call(v, FLIGHT_LOAN));
}

void flight_met(const struct visit *v, const struct visit *o)
{
    if (!v->consumer->flight)
        return;
    struct flight_event e = of_call(v, FLIGHT_COLLISION);
    e.other = o->self->tid;
    e.other_call = o->call;
    flight_count(v->consumer, FLIGHT_COUNT_collisions);
    flight_note(v->consumer, e);
}

void flight_rebalance(struct consumer *c, int code, int partitions, bool by_event)
{
    flight_count(c, FLIGHT_COUNT_rebalances);
    flight_note(c, (struct flight_event){.kind = FLIGHT_REBALANCE,
                                         .code = code,
                                         .value = partitions,
                                         .flags = by_event ? FLIGHT_BY_EVENT : 0});
}

void flight_answer(struct consumer *c, uint16_t call, int partitions, int code)
{
    flight_note(
        c, (struct flight_event){.kind = FLIGHT_ANSWER, .call = call, .value = partitions, .code = code});
}

void flight_closed(struct consumer *c, uint16_t call, int code)
{
    flight_note(c, (struct flight_event){.kind = FLIGHT_CLOSED, .call = call, .code = code});
}

void flight_abandoned(struct consumer *c, const struct visit *v, int finding)
{
    if (!c->flight)
        return;
    struct flight_event e = of_call(v, FLIGHT_ABANDONED);
    e.code = finding;
    flight_note(c, e);
}

/* The last line of a report that begins so, without its beginning. */
static void take_summary(char *to, size_t size, const char *text, size_t length)
{
    static const char label[] = "SUMMARY: ";
    size_t n = sizeof(label) - 1, from = length, to_end = length;
    for (size_t i = 0; i + n < length; i++)
        if ((i == 0 || text[i - 1] == '\n') && memcmp(text + i, label, n) == 0)
            from = i + n;
    /* It may go over several lines; then they are indented. */
    size_t used = 0;
    for (size_t i = from; i + 1 < length && to_end == length; i++)
        if (text[i] == '\n' && text[i + 1] == '=') /* the fence */
            to_end = i;
    for (bool blank = false; from < to_end && used + 2 < size; from++) {
        bool space = text[from] == ' ' || text[from] == '\n';
        if (space) {
            blank = used > 0;
            continue;
        }
        if (blank)
            to[used++] = ' ';
        blank = false;
        to[used++] = text[from];
    }
    to[used] = 0;
}

void flight_finding(struct consumer *c, const struct verdict *v, long reported, const char *text,
                    size_t length)
{
    if (!file)
        return;
    uint64_t number = __atomic_fetch_add(&file->header.findings, 1, __ATOMIC_RELAXED) + 1;
    if ((unsigned)v->finding < FLIGHT_CODES)
        __atomic_fetch_add(&file->header.found[v->finding], 1, __ATOMIC_RELAXED);
    struct flight_finding *f = &file->finding[(number - 1) % FLIGHT_FINDINGS];
    __atomic_store_n(&f->number, 0, __ATOMIC_RELEASE);
    f->time = now_ns();
    f->finding = v->finding;
    f->severity = (uint32_t)report_severity(v->finding);
    f->consumer = c && c->flight ? (int32_t)(c->flight - file->consumer) : -1;
    f->reported = (uint64_t)reported;
    size_t n = length < sizeof(f->text) ? length : sizeof(f->text) - 1;
    memcpy(f->text, text, n);
    f->text[n] = 0;
    f->length = (uint32_t)n;
    take_summary(f->summary, sizeof(f->summary), text, length);
    __atomic_store_n(&f->number, number, __ATOMIC_RELEASE);
    if (!c)
        return;
    flight_count(c, FLIGHT_COUNT_findings);
    flight_note(c, (struct flight_event){.kind = FLIGHT_FINDING,
                                         .call = v->call < CALL_COUNT ? v->call : 0,
                                         .code = (int32_t)v->finding,
                                         .value = (int64_t)number});
}

/* ------------------------------------------------------------------ the watchdog's look */

/* What one look has gathered of a consumer. Static: the watchdog alone has it, one process has one. */
static struct gathered {
    int owner;
    uint16_t call;
    uint8_t callback;
    uint32_t inside, waiting;
    int64_t owner_since, waiting_since, callback_since;
} gathered[FLIGHT_CONSUMERS];
static int32_t debts[FLIGHT_CONSUMERS][DEBTS];
static uint32_t named[FLIGHT_THREADS]; /* self->id of whose name it is */
static int seen_threads;

static int row_of(const struct consumer *c)
{
    return c && c->flight ? (int)(c->flight - file->consumer) : -1;
}

static void count_debt(const struct consumer *c, enum debt_kind kind, void *with)
{
    (void)with;
    int row = row_of(c);
    if (row >= 0)
        debts[row][kind]++;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a && a < b ? a : b;
}

void flight_look(int64_t now_ms)
{
    (void)now_ms;
    if (!file)
        return;
    memset(gathered, 0, sizeof(gathered));
    seen_threads = 0;
    if (file->header.looks % 4 == 0) {
        memset(debts, 0, sizeof(debts));
        ledger_each(count_debt, NULL);
    }
    __atomic_store_n(&file->header.look, file->header.look | 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    file->header.threads_lost = 0;
}

/* Gathers what this visit says of its consumer. */
static void gather(const struct visit *v, const struct watched *w)
{
    int row = row_of(v->consumer);
    if (row < 0 || v->guard)
        return;
    struct gathered *g = &gathered[row];
    int64_t since = w->since * MS;
    switch (atomic_load_explicit(&v->state, memory_order_relaxed)) {
    case WAITING:
        g->waiting++;
        g->waiting_since = earlier(g->waiting_since, v->since ? v->since : since);
        break;
    case INSIDE:
    case RETURNING:
        if (!g->inside++ || since < g->owner_since) {
            g->owner = v->self->tid;
            g->call = v->call;
            g->callback = atomic_load_explicit(&v->window, memory_order_relaxed) ? v->callback : 0;
            g->owner_since = since;
            g->callback_since = g->callback ? w->callback_since * MS : 0;
        }
        break;
    default: break;
    }
}

void flight_look_thread(struct self *s)
{
    int used = s->used;
    if (!file || used <= 0)
        return;
    if (seen_threads == FLIGHT_THREADS) {
        file->header.threads_lost++;
        return;
    }
    int n = seen_threads++;
    struct flight_thread *t = &file->thread[n];
    if (named[n] != s->id || file->header.looks % NAME_LOOKS == 0) {
        peek_name(s->tid, t->name);
        named[n] = s->id;
    }
    t->tid = s->tid;
    t->calls = 0;
    for (int i = 0; i < used && i < VISITS && i < FLIGHT_NEST; i++) {
        const struct visit *v = &s->visits[i];
        const struct watched *w = &s->watched[i];
        bool window = atomic_load_explicit(&v->window, memory_order_relaxed) > 0;
        uint32_t state = atomic_load_explicit(&v->state, memory_order_relaxed);
        gather(v, w);
        t->nest[i].call = v->call;
        t->nest[i].callback = window ? v->callback : 0;
        t->nest[i].guard = v->guard;
        t->row[i] = (int16_t)row_of(v->consumer);
        t->calls = (uint8_t)(i + 1);
        t->consumer = (int16_t)row_of(v->consumer);
        t->generation = v->consumer ? v->consumer->flight_generation : 0;
        t->state = state == WAITING ? SEEN_WAITING : state == RETURNING ? SEEN_RETURNING : SEEN_INSIDE;
        t->since = w->since * MS;
        t->callback_since = window ? w->callback_since * MS : 0;
        t->waiting_since = state == WAITING ? v->since : 0;
        t->deadline = v->timed && v->deadline != FOREVER ? v->deadline : 0;
        t->caller = (uintptr_t)v->caller;
    }
    t->waits_for = 0;
}

void flight_look_consumer(struct consumer *c, int64_t now_ms)
{
    int row = file ? row_of(c) : -1;
    if (row < 0 || c->flight->generation != c->flight_generation || c->flight->state != FLIGHT_OPEN)
        return;
    struct flight_consumer *r = c->flight;
    const struct gathered *g = &gathered[row];
    struct flight_now *n = &r->now;
    n->life = (uint32_t)atomic_load(&c->life);
    n->owner = g->owner;
    n->owner_call = g->call;
    n->owner_callback = g->callback;
    n->unanswered = atomic_load(&c->unanswered) != 0;
    n->inside = g->inside;
    n->waiting = g->waiting;
    n->guards = (uint32_t)atomic_load(&c->guards);
    n->owner_since = g->owner_since;
    n->waiting_since = g->waiting_since;
    n->callback_since = g->callback_since;
    n->polls = atomic_load_explicit(&c->polls, memory_order_relaxed);
    n->polled = n->polls ? c->polls_since * MS : 0;
    if (n->polls && c->subscribed && (now_ms - c->polls_since) * MS > n->longest_gap_ns)
        n->longest_gap_ns = (now_ms - c->polls_since) * MS;
    n->committed = atomic_load_explicit(&c->committed, memory_order_relaxed) * MS;
    n->poller = c->poller_tid;
    r->flags =
        (uint16_t)((c->subscribed ? FLIGHT_SUBSCRIBED : 0) | (c->cooperative ? FLIGHT_COOPERATIVE : 0));
    memcpy(n->debt, debts[row], sizeof(n->debt));
    for (struct object *o = c->objects; o; o = o->sibling) /* the registry is locked */
        if (!o->dead && (o->key & 3) != HANDLE_KIND)
            n->debt[(o->key & 3) == TOPIC_KIND ? DEBT_TOPIC : DEBT_QUEUE]++;
}

void flight_looked(void)
{
    if (!file)
        return;
    for (int i = 0; i < FLIGHT_THREADS && (i < seen_threads || file->thread[i].tid); i++) {
        struct flight_thread *t = &file->thread[i];
        if (i >= seen_threads)
            t->tid = 0;
        else if (t->consumer >= 0 && t->state != SEEN_INSIDE && gathered[t->consumer].owner != t->tid)
            t->waits_for = gathered[t->consumer].owner;
    }
    file->header.looked = now_ns();
    file->header.looks++;
    __atomic_store_n(&file->header.look, (file->header.look | 1) + 1, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------ the snapshot */

static void name_place(const struct place *p)
{
    struct place named_now;
    for (int i = 0; p->address && i < FLIGHT_PLACES; i++) {
        struct flight_place *to = &file->place[i];
        if (to->address == p->address)
            return;
        if (to->address)
            continue;
        if (!p->object[0]) {
            place_name(p->address - 1, &named_now); /* the call, not what follows it */
            named_now.address = p->address;
            p = &named_now;
        }
        to->offset = p->offset;
        memcpy(to->object, p->object, sizeof(to->object));
        memcpy(to->function, p->function, sizeof(to->function));
        __atomic_store_n(&to->address, (uint64_t)p->address, __ATOMIC_RELEASE);
        return;
    }
}

static void write_threads(struct flight_snapshot *to, const struct snapshot *s)
{
    to->threads = (uint32_t)(s->threads < FLIGHT_SEEN_THREADS ? s->threads : FLIGHT_SEEN_THREADS);
    for (uint32_t i = 0; i < to->threads; i++) {
        const struct seen_thread *t = &s->thread[i];
        pack_seen_thread(&to->thread[i], t);
        for (int k = 0; k < SEEN_CALLS && k < t->calls; k++) {
            pack_seen_call(&to->thread[i].call[k], &t->call[k]);
            to->thread[i].call[k].caller = t->call[k].caller.address;
            name_place(&t->call[k].caller);
        }
    }
}

static void write_consumers(struct flight_snapshot *to, const struct snapshot *s, struct consumer *const *of)
{
    to->consumers = (uint32_t)(s->consumers < FLIGHT_SEEN_CONSUMERS ? s->consumers : FLIGHT_SEEN_CONSUMERS);
    for (uint32_t i = 0; i < to->consumers; i++) {
        const struct seen_consumer *c = &s->consumer[i];
        struct flight_seen_consumer *f = &to->consumer[i];
        pack_seen_consumer(f, c);
        pack_rebalance(&f->rebalance, &c->rebalance);
        for (int k = 0; k < DEBTS; k++)
            pack_debt(&f->debt[k], &c->debt[k]);
        f->row = row_of(of[i]);
        f->generation = of[i]->flight_generation;
        for (int k = 0; c->ended_call && k < CALL_COUNT; k++)
            if (c->ended_call == rdg_calls[k].name)
                f->ended_call = (uint16_t)(k + 1);
    }
}

void flight_snapshot(const struct snapshot *s, struct consumer *const *of, unsigned deadlock)
{
    if (!file)
        return;
    bool empty = !s->threads && !s->consumers;
    if (empty && !file->header.snapshot)
        return;
    uint32_t which = file->header.snapshot == 1 ? 1 : 0;
    if (empty) {
        __atomic_store_n(&file->header.snapshot, 0, __ATOMIC_RELEASE);
        return;
    }
    struct flight_snapshot *to = &file->snapshot[which];
    uint32_t sequence = to->sequence | 1;
    __atomic_store_n(&to->sequence, sequence, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    to->time_ms = s->time;
    to->time = now_ns();
    to->look = file->header.looks;
    to->deadlock = deadlock;
    write_threads(to, s);
    write_consumers(to, s, of);
    to->edges = (uint32_t)(s->edges < FLIGHT_SEEN_EDGES ? s->edges : FLIGHT_SEEN_EDGES);
    for (uint32_t i = 0; i < to->edges; i++)
        pack_edge(&to->edge[i], &s->edge[i]);
    __atomic_store_n(&to->sequence, sequence + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&file->header.snapshot, which + 1, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------ what others have left */

/* PID.START into its parts. */
static bool is_name(const char *name, char pid[16], uint64_t *start)
{
    int n = 0;
    while (name[n] >= '0' && name[n] <= '9' && n < 15) {
        pid[n] = name[n];
        n++;
    }
    pid[n] = 0;
    if (!n || name[n] != '.' || !name[n + 1])
        return false;
    *start = 0;
    for (name += n + 1; *name >= '0' && *name <= '9'; name++)
        *start = *start * 10 + (uint64_t)(*name - '0');
    return !*name;
}

/* Is the process dead that left this file of ours? `made`: when. */
static bool is_left(int in, const char *name, int64_t *made)
{
    char pid[16];
    uint64_t start;
    struct stat s;
    struct flight_header h;
    if (!is_name(name, pid, &start))
        return false;
    int fd =
        (int)raw(SYS_openat, in, (long)name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return false;
    bool ours = status(fd, &s) && S_ISREG(s.st_mode) && s.st_uid == geteuid();
    long n = ours ? raw_read_at(fd, &h, sizeof(h), 0) : -1;
    raw_close(fd);
    if (!ours)
        return false;
    *made = (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec;
    /* The numbers of another container mean nothing here; its clock is ours. */
    if (n == (long)sizeof(h) && memcmp(h.magic, FLIGHT_MAGIC, sizeof(h.magic)) == 0 &&
        h.version == FLIGHT_VERSION && h.namespace != file->header.namespace)
        return h.looked < now_ns() - OLD_NS;
    return start_of(pid) != start;
}

struct leftovers {
    struct {
        char name[40];
        int64_t made;
    } kept[KEPT];
    int count;
};

/* Keeps it among the newest; what falls out goes. */
static void keep_newest(int in, struct leftovers *l, const char *name, int64_t made)
{
    int at = l->count < KEPT ? l->count++ : KEPT - 1;
    if (l->count == KEPT && at == KEPT - 1 && l->kept[at].name[0]) {
        bool older = made < l->kept[at].made;
        raw(SYS_unlinkat, in, (long)(older ? name : l->kept[at].name), 0, 0);
        if (older)
            return;
    }
    for (; at > 0 && l->kept[at - 1].made < made; at--)
        l->kept[at] = l->kept[at - 1];
    l->kept[at].name[0] = 0;
    add(l->kept[at].name, sizeof(l->kept[at].name), name);
    l->kept[at].made = made;
}

void flight_clean(void)
{
    static char entries[4096];
    static struct leftovers left;
    long got;
    int looked_at = 0;
    if (!file)
        return;
    int in = (int)raw(SYS_openat, AT_FDCWD, (long)directory, OPEN_DIRECTORY | O_NOFOLLOW, 0);
    if (in < 0)
        return;
    memset(&left, 0, sizeof(left));
    while (looked_at < MOST && (got = raw(SYS_getdents64, in, (long)entries, sizeof(entries), 0)) > 0) {
        for (long at = 0; at < got; looked_at++) {
            /* struct linux_dirent64: ino 8, off 8, reclen 2, type 1, name */
            unsigned short length;
            int64_t made;
            const char *name = entries + at + 19;
            memcpy(&length, entries + at + 16, sizeof(length));
            if (strlen(name) < sizeof(left.kept[0].name) && is_left(in, name, &made))
                keep_newest(in, &left, name, made);
            at += length;
        }
    }
    raw_close(in);
}

/* ------------------------------------------------------------------ the process */

const char *flight_path(void)
{
    return file ? path : NULL;
}

void flight_end(void)
{
    if (!file)
        return;
    if (rdg_options.flight_keep)
        __atomic_store_n(&file->header.state, FLIGHT_ENDED, __ATOMIC_RELEASE);
    else
        raw(SYS_unlinkat, AT_FDCWD, (long)path, 0, 0);
}

void flight_after_fork(void)
{
    rows.word = 0;
    tried = false;
    if (!file)
        return;
    parent = file->header.pid;
    raw(SYS_munmap, (long)file, sizeof(*file), 0, 0);
    file = NULL;
    path[0] = 0;
}
