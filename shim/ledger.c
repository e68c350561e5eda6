/*
 * ledger.c: what the application owes (ledger.h). It must stay cheap, wait for nobody and change nothing of
 * what the application sees.
 *
 * THE SLOTS. One table for the process, indexed by the address of what was handed out; each thing may lie in
 * one of PROBE neighbouring slots. Writers use plain stores: two threads may take the same free slot in the
 * same instant, and then one thing is not written down. What does not fit is only counted, and as long as
 * such a thing may be out, every debt says "or more". So the table may say too little and never too much: a
 * debt that it names exists.
 */
#include "ledger.h"
#include "flight.h"
#include "handle.h"
#include "peek.h"

#include <string.h>
#include <sys/mman.h>

_Atomic int64_t rdg_tick;
struct slot *rdg_slots;
static _Atomic long lost[DEBTS];

void ledger_start(void)
{
    static _Atomic int started;
    if (atomic_exchange(&started, 1))
        return;
    atomic_store(&rdg_tick, now_ns() / 1000000);
    void *p = mmap(NULL, (SLOTS + PROBE) * sizeof(struct slot), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED)
        rdg_slots = p;
}

/* ------------------------------------------------------------------ polls */

void ledger_new_poller(struct consumer *c, const struct self *s)
{
    c->poller = s->id;
    c->poller_tid = s->tid;
    for (int i = 0; i < POLLERS; i++) {
        if (c->pollers[i] == s->id)
            return;
        if (!c->pollers[i]) {
            c->pollers[i] = s->id;
            return;
        }
    }
    c->pollers_lost = true;
}

bool ledger_has_polled(const struct consumer *c, const struct self *s)
{
    bool found = c->pollers_lost;
    for (int i = 0; i < POLLERS; i++)
        found |= c->pollers[i] == s->id;
    return found;
}

/* ------------------------------------------------------------------ things */

static void lost_one(enum debt_kind kind)
{
    atomic_fetch_add_explicit(&lost[kind], 1, memory_order_relaxed);
}

static struct slot *put(struct consumer *c, enum debt_kind kind, const void *thing, uint16_t call, int tid,
                        int64_t since)
{
    if (!rdg_slots)
        return NULL;
    struct slot *s = ledger_slots_of(thing);
    for (int i = 0; i < PROBE; i++, s++) {
        if (atomic_load_explicit(&s->thing, memory_order_relaxed))
            continue;
        atomic_store_explicit(&s->consumer, c, memory_order_relaxed);
        s->since = since;
        s->tid = tid;
        s->call = call;
        s->kind = (uint8_t)kind;
        atomic_store_explicit(&s->thing, (uintptr_t)thing, memory_order_release);
        return s;
    }
    return NULL;
}

/* What is given back and was not written down may be one of those that were lost. */
static struct consumer *unknown(enum debt_kind kind)
{
    long n = atomic_load_explicit(&lost[kind], memory_order_relaxed);
    while (n > 0 && !atomic_compare_exchange_weak_explicit(&lost[kind], &n, n - 1, memory_order_relaxed,
                                                           memory_order_relaxed))
        ;
    return NULL;
}

/* From the thread's own record to the slots. Another thread may give the message back meanwhile, or look for
 * it: it is in the slots before it leaves the record, and whoever takes it out of the record by
 * compare-and-swap has it. */
void ledger_spill(struct self *s)
{
    uintptr_t message = atomic_load(&s->held);
    if (!message)
        return;
    struct slot *written = put(atomic_load(&s->held_of), DEBT_MESSAGE, (const void *)message, s->held_call,
                               s->tid, s->held_since);
    if (!written)
        lost_one(DEBT_MESSAGE);
    if (!atomic_compare_exchange_strong(&s->held, &message, 0) && written)
        atomic_store(&written->thing, 0);
}

struct holder {
    uintptr_t thing;
    struct consumer *found;
};

