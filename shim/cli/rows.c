/*
 * rows.c: rows for rdgate top, from flight files (rows.h). Names from outside are cleaned here, once.
 */
#include "rows.h"
#include "clean.h"
#include "event.h"
#include "../verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

const char *life_name(uint32_t life)
{
    static const char *const names[] = {"open", "closing", "closing", "closed", "destroying", "gone"};
    return life <= GONE ? names[life] : "?";
}

static int64_t since(const struct flight *f, int64_t time)
{
    return time <= 0 ? -1 : f->now > time ? f->now - time : 0;
}

/* Rows whose consumer is in a proven loop. */
static void find_deadlocked(const struct flight *f, bool dead[FLIGHT_CONSUMERS])
{
    struct flight_seen *seen = malloc(sizeof(*seen));
    struct verdict verdict[16];
    struct limits limits = {f->file->header.stuck_ms > 0 ? f->file->header.stuck_ms : 10000};
    memset(dead, 0, FLIGHT_CONSUMERS);
    if (seen && flight_seen(f, seen) && seen->deadlock >= 2) {
        int n = verdicts(&seen->snapshot, &limits, verdict, 16);
        for (int i = 0; i < n; i++) {
            const struct verdict *v = &verdict[i];
            if (v->finding != DEADLOCK)
                continue;
            for (int k = -1; k < v->edges; k++) {
                const struct edge *e = k < 0 ? NULL : edge_at(&seen->snapshot, v->edge[k]);
                int c = k < 0 ? v->consumer : e ? e->consumer : -1;
                if (c >= 0 && c < FLIGHT_SEEN_CONSUMERS && seen->row[c] >= 0)
                    dead[seen->row[c]] = true;
            }
        }
    }
    free(seen);
}

static double trouble_of(const struct row *r)
{
    double t = 0;
    if (r->flags & ROW_DEADLOCK)
        t += 10000;
    if (r->flags & ROW_POLL)
        t += r->gap >= r->limit ? 3000 : 800;
    if (r->flags & ROW_HELD)
        t += 2000;
    if (r->flags & ROW_REBALANCE)
        t += 1000;
    if (r->waiting)
        t += 100 + (r->waiting < 100 ? r->waiting : 100) + (r->waits > 0 ? (double)r->waits / 1e9 : 0);
    if (r->limit > 0 && r->gap > 0)
        t += 50.0 * (double)r->gap / (double)r->limit;
    if (r->flags & ROW_CLOSING)
        t += 20;
    return t;
}

static struct row *another(struct rows *r)
{
    if (r->count == r->room) {
        int room = r->room ? r->room * 2 : 64;
        struct row *bigger = reallocarray(r->row, (size_t)room, sizeof(*bigger));
        if (!bigger) {
            r->failed = true;
            return NULL;
        }
        r->row = bigger;
        r->room = room;
    }
    return memset(&r->row[r->count++], 0, sizeof(*r->row));
}

static void fill(struct row *r, const struct flight *f, const struct flight_consumer *c, bool ascii)
{
    const struct flight_header *h = &f->file->header;
    const struct flight_now *n = &c->now;
    int64_t stuck = h->stuck_ms > 0 && h->stuck_ms < 86400000 ? h->stuck_ms * 1000000 : 10000000000;
    bool polled = n->owner && rdg_calls[n->owner_call].class == POLL;
    r->pid = f->pid ? f->pid : h->pid;
    r->elsewhere = f->captured ? h->namespace : 0;
    r->start = h->start;
    clean(r->program, sizeof(r->program), h->program, ascii);
    snprintf(r->path, sizeof(r->path), "%s", f->path);
    r->gate = (int)(c - f->file->consumer) + 1;
    r->generation = c->generation;
    clean(r->name, sizeof(r->name), c->name, ascii);
    clean(r->group, sizeof(r->group), c->group, ascii);
    r->life = n->life;
    r->owner = n->owner;
    for (int i = 0; n->owner && i < FLIGHT_THREADS; i++)
        if (f->file->thread[i].tid == n->owner)
            clean(r->owner_name, sizeof(r->owner_name), f->file->thread[i].name, ascii);
    r->call = n->owner_call;
    r->callback = n->owner_callback;
    r->inside = n->inside;
    r->waiting = n->waiting;
    r->held = n->owner ? since(f, n->owner_since) : -1;
    r->waits = n->waiting ? since(f, n->waiting_since) : -1;
    r->longest = c->longest_wait_ns > r->waits ? c->longest_wait_ns : r->waits;
    r->limit = c->max_poll_ms > 0 ? c->max_poll_ms * 1000000 : -1;
    bool counts = c->flags & FLIGHT_SUBSCRIBED && n->life == OPEN;
    r->gap = counts ? since(f, n->polled) : -1;
    r->longest_gap = n->longest_gap_ns > r->gap ? n->longest_gap_ns : r->gap;
    memcpy(r->count, c->count, sizeof(r->count));
    r->calls = c->count[FLIGHT_COUNT_calls];
    r->polls = n->polls;
    memcpy(r->histogram, c->waits, sizeof(r->histogram));
    r->waited_ns = c->waited_ns;
    memcpy(r->debt, n->debt, sizeof(r->debt));
    if (c->instance < h->instances)
        clean(r->version, sizeof(r->version), h->instance[c->instance].text, true);
    r->looked = h->looked;
    r->rate = -1;
    if (r->waits >= stuck || (r->held >= stuck && (!polled || r->callback || r->waiting)))
        r->flags |= ROW_HELD;
    if (r->gap >= 0 && r->limit > 0 && r->gap >= r->limit / 10 * 8)
        r->flags |= ROW_POLL;
    if (n->unanswered)
        r->flags |= ROW_REBALANCE;
    if (n->life != OPEN)
        r->flags |= ROW_CLOSING;
    if (h->parent && c->born < h->mono_ns)
        r->flags |= ROW_FORKED;
}

