/*
 * timeline.c: from the events of a flight file to spans and marks. Events begin and end things; here they are
 * matched, per thread, with a stack. Half of them may be missing: the oldest are overwritten, polls are only
 * recorded when they mattered, and a hostile file says what it likes. So every step fits into what is there:
 * an end without a beginning begins when the thread was first seen in it, and says so (SPAN_BEFORE).
 */
#include "timeline.h"

#include <stdlib.h>
#include <string.h>

#define SANE ((int64_t)1 << 60) /* later than that is nonsense, and could overflow */

/* Something that a thread is in. */
struct frame {
    int64_t begin;   /* of the stay inside */
    int64_t waiting; /* at the gate since; 0: is not */
    int consumer, other;
    uint16_t what, other_call;
    bool callback;
    uint8_t flags;
};

struct lane {
    struct frame frame[SPAN_DEPTH];
    int frames;
    int64_t last;
    bool loan; /* its next call is one */
};

struct maker {
    struct timeline *t;
    struct lane *lane; /* of each thread */
    size_t span_room, mark_room;
    int thread_room, consumer_room, lane_room;
    int *slot; /* tid -> thread + 1 */
    size_t slots;
    struct owed {
        int64_t begin;
        int thread;
    } * owed; /* of each consumer; begin 0: nothing */
    int owed_room;
    bool failed;
};

/* Room for one more in a growing array. */
static bool room(struct maker *m, void *array, int have, int *capacity, size_t size)
{
    if (m->failed)
        return false;
    if (have < *capacity)
        return true;
    int more = *capacity ? *capacity * 2 : 64;
    void **where = array, *bigger = reallocarray(*where, (size_t)more, size);
    if (!bigger) {
        m->failed = true;
        return false;
    }
    memset((char *)bigger + (size_t)*capacity * size, 0, (size_t)(more - *capacity) * size);
    *where = bigger;
    *capacity = more;
    return true;
}

static int thread_of(struct maker *m, int tid)
{
    if (tid <= 0)
        return -1;
    size_t at = (uint32_t)tid * 2654435761u % m->slots;
    for (; m->slot[at]; at = (at + 1) % m->slots)
        if (m->t->thread[m->slot[at] - 1].tid == tid)
            return m->slot[at] - 1;
    int n = m->t->threads;
    if (!room(m, &m->t->thread, n, &m->thread_room, sizeof(*m->t->thread)) ||
        !room(m, &m->lane, n, &m->lane_room, sizeof(*m->lane)))
        return -1;
    m->t->thread[n].tid = tid;
    m->slot[at] = n + 1;
    return m->t->threads++;
}

static int consumer_of(struct maker *m, int row, uint32_t generation)
{
    struct timeline *t = m->t;
    if (row < 0 || row >= FLIGHT_CONSUMERS)
        return -1;
    for (int i = t->consumers - 1; i >= 0 && i > t->consumers - 2 * FLIGHT_CONSUMERS; i--)
        if (t->consumer[i].row == row && t->consumer[i].generation == generation)
            return i;
    int n = t->consumers;
    if (!room(m, &t->consumer, n, &m->consumer_room, sizeof(*t->consumer)) ||
        !room(m, &m->owed, n, &m->owed_room, sizeof(*m->owed)))
        return -1;
    t->consumer[n] = (struct timeline_consumer){row, generation};
    return t->consumers++;
}

static void emit(struct maker *m, struct span s)
{
    struct timeline *t = m->t;
    if (m->failed)
        return;
    if (t->spans == m->span_room) {
        m->span_room = m->span_room ? m->span_room * 2 : 1024;
        struct span *bigger = reallocarray(t->span, m->span_room, sizeof(*bigger));
        if (!bigger) {
            m->failed = true;
            return;
        }
        t->span = bigger;
    }
    if (s.end < s.begin)
        s.end = s.begin;
    t->span[t->spans++] = s;
}

static void mark(struct maker *m, const struct flight_event *e, int thread, int consumer)
{
    struct timeline *t = m->t;
    if (m->failed)
        return;
    if (t->marks == m->mark_room) {
        m->mark_room = m->mark_room ? m->mark_room * 2 : 1024;
        struct mark *bigger = reallocarray(t->mark, m->mark_room, sizeof(*bigger));
        if (!bigger) {
            m->failed = true;
            return;
        }
        t->mark = bigger;
    }
    t->mark[t->marks++] = (struct mark){e->time, thread, consumer, e};
}

