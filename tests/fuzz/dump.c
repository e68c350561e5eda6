/* sources: cli/flight.c cli/dump.c cli/event.c cli/clean.c cli/stacks.c */
/* sources: call.c verdict.c report.c page.c options.c say.c */
/*
 * dump FILE SECONDS: spoils a good flight file in every way that comes to mind and has the command read it,
 * over and over, under the sanitizers (Makefile, fuzz). What it prints does not matter; that it neither
 * crashes nor hangs does. The seed is printed, and taken from SEED if that is set.
 */
#include "cli/cli.h"
#include "cli/flight.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static uint64_t state;
static struct flight_file good, bad;

static uint64_t any(uint64_t below)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return below ? state % below : state;
}

/* Numbers that programmers forget. */
static uint64_t nasty(void)
{
    static const uint64_t numbers[] = {0,          1,          2,          127,        128,
                                       255,        256,        32767,      32768,      65535,
                                       65536,      0x7fffffff, 0x80000000, 0xffffffff, 1ull << 52,
                                       1ull << 60, 1ull << 62, INT64_MAX,  1ull << 63, UINT64_MAX};
    return any(3) ? numbers[any(sizeof(numbers) / sizeof(*numbers))] : any(0);
}

/* Sums that fit, so that what is in events is looked at, too. */
static void sum_up(void)
{
    for (int i = 0; i < FLIGHT_RINGS; i++)
        for (int k = 0; k < FLIGHT_EVENTS; k++) {
            struct flight_event *e = &bad.ring[i].event[k];
            uint64_t words[8];
            memcpy(words, e, sizeof(words));
            e->sum = flight_sum(words);
        }
}

/* Where something is: most of the file is empty events. */
static size_t somewhere(void)
{
    switch (any(8)) {
    case 0: return any(sizeof(bad.header));
    case 1: return offsetof(struct flight_file, consumer) + any(2 * sizeof(bad.consumer[0]));
    case 2: return offsetof(struct flight_file, thread) + any(3 * sizeof(bad.thread[0]));
    case 3: return offsetof(struct flight_file, finding) + any(2 * sizeof(bad.finding[0]));
    case 4:
    case 5: return offsetof(struct flight_file, snapshot) + any(2 * sizeof(bad.snapshot[0]));
    case 6: return offsetof(struct flight_file, ring) + any(64 * sizeof(bad.ring[0].event[0]));
    default: return any(sizeof(bad));
    }
}

static size_t spoil(void)
{
    memcpy(&bad, &good, sizeof(bad));
    for (uint64_t n = any(40) + 1; n; n--) {
        size_t at = somewhere(), width = (size_t)1 << any(4);
        uint64_t value = nasty();
        unsigned char *to = (unsigned char *)&bad;
        if (any(4) == 0)
            to[at] ^= (unsigned char)(1 << any(8));
        else if (any(6) == 0)
            memset(to + at, (int)any(256), any(300) < sizeof(bad) - at ? any(300) % (sizeof(bad) - at) : 0);
        else if (at / width * width + width <= sizeof(bad))
            memcpy(to + at / width * width, &value, width);
    }
    if (any(2))
        sum_up();
    if (any(8)) { /* past the gate */
        memcpy(&bad, &good, offsetof(struct flight_header, state));
        bad.header.look &= ~1u;
        bad.snapshot[0].sequence &= ~1u, bad.snapshot[1].sequence &= ~1u;
        if (any(2))
            bad.header.snapshot = (uint32_t)any(2) + 1;
    }
    return any(20) ? sizeof(bad) : any(sizeof(bad));
}

int main(int argc, char **argv)
{
    const char *seed = getenv("SEED");
    char path[] = "/tmp/rdgate-fuzz.XXXXXX";
    int in = argc == 3 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1, out = mkstemp(path);
    if (in < 0 || out < 0 || read(in, &good, sizeof(good)) != (ssize_t)sizeof(good)) {
        fprintf(stderr, "dump: no good file\n");
        return 2;
    }
    state = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + (uint64_t)getpid();
    state |= 1;
    fprintf(stderr, "seed %llu\n", (unsigned long long)state);
    /* The sanitizers write to the descriptor, not here. */
    if (!freopen("/dev/null", "w", stdout) || !(stderr = fopen("/dev/null", "we")))
        return 2;
    time_t end = time(NULL) + atoi(argv[2]);
    long runs = 0, read_well = 0;
    while (time(NULL) < end) {
        size_t size = spoil();
        char *options[] = {"--json", "--reports", "--events", "--stuck-ms"};
        uint64_t which = any(4);
        char *args[] = {"dump", path, options[which], which >= 2 ? "100" : NULL, NULL};
        if (ftruncate(out, 0) || pwrite(out, &bad, size, 0) != (ssize_t)size)
            return 2;
        alarm(20);
        int r = cli_dump(args[3] ? 4 : 3, args);
        if (r != 0 && r != EXIT_NO_FLIGHT)
            return 3;
        read_well += r == 0;
        runs++;
    }
    unlink(path);
    dprintf(STDERR_FILENO, "%ld files, %ld of them read\n", runs, read_well);
    return runs > 100 && read_well > 50 ? 0 : 4;
}