static void add_process(struct rows *r, const struct flight *f, bool ascii)
{
    const struct flight_header *h = &f->file->header;
    struct row_process *bigger = reallocarray(r->process, (size_t)r->processes + 1, sizeof(*bigger));
    if (!bigger) {
        r->failed = true;
        return;
    }
    r->process = bigger;
    struct row_process *p = &r->process[r->processes++];
    *p = (struct row_process){.pid = f->pid ? f->pid : h->pid,
                              .elsewhere = f->captured ? h->namespace : 0,
                              .mode = h->mode,
                              .began_ms = flight_wall_ms(f, h->mono_ns),
                              .looked_ms = flight_wall_ms(f, h->looked),
                              .consumers_lost = h->consumers_lost};
    clean(p->program, sizeof(p->program), h->program, ascii);
    clean(p->shim, sizeof(p->shim), h->shim, ascii);
    memcpy(p->found, h->found, sizeof(p->found));
    for (int i = 0; i < FLIGHT_RINGS; i++)
        if (f->file->ring[i].head > FLIGHT_EVENTS)
            p->events_lost += f->file->ring[i].head - FLIGHT_EVENTS;
}

void rows_add(struct rows *r, const struct flight *f)
{
    bool dead[FLIGHT_CONSUMERS], ascii = !speaks_utf8();
    find_deadlocked(f, dead);
    add_process(r, f, ascii);
    for (int i = 0; i < FLIGHT_CONSUMERS; i++) {
        const struct flight_consumer *c = &f->file->consumer[i];
        struct row *row = c->state == FLIGHT_OPEN ? another(r) : NULL;
        if (!row)
            continue;
        fill(row, f, c, ascii);
        if (dead[i])
            row->flags |= ROW_DEADLOCK;
        row->trouble = trouble_of(row);
    }
}

static void add_file(const char *path, void *with)
{
    struct rows *r = with;
    struct flight f;
    char why[FLIGHT_WHY];
    if (!flight_open_file(&f, path, why)) {
        if (!r->unreadable++)
            snprintf(r->why, sizeof(r->why), "%s", why);
        return;
    }
    if (f.fate == FLIGHT_RUNS || f.fate == FLIGHT_ASLEEP)
        rows_add(r, &f);
    flight_shut(&f);
}

void rows_add_all(struct rows *r)
{
    flight_list(add_file, r);
}

static bool same(const struct row *a, const struct row *b)
{
    return a->pid == b->pid && a->gate == b->gate && a->generation == b->generation && a->start == b->start;
}

static int by_identity(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->gate < y->gate ? -1 : x->gate > y->gate;
}

void rows_rate(struct rows *r, const struct rows *before)
{
    if (r->count)
        qsort(r->row, (size_t)r->count, sizeof(*r->row), by_identity);
    for (int i = 0, k = 0; i < r->count; i++) {
        struct row *now = &r->row[i];
        while (k < before->count && by_identity(&before->row[k], now) < 0)
            k++;
        if (k >= before->count || !same(&before->row[k], now))
            continue;
        const struct row *then = &before->row[k];
        double seconds = (double)(now->looked - then->looked) / 1e9;
        if (seconds <= 0)
            now->rate = then->rate; /* the watchdog has not looked since */
        else if (now->calls >= then->calls && now->polls >= then->polls)
            now->rate = (double)(now->calls - then->calls + now->polls - then->polls) / seconds;
    }
}

static int by_name(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int names = strcmp(x->name, y->name);
    return names ? names : by_identity(a, b);
}

static int by_trouble(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->trouble != y->trouble)
        return x->trouble > y->trouble ? -1 : 1;
    return by_identity(a, b);
}