static uint8_t kind_of(const struct frame *f)
{
    if (f->callback)
        return SPAN_CALLBACK;
    switch (f->what < CALL_COUNT ? rdg_calls[f->what].class : PASS) {
    case POLL: return SPAN_POLL;
    case CLOSE:
    case DEATH: return SPAN_END;
    case GUARD:
    case BIRTH:
    case PASS: return SPAN_GUARD;
    default: return SPAN_CALL;
    }
}

static struct span span_of(const struct lane *l, int thread, int depth)
{
    const struct frame *f = &l->frame[depth];
    struct span s = {.begin = f->begin,
                     .thread = thread,
                     .consumer = f->consumer,
                     .other = f->other,
                     .what = f->what,
                     .other_call = f->other_call,
                     .kind = kind_of(f),
                     .flags = f->flags,
                     .depth = (uint8_t)depth};
    for (int i = 0; i < depth && !f->callback; i++)
        if (!l->frame[i].callback && l->frame[i].consumer == f->consumer)
            s.flags |= SPAN_NESTED;
    return s;
}

/* The innermost frame ends; flags: what to say of it besides. */
static void pop(struct maker *m, int thread, int64_t at, unsigned flags)
{
    struct lane *l = &m->lane[thread];
    int depth = l->frames - 1;
    const struct frame *f = &l->frame[depth];
    struct span s = span_of(l, thread, depth);
    s.flags |= (uint8_t)flags;
    s.end = at;
    if (f->waiting) {
        s.kind = SPAN_WAIT;
        s.begin = f->waiting;
    }
    emit(m, s);
    l->frames = depth;
    if (at > l->last)
        l->last = at;
}

static int calls_in(const struct lane *l)
{
    int n = 0;
    for (int i = 0; i < l->frames; i++)
        n += !l->frame[i].callback;
    return n;
}

/* Ends what cannot be there any more if the thread is now `calls` calls deep. */
static void settle(struct maker *m, int thread, int calls, int64_t at)
{
    while (m->lane[thread].frames && calls_in(&m->lane[thread]) > calls)
        pop(m, thread, at, 0);
}

static struct frame *push(struct maker *m, int thread, int consumer, uint16_t what, bool callback, int64_t at,
                          unsigned flags)
{
    struct lane *l = &m->lane[thread];
    if (l->frames == SPAN_DEPTH)
        pop(m, thread, at, 0);
    struct frame *f = &l->frame[l->frames++];
    *f = (struct frame){.begin = at,
                        .consumer = consumer,
                        .other = -1,
                        .what = what,
                        .callback = callback,
                        .flags = (uint8_t)flags};
    if (!callback && l->loan) {
        f->flags |= SPAN_BORROWED;
        l->loan = false;
    }
    return f;
}

/* The frame of this call at this level; made if it is not there, as something that began earlier. */
static struct frame *in_call(struct maker *m, int thread, int consumer, const struct flight_event *e)
{
    struct lane *l = &m->lane[thread];
    settle(m, thread, e->level + 1, e->time);
    if (calls_in(l) == e->level + 1) {
        while (l->frames && l->frame[l->frames - 1].callback)
            pop(m, thread, e->time, 0);
        if (l->frames && l->frame[l->frames - 1].what == e->call)
            return &l->frame[l->frames - 1];
        settle(m, thread, e->level, e->time);
    }
    return push(m, thread, consumer, e->call, false, e->time, SPAN_BEFORE);
}

static void wait_ends(struct maker *m, int thread, int consumer, const struct flight_event *e)
{
    struct frame *f = in_call(m, thread, consumer, e);
    int64_t began = f->waiting ? f->waiting : e->time - (e->value > 0 && e->value < e->time ? e->value : 0);
    bool known = f->waiting || e->value > 0;
    struct lane *l = &m->lane[thread];
    if (began < l->last) /* it cannot have been elsewhere meanwhile */
        began = l->last;
    struct span s = span_of(l, thread, l->frames - 1);
    if (known)
        s.flags &= (uint8_t)~SPAN_BEFORE;
    if (e->flags & (FLIGHT_REFUSED | FLIGHT_TIMED_OUT))
        s.flags |= SPAN_REFUSED;
    s.kind = SPAN_WAIT;
    s.begin = began;
    s.end = e->time;
    emit(m, s);
    f->waiting = 0;
    f->begin = e->time;
    f->flags &= (uint8_t)~SPAN_BEFORE;
    if (e->flags & (FLIGHT_REFUSED | FLIGHT_TIMED_OUT))
        f->flags |= SPAN_REFUSED;
}