static void held_by(struct self *s, void *with)
{
    struct holder *h = with;
    uintptr_t thing = h->thing;
    struct consumer *c = atomic_load(&s->held_of);
    if (!h->found && atomic_load(&s->held) == thing && atomic_compare_exchange_strong(&s->held, &thing, 0))
        h->found = c;
}

static struct consumer *out_of_slots(const void *thing)
{
    if (!rdg_slots)
        return NULL;
    struct slot *s = ledger_slots_of(thing);
    for (int i = 0; i < PROBE; i++, s++) {
        if (atomic_load_explicit(&s->thing, memory_order_acquire) != (uintptr_t)thing)
            continue;
        struct consumer *c = atomic_load_explicit(&s->consumer, memory_order_relaxed);
        atomic_store_explicit(&s->thing, 0, memory_order_release);
        return c;
    }
    return NULL;
}

struct consumer *ledger_take_back(const void *thing)
{
    struct consumer *c = thing ? out_of_slots(thing) : NULL;
    if (c || !thing)
        return c;
    struct holder h = {(uintptr_t)thing, NULL};
    self_each(held_by, &h);
    if (!h.found)
        h.found = out_of_slots(thing); /* it was on its way there */
    return h.found ? h.found : unknown(DEBT_MESSAGE);
}

struct consumer *ledger_back_other(enum debt_kind kind, const void *thing)
{
    struct consumer *c = thing ? out_of_slots(thing) : NULL;
    /* Most lists were never anything to librdkafka, so an unknown one tells nothing. */
    return c || kind == DEBT_LIST ? c : unknown(kind);
}

struct consumer *ledger_owner(const void *thing)
{
    if (!rdg_slots || !thing)
        return NULL;
    struct slot *s = ledger_slots_of(thing);
    for (int i = 0; i < PROBE; i++, s++)
        if (atomic_load_explicit(&s->thing, memory_order_acquire) == (uintptr_t)thing)
            return atomic_load_explicit(&s->consumer, memory_order_relaxed);
    return NULL;
}

void ledger_out(struct consumer *c, enum debt_kind kind, const void *thing, uint16_t call)
{
    if (!put(c, kind, thing, call, rdg_self ? rdg_self->tid : 0, atomic_load(&rdg_tick)))
        lost_one(kind);
}

void ledger_list(struct consumer *c, const void *list, uint16_t call)
{
    if (list && ledger_owner(list) != c)
        ledger_out(c, DEBT_LIST, list, call);
}

struct counting {
    struct debt *debts;
    int64_t clock;
    const struct consumer *consumer;
};

static void count(struct debt *d, uint16_t call, int tid, int64_t age)
{
    if (!d->count++ || age > d->age) {
        d->call = call;
        d->tid = tid;
        d->age = age;
    }
}

static void count_object(struct object *o, void *with)
{
    struct counting *k = with;
    if (o->dead || (o->key & 3) == HANDLE_KIND)
        return;
    struct debt *d = &k->debts[(o->key & 3) == TOPIC_KIND ? DEBT_TOPIC : DEBT_QUEUE];
    count(d, o->call, o->tid, k->clock - o->born);
}

static void count_held(struct self *s, void *with)
{
    struct counting *k = with;
    if (atomic_load(&s->held) && atomic_load(&s->held_of) == k->consumer)
        count(&k->debts[DEBT_MESSAGE], s->held_call, s->tid, k->clock - s->held_since);
}

void ledger_debts(struct consumer *c, struct debt debts[DEBTS], int64_t clock)
{
    memset(debts, 0, DEBTS * sizeof(*debts));
    struct counting k = {debts, clock, c};
    self_each(count_held, &k);
    for (int i = 0; rdg_slots && i < SLOTS + PROBE; i++) {
        const struct slot *s = &rdg_slots[i];
        if (atomic_load_explicit(&s->thing, memory_order_acquire) &&
            atomic_load_explicit(&s->consumer, memory_order_relaxed) == c && s->kind < DEBTS)
            count(&debts[s->kind], s->call, s->tid, clock - s->since);
    }
    objects_each(c, count_object, &k);
    for (int i = 0; i < DEBTS; i++) {
        if (debts[i].count)
            peek_name(debts[i].tid, debts[i].thread);
        debts[i].more = atomic_load_explicit(&lost[i], memory_order_relaxed) > 0;
    }
}