static int by_rate(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->rate != y->rate)
        return x->rate > y->rate ? -1 : 1;
    return by_identity(a, b);
}

void rows_sort(struct rows *r, enum row_order order)
{
    static int (*const by[])(const void *, const void *) = {by_trouble, by_name, by_rate};
    if (r->count)
        qsort(r->row, (size_t)r->count, sizeof(*r->row), by[order]);
}

void rows_free(struct rows *r)
{
    free(r->row);
    free(r->process);
    *r = (struct rows){0};
}

/* ------------------------------------------------------------------ the table */

#define CELL 160

static void flags_cell(const struct row *r, char *to)
{
    for (int i = 0; ROW_FLAGS[i]; i++)
        to[i] = r->flags & 1u << i ? ROW_FLAGS[i] : '-';
    to[strlen(ROW_FLAGS)] = 0;
}

static void call_cell(const struct row *r, char *to)
{
    const char *name = rdg_calls[r->call].name;
    if (!r->owner)
        name = "-";
    else if (strncmp(name, "rd_kafka_", 9) == 0)
        name += 9;
    snprintf(to, CELL, "%s%s%s", name, r->owner && r->callback ? " > " : "",
             r->owner && r->callback ? callback_name(r->callback - 1) : "");
}

static void rate_cell(const struct row *r, char *to)
{
    if (r->rate < 0)
        snprintf(to, CELL, "-");
    else if (r->rate >= 99500)
        snprintf(to, CELL, "%.0fk", r->rate / 1000);
    else
        snprintf(to, CELL, r->rate > 0 && r->rate < 9.95 ? "%.1f" : "%.0f", r->rate);
}

static void gap_cell(const struct row *r, char *to)
{
    char limit[32];
    duration_words(to, CELL, r->gap);
    duration_words(limit, sizeof(limit), r->limit % 60000000000 == 0 && r->limit > 0 ? -1 : r->limit);
    size_t n = strlen(to);
    if (r->gap < 0 || r->limit < 0)
        return;
    if (r->limit % 60000000000 == 0)
        snprintf(limit, sizeof(limit), "%lldm", (long long)(r->limit / 60000000000));
    snprintf(to + n, CELL - n, "/%s", limit);
}

static void cell(const struct row *r, int column, char *to)
{
    switch (column) {
    case 0: snprintf(to, CELL, "%d", r->pid); break;
    case 1: snprintf(to, CELL, "%s", r->program); break;
    case 2: snprintf(to, CELL, "G%d", r->gate); break;
    case 3: snprintf(to, CELL, "%s", r->name); break;
    case 4: snprintf(to, CELL, "%s", r->group); break;
    case 5: flags_cell(r, to); break;
    case 6:
        if (r->owner)
            snprintf(to, CELL, "%s%s%d", r->owner_name, *r->owner_name ? "/" : "", r->owner);
        else
            snprintf(to, CELL, "-");
        break;
    case 7: call_cell(r, to); break;
    case 8: duration_words(to, CELL, r->held); break;
    case 9: snprintf(to, CELL, "%u", r->waiting); break;
    case 10: duration_words(to, CELL, r->longest > 0 ? r->longest : -1); break;
    case 11: gap_cell(r, to); break;
    default: rate_cell(r, to);
    }
}

/* goes: the higher the sooner, where there is little room. least: may be cut down to that. */
static const struct column {
    const char *title;
    bool right;
    int goes, least;
} columns[COLUMNS] = {
    {"pid", true, 6, 0},     {"program", false, 10, 6}, {"gate", false, 8, 0},   {"consumer", false, 0, 14},
    {"group", false, 12, 8}, {"flags", false, 0, 0},    {"owner", false, 4, 12}, {"in call", false, 3, 14},
    {"held", true, 2, 0},    {"waiting", true, 1, 0},   {"longest", true, 7, 0}, {"poll gap", true, 5, 0},
    {"calls/s", true, 9, 0},
};

static int width_of(const char *s)
{
    wchar_t wide[CELL];
    size_t n = mbstowcs(wide, s, CELL);
    int w = n == (size_t)-1 || n >= CELL ? -1 : wcswidth(wide, n);
    return w < 0 ? (int)strlen(s) : w;
}