static void answered(struct maker *m, int consumer, int64_t at, unsigned flags)
{
    struct owed *o = consumer >= 0 ? &m->owed[consumer] : NULL;
    if (!o || !o->begin)
        return;
    emit(m, (struct span){.begin = o->begin,
                          .end = at,
                          .thread = -1,
                          .other = -1,
                          .consumer = consumer,
                          .kind = SPAN_OWED,
                          .flags = (uint8_t)flags});
    o->begin = 0;
}

static void take(struct maker *m, const struct flight_event *e)
{
    int thread = thread_of(m, e->tid), consumer = consumer_of(m, e->consumer, e->generation);
    int other = thread_of(m, e->other); /* before lanes are pointed to: it may move them */
    if (m->failed || consumer < 0)
        return;
    if (e->kind == FLIGHT_FINDING || thread < 0) { /* the watchdog is no thread of the application */
        if (e->kind == FLIGHT_FINDING)
            mark(m, e, thread, consumer);
        return;
    }
    struct lane *l = &m->lane[thread];
    struct frame *f;
    switch (e->kind) {
    case FLIGHT_CALL_BEGINS:
        settle(m, thread, e->level, e->time);
        push(m, thread, consumer, e->call, false, e->time, 0);
        break;
    case FLIGHT_CALL_ENDS:
    case FLIGHT_POLL:
        in_call(m, thread, consumer, e);
        pop(m, thread, e->time, e->flags & (FLIGHT_REFUSED | FLIGHT_TIMED_OUT) ? SPAN_REFUSED : 0);
        if (e->kind == FLIGHT_POLL && e->flags & (FLIGHT_FAILED | FLIGHT_CUT_SHORT))
            mark(m, e, thread, consumer);
        break;
    case FLIGHT_WAIT_BEGINS:
        f = in_call(m, thread, consumer, e);
        f->waiting = e->time;
        f->other = other;
        f->other_call = e->other_call;
        break;
    case FLIGHT_WAIT_ENDS: wait_ends(m, thread, consumer, e); break;
    case FLIGHT_CALLBACK_BEGINS:
        in_call(m, thread, consumer, e);
        push(m, thread, consumer, e->callback ? e->callback - 1 : 0, true, e->time, 0);
        break;
    case FLIGHT_CALLBACK_ENDS:
        settle(m, thread, e->level + 1, e->time);
        if (l->frames && l->frame[l->frames - 1].callback) {
            pop(m, thread, e->time, 0);
        } else {
            in_call(m, thread, consumer, e);
            push(m, thread, consumer, e->callback ? e->callback - 1 : 0, true, e->time, SPAN_BEFORE);
            pop(m, thread, e->time, 0);
        }
        break;
    case FLIGHT_LOAN:
        f = l->frames ? &l->frame[l->frames - 1] : NULL;
        if (f && !f->callback && f->what == e->call)
            f->flags |= SPAN_BORROWED;
        else
            l->loan = true;
        break;
    case FLIGHT_PREEMPTS: /* so the other one was inside */
        if (other >= 0 && other != thread && !m->lane[other].frames) {
            push(m, other, consumer, e->other_call, false, e->time, SPAN_BEFORE);
            m->lane[other].last = e->time;
        }
        mark(m, e, thread, consumer);
        break;
    case FLIGHT_REBALANCE:
        answered(m, consumer, e->time, 0);
        m->owed[consumer] = (struct owed){e->time, thread};
        mark(m, e, thread, consumer);
        break;
    case FLIGHT_ANSWER:
        answered(m, consumer, e->time, 0);
        mark(m, e, thread, consumer);
        break;
    case FLIGHT_ABANDONED:
        settle(m, thread, e->level, e->time);
        mark(m, e, thread, consumer);
        break;
    case FLIGHT_DESTROYED:
        answered(m, consumer, e->time, 0);
        mark(m, e, thread, consumer);
        break;
    case FLIGHT_BORN:
    case FLIGHT_COLLISION:
    case FLIGHT_CLOSED: mark(m, e, thread, consumer); break;
    default: return;
    }
    m->lane[thread].last = e->time;
}