struct each_held {
    void (*f)(const struct consumer *c, enum debt_kind kind, void *with);
    void *with;
};

static void one_held(struct self *s, void *with)
{
    const struct each_held *e = with;
    if (atomic_load(&s->held))
        e->f(atomic_load(&s->held_of), DEBT_MESSAGE, e->with);
}

void ledger_each(void (*f)(const struct consumer *c, enum debt_kind kind, void *with), void *with)
{
    struct each_held e = {f, with};
    self_each(one_held, &e);
    for (int i = 0; rdg_slots && i < SLOTS + PROBE; i++) {
        const struct slot *s = &rdg_slots[i];
        if (atomic_load_explicit(&s->thing, memory_order_acquire) && s->kind < DEBTS)
            f(atomic_load_explicit(&s->consumer, memory_order_relaxed), (enum debt_kind)s->kind, with);
    }
}

static void forget_held(struct self *s, void *with)
{
    uintptr_t held = atomic_load(&s->held);
    if (held && atomic_load(&s->held_of) == with)
        atomic_compare_exchange_strong(&s->held, &held, 0);
}

void ledger_close(struct consumer *c)
{
    self_each(forget_held, c);
    for (int i = 0; rdg_slots && i < SLOTS + PROBE; i++) {
        struct slot *s = &rdg_slots[i];
        if (atomic_load_explicit(&s->thing, memory_order_relaxed) &&
            atomic_load_explicit(&s->consumer, memory_order_relaxed) == c)
            atomic_store_explicit(&s->thing, 0, memory_order_relaxed);
    }
}

/* ------------------------------------------------------------------ rebalances */

static int my_tid(void)
{
    return rdg_self ? rdg_self->tid : 0;
}

void ledger_rebalance(struct consumer *c, int code, int partitions, const void *event)
{
    struct rebalance *r = &c->rebalance;
    r->code = code;
    r->partitions = partitions;
    r->event = event;
    r->returned = r->answered = r->noted = false;
    r->tid = my_tid();
    r->at = now_ns() / 1000000;
    peek_name(r->tid, r->thread);
    atomic_fetch_add(&r->number, 1);
    flight_rebalance(c, code, partitions, event != NULL);
}

void ledger_rebalance_returned(struct consumer *c, const void *event)
{
    struct rebalance *r = &c->rebalance;
    if (r->event == event)
        r->returned = true;
}

void ledger_answer(struct consumer *c, uint16_t call, int partitions, int code)
{
    struct rebalance *r = &c->rebalance;
    if (!r->code)
        return;
    r->answer = call;
    r->answer_list = partitions;
    r->answer_code = code;
    r->answer_tid = my_tid();
    r->answer_at = now_ns() / 1000000;
    peek_name(r->answer_tid, r->answer_thread);
    r->answered = true;
    flight_answer(c, call, partitions, code);
}

bool ledger_rebalance_seen(const struct consumer *c, struct seen_rebalance *s, int64_t clock)
{
    const struct rebalance *r = &c->rebalance;
    memset(s, 0, sizeof(*s));
    if (!r->code)
        return false;
    s->code = r->code;
    s->partitions = r->partitions;
    s->by_event = r->event != NULL;
    s->returned = r->returned;
    s->tid = r->tid;
    memcpy(s->thread, r->thread, sizeof(s->thread));
    s->age = clock - r->at;
    s->answered = r->answered && !atomic_load(&c->unanswered);
    s->answer = r->answer;
    s->answer_list = r->answer_list;
    s->answer_code = r->answer_code;
    s->answer_tid = r->answer_tid;
    memcpy(s->answer_thread, r->answer_thread, sizeof(s->answer_thread));
    s->answer_age = r->answered ? clock - r->answer_at : -1;
    return true;
}