void table_fit(struct table *t, const struct rows *r, int wide)
{
    static const int shrink[] = {3, 4, 1, 6, 7, 3}; /* the first first; the name not too far */
    int natural[COLUMNS], width[COLUMNS];
    char text[CELL];
    for (int c = 0; c < COLUMNS; c++) {
        natural[c] = (int)strlen(columns[c].title);
        for (int i = 0; i < r->count; i++) {
            cell(&r->row[i], c, text);
            int w = width_of(text);
            if (w > natural[c])
                natural[c] = w;
        }
    }
    /* One column less each time, until the others fit, some of them made narrower. */
    int stays = COLUMNS, excess;
    do {
        excess = -2 - (wide ? wide : INT_MAX / 2);
        for (int c = 0; c < COLUMNS; c++) {
            width[c] = columns[c].goes > stays || (c < 2 && r->processes < 2) ? 0 : natural[c];
            excess += width[c] ? width[c] + 2 : 0;
        }
        for (int i = 0; i < 6 && excess > 0; i++) {
            int *w = &width[shrink[i]], least = i ? columns[shrink[i]].least : 24;
            int cut = *w - least < excess ? *w - least : excess;
            if (cut > 0) {
                *w -= cut;
                excess -= cut;
            }
        }
    } while (excess > 0 && stays-- > 0);
    if (excess > 0) /* a very small terminal */
        width[3] = width[3] > excess ? width[3] - excess : 1;
    t->columns = 0;
    for (int c = 0; c < COLUMNS; c++)
        if (width[c]) {
            t->column[t->columns] = c;
            t->width[t->columns++] = width[c];
        }
}

/* Appends one cell, in its width. */
static void put(char *line, size_t size, const char *text, int width, bool right, bool last)
{
    size_t used = strlen(line);
    wchar_t wide[CELL];
    size_t n = mbstowcs(wide, text, CELL);
    char cut[CELL];
    int w = width_of(text);
    snprintf(cut, sizeof(cut), "%s", text);
    if (w > width && n != (size_t)-1 && n < CELL) { /* "orders-7#consu~" */
        while (n > 0 && wcswidth(wide, n) > width - 1)
            n--;
        wide[n] = 0;
        size_t bytes = wcstombs(cut, wide, sizeof(cut) - 2);
        if (bytes == (size_t)-1)
            bytes = 0;
        snprintf(cut + bytes, sizeof(cut) - bytes, "~");
        w = width_of(cut);
    }
    int pad = width > w ? width - w : 0;
    snprintf(line + used, size - used, "%s%*s%s%*s", used ? "  " : "", right ? pad : 0, "", cut,
             right || last ? 0 : pad, "");
}

void table_head(const struct table *t, char *line, size_t size)
{
    *line = 0;
    for (int i = 0; i < t->columns; i++)
        put(line, size, columns[t->column[i]].title, t->width[i], columns[t->column[i]].right,
            i == t->columns - 1);
}

void table_row(const struct table *t, const struct row *row, char *line, size_t size)
{
    char text[CELL];
    *line = 0;
    for (int i = 0; i < t->columns; i++) {
        cell(row, t->column[i], text);
        put(line, size, text, t->width[i], columns[t->column[i]].right, i == t->columns - 1);
    }
}

void table_legend(const struct rows *r, char *line, size_t size)
{
    static const char *const means[] = {"H held too long",     "D in a deadlock",
                                        "P poll is due",       "R rebalance unanswered",
                                        "C closing or closed", "F inherited by fork"};
    unsigned flags = 0;
    for (int i = 0; i < r->count; i++)
        flags |= r->row[i].flags;
    *line = 0;
    for (int i = 0; ROW_FLAGS[i]; i++)
        if (flags & 1u << i) {
            size_t used = strlen(line);
            snprintf(line + used, size - used, "%s%s", used ? "   " : "", means[i]);
        }
}

/* Nanoseconds as seconds; nothing if not known. */
static void tsv_seconds(int64_t ns)
{
    if (ns < 0)
        putchar('\t');
    else
        printf("\t%.6f", (double)ns / 1e9);
}

void rows_tsv(const struct rows *r)
{
    fputs("pid\tprogram\tgate\tconsumer\tgroup\tflags\tlife\towner\towner_name\tcall\tcallback\theld_"
          "seconds\twaiting\t"
          "waiting_seconds\tlongest_wait_seconds\tpoll_gap_seconds\tpoll_limit_seconds\tpolls",
          stdout);
#define X(name) fputs("\t" #name, stdout);
    FLIGHT_COUNTERS(X)
#undef X
    putchar('\n');
    for (int i = 0; i < r->count; i++) {
        const struct row *o = &r->row[i];
        char flags[16];
        flags_cell(o, flags);
        printf("%d\t%s\tG%d\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s", o->pid, o->program, o->gate, o->name, o->group,
               flags, life_name(o->life), o->owner, o->owner_name, o->owner ? rdg_calls[o->call].name : "",
               o->owner && o->callback ? callback_name(o->callback - 1) : "");
        tsv_seconds(o->held);
        printf("\t%u", o->waiting);
        tsv_seconds(o->waits);
        tsv_seconds(o->longest);
        tsv_seconds(o->gap);
        tsv_seconds(o->limit);
        printf("\t%" PRIu64, o->polls);
        for (int k = 0; k < FLIGHT_COUNTS; k++)
            printf("\t%" PRIu64, o->count[k]);
        putchar('\n');
    }
}
