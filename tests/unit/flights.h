/*
 * flights.h: flight files made by hand, for the tests of what reads them.
 */
#pragma once

#include "flight_layout.h"
#include "flight_pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static struct flight_file made;

/* As it is when nothing has happened yet: of this process, which began looking 100 s ago by its clock. */
static void flight_fresh(void)
{
    struct flight_header *h = &made.header;
    struct stat s;
    memset(&made, 0, sizeof(made));
    memcpy(h->magic, FLIGHT_MAGIC, sizeof(h->magic));
    h->version = FLIGHT_VERSION;
    h->size = sizeof(made);
    h->words = flight_words();
    h->state = FLIGHT_LIVE;
    h->pid = 4170;
    h->start = 81734;
    h->namespace = stat("/proc/self/ns/pid", &s) == 0 ? s.st_ino : 0;
    h->uid = getuid();
    h->mono_ns = 100 * SECOND;
    h->wall_ns = 1700000000 * SECOND;
    h->looked = 160 * SECOND;
    h->looks = 240;
    h->stuck_ms = 10000;
    snprintf(h->program, sizeof(h->program), "billing");
    snprintf(h->shim, sizeof(h->shim), "0.1.0");
    h->instances = 1;
    h->instance[0] =
        (struct flight_instance){.version = 0x020002, .cover = FLIGHT_BY_LINKING, .text = "2.0.2"};
}

static struct flight_consumer *flight_consumer(int row, const char *name, const char *group)
{
    struct flight_consumer *c = &made.consumer[row];
    c->state = FLIGHT_OPEN;
    c->generation = 1;
    c->born = 101 * SECOND;
    snprintf(c->name, sizeof(c->name), "%s", name);
    snprintf(c->group, sizeof(c->group), "%s", group);
    c->max_poll_ms = 300000;
    if (made.header.rows <= (uint32_t)row)
        made.header.rows = (uint32_t)row + 1;
    return c;
}

/* Writes it down as the next of its ring, as flight.c would. */
static void flight_event(struct flight_event e)
{
    struct flight_ring *r = &made.ring[e.consumer % FLIGHT_RINGS];
    uint64_t words[8];
    e.number = ++r->head;
    if (!e.generation)
        e.generation = 1;
    memcpy(words, &e, sizeof(words));
    e.sum = flight_sum(words);
    r->event[(e.number - 1) % FLIGHT_EVENTS] = e;
}

static int flight_write(const char *path, size_t size)
{
    FILE *f = fopen(path, "we");
    size_t n = f ? fwrite(&made, 1, size, f) : 0;
    return f && fclose(f) == 0 && n == size;
}
