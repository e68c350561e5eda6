/* links: flight.o lock.o call.o report.o page.o verdict.o cli/flight.o */
/* The writer of the flight file and its reader at once: many threads write into one ring as fast as they can,
 * and whatever the reader gets must be something that one of them wrote. */
#include "cli/flight.h"
#include "flight.h"
#include "ledger.h"
#include "notes.h"
#include "options.h"
#include "peek.h"
#include "shim.h"
#include "stack.h"
#include "tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WRITERS = 6, ROUNDS = 60000 };

/* What of the shim is not here. */
struct options rdg_options = {.stuck_ms = 1000, .flight_keep = 1};
__thread struct self *rdg_self;
static char told[512];

void report_flight(const char *path, int error)
{
    snprintf(told, sizeof(told), "%s%d", path ? path : "error ", error);
}

void ledger_each(void (*f)(const struct consumer *c, enum debt_kind kind, void *with), void *with)
{
    (void)f, (void)with;
}

void peek_name(int tid, char name[16])
{
    snprintf(name, 16, "t%d", tid);
}

bool place_name(uintptr_t address, struct place *p)
{
    *p = (struct place){.address = address, .object = "here"};
    return true;
}

static struct library library = {.version = 0x020002, .text = "2.0.2", .path = "/lib/librdkafka.so.1"};
static struct consumer consumers[2];
static _Atomic long written;

/* Everything in an event follows from its value. */
static struct flight_event event_of(int64_t value)
{
    return (struct flight_event){.kind = (uint8_t)(1 + value % (FLIGHT_KINDS - 1)),
                                 .call = (uint16_t)(value % CALL_COUNT),
                                 .tid = (int32_t)(value * 7 | 1),
                                 .other = (int32_t)(value * 11),
                                 .code = (int32_t)(value * 13),
                                 .caller = (uint64_t)value * 0x9e3779b97f4a7c15u,
                                 .value = value};
}

static void *writer(void *arg)
{
    int64_t which = (intptr_t)arg;
    for (int64_t i = 0; i < ROUNDS; i++)
        flight_note(&consumers[0], event_of(which * ROUNDS + i));
    atomic_fetch_add(&written, ROUNDS);
    return NULL;
}

static int good(const struct flight_event *e)
{
    struct flight_event w = event_of(e->value);
    return e->kind == w.kind && e->call == w.call && e->tid == w.tid && e->other == w.other &&
           e->code == w.code && e->caller == w.caller;
}

static void storm(const char *path)
{
    static const struct flight_event *events[FLIGHT_MOST_EVENTS];
    static struct flight f;
    char why[FLIGHT_WHY];
    pthread_t thread[WRITERS];
    uint64_t lost;
    long bad = 0, read = 0;
    ok(flight_open_file(&f, path, why));
    for (intptr_t i = 0; i < WRITERS; i++)
        pthread_create(&thread[i], NULL, writer, (void *)i);
    do {
        if (!flight_again(&f, why)) {
            printf("# %s\n", why);
            bad++;
            break;
        }
        size_t n = flight_events(&f, 0, events, FLIGHT_MOST_EVENTS, &lost);
        for (size_t i = 0; i < n; i++, read++)
            bad += events[i]->kind != FLIGHT_BORN && !good(events[i]);
    } while (atomic_load(&written) < (long)WRITERS * ROUNDS);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(thread[i], NULL);
    is(bad, 0);
    ok(read > 0);
    ok(flight_again(&f, why));
    size_t n = flight_events(&f, 0, events, FLIGHT_MOST_EVENTS, &lost);
    ok(n <= FLIGHT_EVENTS &&
       n > FLIGHT_EVENTS - WRITERS); /* each writer may have spoiled one by being overtaken */
    is((long)n + (long)lost, (long)WRITERS * ROUNDS + 1);
    printf("# %ld events read while %d were written\n", read, WRITERS * ROUNDS);
    flight_shut(&f);
}

/* More consumers than rows: the dead make room, the living never. */
static void rows(const char *path)
{
    static struct consumer many[FLIGHT_CONSUMERS + 10];
    struct flight f;
    char why[FLIGHT_WHY];
    for (int i = 0; i < FLIGHT_CONSUMERS + 10; i++) {
        many[i].lib = &library;
        snprintf(many[i].name, sizeof(many[i].name), "many-%d", i);
        flight_born(&many[i], CALL_rd_kafka_new);
    }
    ok(many[FLIGHT_CONSUMERS - 3].flight != NULL && many[FLIGHT_CONSUMERS - 2].flight == NULL);
    ok(many[FLIGHT_CONSUMERS + 9].flight == NULL);
    flight_note(&many[FLIGHT_CONSUMERS + 9], event_of(1)); /* is nothing */
    ok(flight_open_file(&f, path, why));
    is(f.file->header.consumers_lost, 12); /* two were there before */
    is(f.file->header.rows, FLIGHT_CONSUMERS);
    flight_gone(&many[5], CALL_rd_kafka_destroy);
    flight_born(&many[FLIGHT_CONSUMERS + 9], CALL_rd_kafka_new);
    ok(many[FLIGHT_CONSUMERS + 9].flight == many[5].flight);
    is(many[FLIGHT_CONSUMERS + 9].flight_generation, many[5].flight_generation + 1);
    ok(flight_again(&f, why));
    is_text(f.file->consumer[many[5].flight - many[0].flight + 2].name, "many-265");
    flight_shut(&f);
}

/* A child has no file until it makes a consumer, and then its own. */
static void child(const char *path)
{
    struct stat s;
    flight_after_fork();
    consumers[1].flight = NULL;
    if (flight_path())
        _exit(1);
    flight_note(&consumers[1], event_of(1));
    flight_born(&consumers[1], CALL_rd_kafka_new);
    if (!flight_path() || strcmp(flight_path(), path) == 0 || stat(flight_path(), &s) || !consumers[1].flight)
        _exit(2);
    rdg_options.flight_keep = 0;
    flight_end();
    _exit(stat(path, &s) ? 3 : 0);
}

int main(void)
{
    char directory[64] = "/tmp/recorder.XXXXXX", path[512];
    if (!mkdtemp(directory))
        return 1;
    snprintf(rdg_options.flight, sizeof(rdg_options.flight), "%s", directory);
    for (int i = 0; i < 2; i++) {
        consumers[i].lib = &library;
        flight_born(&consumers[i], CALL_rd_kafka_new);
    }
    ok(flight_path() != NULL);
    snprintf(path, sizeof(path), "%s", flight_path() ? flight_path() : "");
    ok(strncmp(told, path, strlen(path)) == 0);
    storm(path);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        child(path);
    int status = -1;
    waitpid(pid, &status, 0);
    ok(WIFEXITED(status));
    is(WEXITSTATUS(status), 0);
    rows(path);
    unlink(path);
    rmdir(directory);
    return done();
}
