/*
 * handle.c: rd_kafka_t*, queue and topic addresses to consumer records. Records and objects are never
 * unmapped, so a reader may follow a pointer that has just been given to somebody else; each bucket has a
 * sequence number, and a reader that saw it change looks again.
 */
#include "handle.h"
#include "ledger.h"
#include "shim.h"

#include <string.h>
#include <sys/mman.h>

#define OLD_OBJECT 1024 /* tombstones of queues and topics kept */
#define OLD_HANDLE 256  /* tombstones of handles kept */

struct bucket rdg_buckets[BUCKETS];

static struct lock registry;
static struct object *free_objects;
static struct consumer *free_consumers;
static struct consumer *all; /* every record ever made, by ->made_before */
static struct object *oldest_object, *youngest_object;
static int dead_objects;
static struct consumer *oldest_dead, *youngest_dead;
static int dead_handles;

/* Not to find it is only believed if the bucket stood still meanwhile. */
struct object *object_search(uintptr_t key)
{
    struct bucket *b = bucket_of(key);
    for (;;) {
        uint32_t before = atomic_load_explicit(&b->sequence, memory_order_acquire);
        struct object *o = atomic_load_explicit(&b->first, memory_order_acquire);
        for (int i = 0; o && i < 1000; i++) {
            if (atomic_load_explicit(&o->key, memory_order_relaxed) == key)
                break;
            o = atomic_load_explicit(&o->next, memory_order_acquire);
        }
        if (o && atomic_load_explicit(&o->key, memory_order_relaxed) != key)
            o = NULL;
        atomic_thread_fence(memory_order_acquire);
        if (!(before & 1) && atomic_load_explicit(&b->sequence, memory_order_relaxed) == before)
            return o;
    }
}

/* With the registry lock from here on. */

static void *fresh(size_t size, size_t *count)
{
    size_t bytes = 64 * 1024;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *count = bytes / size;
    return p == MAP_FAILED ? NULL : p;
}

static void change_begins(struct bucket *b)
{
    atomic_fetch_add_explicit(&b->sequence, 1, memory_order_acq_rel);
    atomic_thread_fence(memory_order_seq_cst);
}

static void change_ends(struct bucket *b)
{
    atomic_fetch_add_explicit(&b->sequence, 1, memory_order_release);
}

static void unlink_object(struct object *o)
{
    struct bucket *b = bucket_of(o->key);
    change_begins(b);
    _Atomic(struct object *) *at = &b->first;
    while (*at && *at != o)
        at = &(*at)->next;
    if (*at)
        *at = o->next;
    o->key = 0;
    change_ends(b);
}

static void forget_object(struct object *o)
{
    unlink_object(o);
    struct consumer *c = o->consumer;
    for (struct object **at = &c->objects; *at; at = &(*at)->sibling) {
        if (*at == o) {
            *at = o->sibling;
            break;
        }
    }
    o->younger = free_objects;
    free_objects = o;
}

static void drop_tombstone(struct object *o)
{
    if (!o->dead || o->key == 0)
        return;
    struct object **at = &oldest_object, *before = NULL;
    while (*at && *at != o) {
        before = *at;
        at = &(*at)->younger;
    }
    if (*at) {
        *at = o->younger;
        if (youngest_object == o)
            youngest_object = before;
        dead_objects--;
    }
    forget_object(o);
}

static struct object *by_key(uintptr_t key)
{
    for (struct object *o = bucket_of(key)->first; o; o = o->next)
        if (o->key == key)
            return o;
    return NULL;
}

static void bury_object(struct object *o)
{
    if (o->dead)
        return;
    o->dead = true;
    o->younger = NULL;
    if (youngest_object)
        youngest_object->younger = o;
    else
        oldest_object = o;
    youngest_object = o;
    if (++dead_objects > OLD_OBJECT)
        drop_tombstone(oldest_object);
}

static struct object *add(struct consumer *c, enum kind kind, const void *address, enum role role)
{
    uintptr_t key = (uintptr_t)address | kind;
    struct object *o = by_key(key);
    if (o) {
        /* The address lives again, or (a topic) is handed out once more. */
        if (!o->dead && o->consumer == c && kind == TOPIC_KIND) {
            o->references++;
            return o;
        }
        if (o->dead)
            drop_tombstone(o);
        else
            forget_object(o); /* freed behind our back */
    }
    if (!free_objects) {
        size_t n;
        struct object *more = fresh(sizeof(*more), &n);
        for (size_t i = 0; more && i < n; i++) {
            more[i].younger = free_objects;
            free_objects = &more[i];
        }
    }
    o = free_objects;
    if (!o)
        return NULL;
    free_objects = o->younger;
    struct bucket *b = bucket_of(key);
    change_begins(b);
    o->consumer = c;
    o->role = (uint8_t)role;
    o->carries = kind == QUEUE_KIND && (role == CONSUMER_QUEUE || role == PARTITION_QUEUE);
    o->dead = false;
    o->references = 1;
    o->inside = 0;
    o->partition = 0;
    o->younger = NULL;
    o->key = key;
    o->next = b->first;
    b->first = o;
    change_ends(b);
    o->sibling = c->objects;
    c->objects = o;
    return o;
}

