/* links: call.o cli/flight.o */
/* The reader of flight files, on files made by hand: good ones, and every kind of bad one. */
#include "cli/flight.h"
#include "flights.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static struct flight flight;
static char why[FLIGHT_WHY], directory[64], path[128];

static int reads(size_t size)
{
    flight_shut(&flight);
    why[0] = 0;
    return flight_write(path, size) && flight_open_file(&flight, path, why);
}

static int refused(size_t size, const char *because)
{
    int bad = reads(size) || !strstr(why, because) || strpbrk(why, "\n\033");
    if (bad)
        printf("# %s\n", why);
    return !bad;
}

static void good(void)
{
    const struct flight_event *events[FLIGHT_MOST_EVENTS];
    uint64_t lost;
    flight_fresh();
    flight_consumer(0, "orders#consumer-1", "billing");
    flight_consumer(33, "audit#consumer-2", "audit");
    for (int i = 0; i < 300; i++)
        flight_event((struct flight_event){.kind = FLIGHT_CALL_BEGINS,
                                           .time = 102 * SECOND + i,
                                           .call = CALL_rd_kafka_commit,
                                           .tid = 7,
                                           .value = i});
    flight_event((struct flight_event){.kind = FLIGHT_BORN, .time = 101 * SECOND, .consumer = 33});
    ok(reads(sizeof(made)));
    is_text(flight.file->header.program, "billing");
    is_text(flight.file->consumer[33].group, "audit");
    is(flight.fate, FLIGHT_DIED);
    is(flight_wall_ms(&flight, 101 * SECOND), 1700000001000);
    is(flight_age_ms(&flight, 158 * SECOND), 2000); /* before it was seen last */
    is(flight_age_ms(&flight, 0), -1);
    is(flight_events(&flight, 0, events, FLIGHT_MOST_EVENTS, &lost), 256);
    is(events[0]->value, 44);
    is(events[255]->value, 299);
    is(lost, 44);
    is(flight_events(&flight, 33, events, FLIGHT_MOST_EVENTS, &lost), 1);
    is(lost, 0);
    is(flight_events(&flight, -1, events, FLIGHT_MOST_EVENTS, &lost), 257);
    is(events[0]->consumer, 33); /* the oldest */
    is(flight_events(&flight, -1, events, 3, &lost), 3);
}

static void fates(void)
{
    char stat[1024], *p;
    flight_fresh();
    made.header.state = FLIGHT_ENDED;
    ok(reads(sizeof(made)));
    is(flight.fate, FLIGHT_CLEAN);
    FILE *f = fopen("/proc/self/stat", "re");
    ok(f && fgets(stat, sizeof(stat), f));
    if (f)
        fclose(f);
    p = strrchr(stat, ')');
    for (int i = 2; p && i < 22; i++)
        p = strchr(p + 1, ' ');
    flight_fresh();
    made.header.pid = getpid();
    made.header.start = p ? strtoull(p + 1, NULL, 10) : 0;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    made.header.looked = t.tv_sec * SECOND + t.tv_nsec;
    made.header.mono_ns = 1;
    ok(reads(sizeof(made)));
    is(flight.fate, FLIGHT_RUNS);
    made.header.start++;
    ok(reads(sizeof(made)));
    is(flight.fate, FLIGHT_DIED);
    made.header.namespace ++;
    ok(reads(sizeof(made)));
    ok(flight.captured);
    is(flight.fate, FLIGHT_RUNS); /* it was just looking */
}

static void torn(void)
{
    const struct flight_event *events[FLIGHT_MOST_EVENTS];
    uint64_t lost;
    flight_fresh();
    flight_consumer(0, "a", "b");
    for (int i = 0; i < 10; i++)
        flight_event((struct flight_event){.kind = FLIGHT_CALL_ENDS, .time = 102 * SECOND + i, .value = i});
    made.ring[0].event[3].value ^= 1;       /* half written */
    made.ring[0].event[5].number = 0;       /* being written */
    made.ring[0].event[7].number += 256;    /* half overtaken */
    made.ring[0].event[8].generation ^= 16; /* not covered by the words before it */
    ok(reads(sizeof(made)));
    is(flight_events(&flight, 0, events, FLIGHT_MOST_EVENTS, &lost), 6);
    is(lost, 4);
    made.header.look = 1; /* for ever: it was killed in the middle of a look */
    ok(reads(sizeof(made)));
    ok(flight.torn);
}

