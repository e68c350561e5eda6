/*
 * ps.c: rdgate ps. One line for every process that has a flight file, and for every one that left its file
 * behind. It changes nothing.
 */
#include "clean.h"
#include "cli.h"
#include "event.h"
#include "flight.h"
#include "../report.h"

#include <inttypes.h>
#include <jansson.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#define STUCK_MS 10000 /* unless the process has another limit */

struct ps {
    json_t *list; /* NULL: as text */
    int shown;
};

/* "ok", "stuck" or "dead"; what: of a stuck one its worst finding. */
static const char *state_of(const struct flight *f, const char **what)
{
    static struct flight_seen seen;
    struct verdict found[1];
    *what = "";
    if (f->fate == FLIGHT_DIED)
        return "dead";
    if (f->fate == FLIGHT_CLEAN)
        return "ended";
    if (!flight_seen(f, &seen))
        return "ok";
    struct limits limits = {f->file->header.stuck_ms > 0 ? f->file->header.stuck_ms : STUCK_MS};
    if (verdicts(&seen.snapshot, &limits, found, 1) < 1)
        return "ok";
    *what = report_code((int)found[0].finding);
    return "stuck";
}

static void one(const char *path, void *with)
{
    struct ps *p = with;
    struct flight f;
    char why[FLIGHT_WHY], name[128];
    const char *what;
    if (!flight_open_file(&f, path, why)) {
        if (!p->list)
            fprintf(stderr, "rdgate ps: %s\n", why);
        return;
    }
    const struct flight_header *h = &f.file->header;
    int consumers = 0;
    for (int i = 0; i < FLIGHT_CONSUMERS; i++)
        consumers += f.file->consumer[i].state == FLIGHT_OPEN;
    const char *state = state_of(&f, &what);
    if (p->list) {
        clean(name, sizeof(name), h->program, false);
        json_array_append_new(p->list,
                              json_pack("{s:i, s:s, s:i, s:s, s:s, s:I, s:I, s:s}", "pid", h->pid, "program",
                                        name, "consumers", consumers, "state", state, "stands", what,
                                        "findings", (json_int_t)h->findings, "seen_ms_ago",
                                        (json_int_t)flight_age_ms(&f, h->looked), "file", path));
    } else {
        clean(name, sizeof(name), h->program, !speaks_utf8());
        if (!p->shown)
            printf("%8s  %-20s %9s  %-6s %8s  %s\n", "PID", "PROGRAM", "CONSUMERS", "STATE", "FINDINGS",
                   "WHAT STANDS, OR FILE");
        printf("%8d  %-20.20s %9d  %-6s %8" PRIu64 "  %s\n", h->pid, name, consumers, state, h->findings,
               *what                                              ? what
               : f.fate == FLIGHT_RUNS || f.fate == FLIGHT_ASLEEP ? ""
                                                                  : path);
    }
    p->shown++;
    flight_shut(&f);
}

int cli_ps(int argc, char **argv)
{
    struct ps p = {0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            printf("usage: rdgate ps [--json]\n\n"
                   "Lists the processes that run under rdgate and have, or had, a consumer, and the dead "
                   "that left\n"
                   "their flight file behind: rdgate dump FILE reads it. State: ok; stuck, and in what; "
                   "dead, without\n"
                   "having cleaned up; ended, and kept its file. Root sees everybody's.\n\n"
                   "Exits with 0, %d for wrong usage.\n",
                   EXIT_USAGE);
            return 0;
        }
        if (strcmp(argv[i], "--json") != 0) {
            fprintf(stderr, "rdgate ps: what is %s? (rdgate ps --help)\n", argv[i]);
            return EXIT_USAGE;
        }
        if (!p.list)
            p.list = json_array();
    }
    setlocale(LC_CTYPE, "");
    flight_list(one, &p);
    if (p.list) {
        json_dumpf(p.list, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(p.list);
    }
    return 0;
}