/* What the watchdog says is exact to a look, and may be nonsense: no earlier than what the events say. */
static int64_t within(int64_t time, int64_t from, int64_t to)
{
    return time < from ? from : time > to ? to : time;
}

/* What the watchdog saw last of a thread, if the events do not say the same already. */
static void take_thread(struct maker *m, const struct flight_thread *w, int64_t looked)
{
    int thread = thread_of(m, w->tid), waits_for = thread_of(m, w->waits_for);
    if (m->failed || thread < 0)
        return;
    memcpy(m->t->thread[thread].name, w->name, sizeof(w->name));
    m->t->thread[thread].name[sizeof(w->name) - 1] = 0;
    struct lane *l = m->lane ? &m->lane[thread] : NULL;
    if (!l || l->last > looked)
        return;
    int consumer = consumer_of(m, w->consumer, w->generation);
    int calls = w->calls < FLIGHT_NEST ? w->calls : FLIGHT_NEST;
    for (int i = 0; i < calls && consumer >= 0; i++) {
        bool innermost = i == calls - 1;
        if (calls_in(l) <= i)
            push(m, thread, consumer, w->nest[i].call, false, within(w->since, l->last, looked),
                 innermost ? 0 : SPAN_BEFORE);
        struct frame *f = l->frames ? &l->frame[l->frames - 1] : NULL;
        if (!innermost || !f)
            continue;
        if (!f->callback && w->state == SEEN_WAITING && !f->waiting) {
            f->waiting = within(w->waiting_since, f->begin, looked);
            f->other = waits_for;
        }
        if (w->nest[i].callback && !f->callback)
            push(m, thread, consumer, w->nest[i].callback - 1, true,
                 within(w->callback_since, f->begin, looked), 0);
    }
}

static int by_time(const void *a, const void *b)
{
    const struct flight_event *x = *(const struct flight_event *const *)a,
                              *y = *(const struct flight_event *const *)b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->consumer % FLIGHT_RINGS != y->consumer % FLIGHT_RINGS)
        return x->consumer % FLIGHT_RINGS < y->consumer % FLIGHT_RINGS ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static int by_begin(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->depth < y->depth ? -1 : x->depth > y->depth;
}

bool timeline_make(struct timeline *t, const struct flight_event *const *events, size_t count,
                   const struct flight_thread *threads, size_t thread_count, int64_t looked, int64_t end)
{
    *t = (struct timeline){0};
    struct maker m = {.t = t, .slots = 4 * (count + thread_count) + 16};
    const struct flight_event **order = reallocarray(NULL, count + 1, sizeof(const struct flight_event *));
    m.slot = calloc(m.slots, sizeof(*m.slot));
    m.failed = !order || !m.slot;
    size_t n = 0;
    for (size_t i = 0; i < count && !m.failed; i++)
        if (events[i]->time > 0 && events[i]->time < SANE && events[i]->kind < FLIGHT_KINDS)
            order[n++] = events[i];
    if (!m.failed)
        qsort(order, n, sizeof(const struct flight_event *), by_time);
    for (size_t i = 0; i < n && !m.failed; i++)
        take(&m, order[i]);
    if (looked < 0 || looked >= SANE)
        looked = 0;
    if (end <= 0 || end >= SANE)
        end = looked;
    if (n && order[n - 1]->time > end)
        end = order[n - 1]->time;
    if (looked > end)
        looked = end;
    for (size_t i = 0; i < thread_count && threads && looked && !m.failed; i++)
        take_thread(&m, &threads[i], looked);
    for (int i = 0; i < t->threads && m.lane && !m.failed; i++)
        while (m.lane[i].frames && !m.failed)
            pop(&m, i, end, SPAN_OPEN);
    for (int i = 0; i < t->consumers; i++)
        answered(&m, i, end, SPAN_OPEN);
    if (t->spans)
        qsort(t->span, t->spans, sizeof(*t->span), by_begin);
    t->end = end;
    t->begin = n && order ? order[0]->time : end;
    if (t->spans && t->span[0].begin < t->begin)
        t->begin = t->span[0].begin;
    free(order);
    free(m.slot);
    free(m.lane);
    free(m.owed);
    if (m.failed)
        timeline_free(t);
    return !m.failed;
}

void timeline_free(struct timeline *t)
{
    free(t->span);
    free(t->mark);
    free(t->thread);
    free(t->consumer);
    *t = (struct timeline){0};
}