static void snapshot(void)
{
    static struct flight_seen seen;
    struct flight_snapshot *s = &made.snapshot[1];
    flight_fresh();
    ok(reads(sizeof(made)));
    ok(!flight_seen(&flight, &seen));
    made.header.snapshot = 2;
    s->consumers = s->threads = 1;
    s->time_ms = 1700000060000;
    s->consumer[0].row = 5;
    s->consumer[0].subscribed = 77; /* no bool */
    s->consumer[0].ended_call = CALL_rd_kafka_destroy + 1;
    memset(s->consumer[0].name, 'x', sizeof(s->consumer[0].name));
    struct seen_call call = {.call = CALL_rd_kafka_commit, .age = 1234, .waiting = -1, .guard = true};
    struct seen_thread thread = {
        .tid = 99, .name = "committer", .sleep = SLEEP_MUTEX, .calls = 1, .asleep = 17};
    pack_seen_thread(&s->thread[0], &thread);
    pack_seen_call(&s->thread[0].call[0], &call);
    s->thread[0].call[0].caller = 0x1234;
    made.place[9] = (struct flight_place){0x1234, 0x34, "billing", "flush"};
    ok(reads(sizeof(made)));
    ok(flight_seen(&flight, &seen));
    is(seen.snapshot.pid, 4170);
    is(seen.snapshot.consumers, 1);
    is(seen.row[0], 5);
    ok(seen.consumer[0].subscribed);
    is(strlen(seen.consumer[0].name), 63);
    is_text(seen.consumer[0].ended_call, "rd_kafka_destroy");
    is(seen.thread[0].tid, 99);
    is(seen.thread[0].asleep, 17);
    is(seen.thread[0].call[0].age, 1234);
    is(seen.thread[0].call[0].waiting, -1);
    ok(seen.thread[0].call[0].guard);
    is_text(seen.thread[0].call[0].caller.function, "flush");
    s->sequence = 3; /* it was being written, and always will be */
    ok(reads(sizeof(made)));
    ok(flight.torn && !flight_seen(&flight, &seen));
    s->sequence = 4;
    s->threads = 65;
    ok(reads(sizeof(made)));
    ok(!flight_seen(&flight, &seen));
}

static void findings(void)
{
    const struct flight_finding *out[FLIGHT_FINDINGS];
    flight_fresh();
    for (uint64_t n = 3; n <= 10; n++) {
        struct flight_finding *f = &made.finding[(n - 1) % FLIGHT_FINDINGS];
        *f = (struct flight_finding){
            .number = n, .time = 120 * SECOND, .finding = 1, .severity = 1, .consumer = 0};
        memset(f->summary, 'y', sizeof(f->summary));
    }
    made.finding[6].number = 0;
    made.finding[7].finding = 10000;
    ok(reads(sizeof(made)));
    is(flight_findings(&flight, out), 6);
    is(out[0]->number, 3);
    is(out[5]->number, 10);
    is(strlen(out[0]->summary), sizeof(out[0]->summary) - 1);
}

static void bad(void)
{
    flight_fresh();
    ok(refused(sizeof(made) - 1, "is truncated: "));
    ok(refused(5000, "is truncated: 5000 of "));
    ok(refused(sizeof(struct flight_header) - 7, "is truncated: "));
    ok(refused(0, "is no flight file of rdgate"));
    ok(refused(7, "is no flight file of rdgate"));
    made.header.size++;
    ok(refused(sizeof(made), "is truncated"));
    flight_fresh();
    made.header.version = 99;
    ok(refused(sizeof(made), "has layout version 99, this rdgate reads version "));
    flight_fresh();
    made.header.words++;
    memcpy(made.header.shim, "9.9\n\033[2J4567890abcdef", 16);
    ok(refused(sizeof(made), "was written by librdgate 9.9"));
    flight_fresh();
    made.header.magic[0] = 'x';
    ok(refused(sizeof(made), "is no flight file of rdgate"));
    memset(&made, 0, sizeof(made));
    ok(refused(sizeof(made), "is just being made"));
    /* Not files. */
    ok(!flight_open_file(&flight, directory, why) && strstr(why, "is no file"));
    char link[160];
    snprintf(link, sizeof(link), "%s/link", directory);
    ok(symlink(path, link) == 0 && !flight_open_file(&flight, link, why) &&
       strstr(why, "is a symbolic link"));
    unlink(link);
    ok(mkfifo(link, 0600) == 0 && !flight_open_file(&flight, link, why) && strstr(why, "is no file"));
    unlink(link);
    ok(!flight_open_file(&flight, "/no/such\nfile", why) && strstr(why, "/no/such?file: No such file"));
    ok(!flight_open(&flight, "99999999999", why) && strstr(why, "is no process"));
    ok(!flight_open(&flight, "0", why) && strstr(why, "is no process"));
    char self[16];
    snprintf(self, sizeof(self), "%d", getpid());
    ok(!flight_open(&flight, self, why) && strstr(why, "has no flight file"));
    /* A number that no process has. */
    pid_t child = fork();
    if (!child)
        _exit(0);
    waitpid(child, NULL, 0);
    snprintf(self, sizeof(self), "%d", child);
    ok(!flight_open(&flight, self, why) && strstr(why, "it left no flight file behind"));
}

static void one(const char *file, void *with)
{
    if (strstr(file, "4170.81734"))
        ++*(int *)with;
}

static void places(void)
{
    int found = 0;
    char file[160];
    flight_fresh();
    snprintf(file, sizeof(file), "%s/4170.81734", directory);
    ok(flight_write(file, sizeof(made)));
    setenv("RDGATE_FLIGHT", directory, 1);
    ok(flight_list(one, &found) >= 1);
    is(found, 1);
    ok(flight_open(&flight, "4170", why) ||
       strstr(why, "has no flight file")); /* there may be a process 4170 */
    unlink(file);
    flight_shut(&flight);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(directory, sizeof(directory), "%.40s/flight.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(directory))
        return 1;
    snprintf(path, sizeof(path), "%s/file", directory);
    flight.fd = -1;
    unsetenv("RDGATE_FLIGHT");
    good();
    fates();
    torn();
    snapshot();
    findings();
    bad();
    places();
    flight_shut(&flight);
    unlink(path);
    rmdir(directory);
    return done();
}