static void free_consumer(struct consumer *c)
{
    while (c->objects) {
        struct object *o = c->objects;
        if (o->dead)
            drop_tombstone(o);
        else
            forget_object(o);
    }
    c->rk = NULL;
    c->expected = false;
    c->next_free = free_consumers;
    free_consumers = c;
}

static struct consumer *new_consumer(const struct library *lib)
{
    if (!free_consumers) {
        size_t n;
        struct consumer *more = fresh(sizeof(*more), &n);
        for (size_t i = 0; more && i < n; i++) {
            more[i].next_free = free_consumers;
            free_consumers = &more[i];
            more[i].made_before = all;
            all = &more[i];
        }
    }
    struct consumer *c = free_consumers;
    if (!c)
        return NULL;
    free_consumers = c->next_free;
    gate_reset(c);
    c->lib = lib;
    return c;
}

struct consumer *handle_expected(const struct library *lib)
{
    lock_take(&registry);
    struct consumer *c = new_consumer(lib);
    if (c)
        c->expected = true;
    lock_drop(&registry);
    return c;
}

static void oldest_goes(void)
{
    struct consumer *old = oldest_dead;
    if (!old || !gate_is_idle(old))
        return;
    oldest_dead = old->younger;
    if (!oldest_dead)
        youngest_dead = NULL;
    dead_handles--;
    free_consumer(old);
}

void handle_arrived(struct consumer *c, rd_kafka_t *rk, bool is_consumer)
{
    lock_take(&registry);
    c->expected = false;
    if (rk) {
        c->rk = rk;
        c->is_consumer = is_consumer;
        c->plain = is_consumer && (rdg_options.mode == SERIALIZE || rdg_options.mode == REFUSE);
        add(c, HANDLE_KIND, rk, OTHER_QUEUE);
    } else {
        free_consumer(c);
    }
    lock_drop(&registry);
}

void handle_gone(struct consumer *c)
{
    lock_take(&registry);
    c->younger = NULL;
    if (youngest_dead)
        youngest_dead->younger = c;
    else
        oldest_dead = c;
    youngest_dead = c;
    if (++dead_handles > OLD_HANDLE)
        oldest_goes();
    lock_drop(&registry);
}

void handle_forget(struct consumer *c)
{
    lock_take(&registry);
    free_consumer(c);
    lock_drop(&registry);
}

struct object *object_born(struct consumer *c, enum kind kind, const void *address, enum role role,
                           uint16_t call)
{
    lock_take(&registry);
    struct object *o = add(c, kind, address, role);
    if (o && o->references == 1) {
        o->call = call;
        o->tid = rdg_self ? rdg_self->tid : 0;
        o->born = atomic_load_explicit(&rdg_tick, memory_order_relaxed);
    }
    lock_drop(&registry);
    return o;
}

void object_gone(struct object *o)
{
    lock_take(&registry);
    if (o->key) {
        if (--o->references <= 0)
            bury_object(o);
    }
    lock_drop(&registry);
}

void consumers_each(void (*f)(struct consumer *, void *), void *with)
{
    lock_take(&registry);
    for (struct consumer *c = all; c; c = c->made_before)
        if (c->rk || c->expected)
            f(c, with);
    lock_drop(&registry);
}

void objects_each(struct consumer *c, void (*f)(struct object *, void *), void *with)
{
    lock_take(&registry);
    for (struct object *o = c->objects; o; o = o->sibling)
        f(o, with);
    lock_drop(&registry);
}

int object_left(struct object *o)
{
    return atomic_fetch_sub(&o->inside, 1) - 1;
}

bool object_dead(const struct object *o)
{
    return atomic_load(&o->dead);
}

static void find_expected(struct consumer *c, void *with)
{
    if (c->expected)
        *(struct consumer **)with = c;
}

struct consumer *consumer_of(const rd_kafka_t *rk)
{
    struct object *o = object_find(HANDLE_KIND, rk);
    if (o)
        return o->consumer;
    struct consumer *c = NULL;
    consumers_each(find_expected, &c);
    return c;
}

static void inherited(struct consumer *c, void *with)
{
    (void)with;
    gate_after_fork(c);
}

void handle_after_fork(void)
{
    registry.word = 0;
    consumers_each(inherited, NULL);
}

void registry_hold(bool hold)
{
    if (hold)
        lock_take(&registry);
    else
        lock_drop(&registry);
}
