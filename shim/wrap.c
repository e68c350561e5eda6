/*
 * wrap.c: calls.def expanded into the exported wrappers, and the one way in and out that all of them share.
 * It finds whose call it is and what kind; it must not decide who waits (gate.c).
 */
#include "shim.h"
#include "elf.h"
#include "fail.h"
#include "notes.h"
#include "watch.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

_Atomic int rdg_awake;

/* ------------------------------------------------------------------ the way in */

static bool straight(struct entry *e, const struct library *lib, int call)
{
    e->lib = lib;
    e->visit = NULL;
    e->code = RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED;
    return lib && lib->calls[call];
}

/* Frames that this thread has left by longjmp lie at or below the one it calls from now. */
static void drop_dead_frames(struct self *s, uintptr_t frame)
{
    if (s->top->frame <= frame && self_same_stack(s, s->top->frame, frame))
        gate_abandon(s, frame + 1, CALLBACK_ESCAPED);
}

/* The innermost call that this thread is in on this consumer. */
static struct visit *inner_visit(struct self *s, const struct consumer *c)
{
    struct visit *v = s->top;
    while (v && v->consumer != c)
        v = v->outer;
    return v;
}

static bool no(struct entry *e, int code, const struct question *q, bool dead)
{
    e->code = code;
    e->refused = true;
    if (dead && rdg_calls[q->call].class == POLL) {
        int t = *q->timeout_ms;
        e->code = RD_KAFKA_RESP_ERR__TIMED_OUT;
        /* A destroy that runs waits for the messages that this thread may hold: not long, then. */
        gate_idle_poll(e->consumer->life == DESTROYING && (t > 100 || t < 0) ? 100 : t);
    }
    return false;
}

/* A forked child has the handle but none of its threads: what would wait for them hangs or aborts. */
static bool in_child(struct entry *e, struct consumer *c, const struct question *q)
{
    if (!c->flight)
        flight_born(c, CALL_COUNT);
    report_once(USE_AFTER_FORK, c, q->call, NULL, -1);
    watch_in_child();
    uint8_t class = rdg_calls[q->call].class;
    if (rdg_options.mode == OBSERVE || class >= GUARD || (class == DEATH && q->kind != HANDLE_KIND))
        return straight(e, c->lib, q->call);
    return no(e, RD_KAFKA_RESP_ERR__STATE, q, true);
}

/* confluent-kafka-python polls in slices and reads its handle anew for each; its close has set that to NULL.
 * librdkafka crashes on it. */
static bool no_handle(const struct question *q)
{
    uint8_t class = rdg_calls[q->call].class;
    return q->kind && !q->key && (class == POLL || class == CALL) && rdg_options.mode != OFF &&
           rdg_options.mode != OBSERVE;
}

static bool nobody(struct entry *e, const struct library *lib, const struct question *q)
{
    if (!straight(e, lib, q->call))
        return false;
    e->code = RD_KAFKA_RESP_ERR__DESTROY;
    e->refused = true;
    bool tells = q->call == CALL_rd_kafka_consumer_poll || q->call == CALL_rd_kafka_consume_queue ||
                 q->call == CALL_rd_kafka_consume;
    if (rdg_calls[q->call].class == POLL && !tells)
        gate_idle_poll(*q->timeout_ms); /* like a poll on a dead handle */
    return false;
}

static inline void describe(struct visit *v, struct entry *e, struct consumer *c, const struct question *q)
{
    const struct call_info *info = &rdg_calls[q->call];
    int timeout = q->timeout_ms ? *q->timeout_ms : -1;
    v->call = q->call;
    v->class = info->class;
    v->traits = info->traits | q->traits;
    v->consumer = c;
    v->self = e->self;
    v->lib = c->lib;
    v->frame = q->frame;
    v->caller = q->caller;
    v->deadline = timeout == -1 ? FOREVER : timeout > 0 ? timeout * 1000000LL : 0;
    v->timed = timeout == -1 || timeout > 0;
    memset(&v->lane, 0, offsetof(struct visit, end) - offsetof(struct visit, lane));
}

/* From 2.6.0 librdkafka takes a timeout that is a multiple of 256 in its own unit for no timeout and lets
 * max.poll.interval.ms run out in a poll (rdkafka_int.h rd_kafka_app_poll_start, is_blocking is a uint8_t).
 * Before 1.6.0 nothing can wake a poll, so it is done in slices. */
static void cut_timeout(struct visit *v, int *timeout_ms)
{
    /* cppcheck-suppress nullPointer ; only polls get here, and they have a timeout */
    int t = *timeout_ms;
    v->cut = false;
    if (!v->lib->rd_kafka_queue_yield && !v->guard && (t > 100 || t == -1)) {
        *timeout_ms = 100;
        v->cut = true;
    } else if (t > 0 && v->lib->version >= 0x020600) {
        bool micro = v->call == CALL_rd_kafka_queue_poll || v->call == CALL_rd_kafka_queue_poll_callback;
        if (t % (micro ? 32 : 256) == 0) {
            *timeout_ms = t - 1;
            v->cut = true;
        }
    }
}

/* Which queue a poll is on: the consumer queue, a partition of its own, or one that is no business of the
 * gate. */
static void find_lane(struct visit *v, struct consumer *c, struct object *o, const struct question *q)
{
    if (q->topic) {
        v->topic = q->topic;
        v->partition = q->partition;
        v->lane = ((uint64_t)(uintptr_t)q->topic << 16 ^ (uint32_t)q->partition) | 1;
    } else if (q->kind == QUEUE_KIND) {
        v->object = o;
        v->alien = queue_is_alien(c, o);
        v->lane = v->alien ? (uintptr_t)o | 1 : 0;
    } else if (v->traits & MAIN_QUEUE) {
        v->alien = !c->main_forwarded;
    }
}

static bool enter_guard(struct entry *e, struct visit *v, const struct question *q)
{
    struct consumer *c = v->consumer;
    if (!guard_enter(c)) {
        self_pop(e->self, v);
        report_once(USE_AFTER_DESTROY, c, q->call, NULL, -1);
        return no(e, RD_KAFKA_RESP_ERR__DESTROY, q, true);
    }
    v->guard = true;
    if (v->object) {
        atomic_fetch_add(&v->object->inside, 1);
        if (object_dead(v->object) && rdg_options.mode != OBSERVE) { /* destroyed since we looked */
            guard_out(v);
            self_pop(e->self, v);
            return no(e, RD_KAFKA_RESP_ERR__TIMED_OUT, q, true);
        }
    }
    v->deadline += v->timed && v->deadline != FOREVER ? now_ns() : 0;
    if (v->class == POLL)
        cut_timeout(v, q->timeout_ms);
    e->visit = v;
    return true;
}

/* For the flight file: it was not let in. */
static void told_no(struct visit *v, int code)
{
    flight_count(v->consumer, FLIGHT_COUNT_refused);
    if (v->class == POLL)
        flight_poll(v, code);
    else
        flight_call_ends(v, code);
}

static bool enter_gate(struct entry *e, struct visit *v, const struct question *q, bool nested)
{
    struct consumer *c = v->consumer;
    int timeout = q->timeout_ms ? *q->timeout_ms : 0;
    if (v->class != POLL)
        flight_call_begins(v);
    switch (nested ? gate_nest(c, v) : gate_enter(c, v)) {
    case ADMITTED: break;
    case OUT_OF_TIME:
        told_no(v, RD_KAFKA_RESP_ERR__TIMED_OUT);
        self_pop(e->self, v);
        return no(e, RD_KAFKA_RESP_ERR__TIMED_OUT, q, false);
    default:
        told_no(v, v->code);
        self_pop(e->self, v);
        e->code = v->code;
        if (v->code == RD_KAFKA_RESP_ERR__DESTROY)
            report_once(c->life >= DESTROYING ? USE_AFTER_DESTROY : USE_AFTER_CLOSE, c, q->call, NULL, -1);
        /* A poll that was blocked when the close came returns at once; one that comes later waits a while, so
         * that a loop neither hangs nor spins. */
        return no(e, v->code, q, v->since == 0 && !nested && v->code != RD_KAFKA_RESP_ERR__CONFLICT);
    }
    if (((q->kind == HANDLE_KIND && c->rk != q->key) ||
         (v->class == POLL && v->object && object_dead(v->object))) &&
        rdg_options.mode != OBSERVE) {
        gate_leave(v); /* the record has got a new handle meanwhile, or the queue is gone */
        told_no(v, RD_KAFKA_RESP_ERR__DESTROY);
        self_pop(e->self, v);
        return no(e, RD_KAFKA_RESP_ERR__DESTROY, q, true);
    }
    e->visit = v;
    if (!q->timeout_ms)
        return true;
    if (v->since)
        *q->timeout_ms = rest_ms(v);
    if (v->class == POLL && rdg_options.mode != OBSERVE && !nested) {
        if (c->life == CLOSED) {
            e->idle = timeout;
            *q->timeout_ms = 0;
            v->timed = false;
        } else {
            cut_timeout(v, q->timeout_ms);
        }
    }
    return true;
}

bool rdg_in(struct entry *e, const struct question *q)
{
    if (!rdg_awake)
        shim_awake();
    struct self *s = e->self = self_get();
    struct object *o = q->kind ? object_find(q->kind, q->key) : NULL;
    struct consumer *c = o ? o->consumer : NULL;
    e->lib = NULL;
    e->visit = NULL;
    e->consumer = c;
    e->idle = 0;
    e->outcome = 0;
    e->empty = e->refused = false;
    if (s && s->last_set)
        self_forget_error(s);
    if (!c) {
        const struct library *lib = library_called(q->caller);
        if (lib)
            counted(lib, 1);
        return no_handle(q) ? nobody(e, lib, q) : straight(e, lib, q->call);
    }
    const struct library *lib = e->lib = c->lib;
    if (!c->is_consumer || !s || s->librdkafka || rdg_options.mode == OFF || library_owns(lib, q->caller))
        return straight(e, lib, q->call);
    if (!lib->calls[q->call])
        return straight(e, lib, q->call);
    counted(lib, 0);
    bool nested = false;
    if (s->top) {
        drop_dead_frames(s, q->frame);
        struct visit *outer = inner_visit(s, c);
        if (outer && !atomic_load(&outer->window))
            return straight(e, lib, q->call); /* librdkafka calls itself by way of us */
        /* A poll that is a guard holds no gate, and so its callback has none to pass. */
        for (; outer && !nested; outer = outer->outer)
            nested = outer->consumer == c && !outer->guard;
    }
    if (c->forked)
        return in_child(e, c, q);
    if ((o->dead || c->life == GONE) && rdg_options.mode != OBSERVE) {
        if (rdg_calls[q->call].class != DEATH)
            report_once(USE_AFTER_DESTROY, c, q->call, NULL, -1);
        return no(e, RD_KAFKA_RESP_ERR__DESTROY, q, true);
    }
    uint8_t class = rdg_calls[q->call].class;
    if (class == BIRTH || class == PASS || (nested && class == GUARD))
        return straight(e, lib, q->call);
    struct visit *v = self_push(s);
    if (!v)
        return straight(e, lib, q->call);
    describe(v, e, c, q);
    if (v->timed)
        e->error = errno;
    if (class == POLL) {
        find_lane(v, c, o, q);
        if (!v->alien)
            ledger_polled(c, s);
    } else if (class == DEATH && q->kind != HANDLE_KIND)
        v->object = o;
    if (class == GUARD || (v->alien && !(v->traits & BATCH)))
        return enter_guard(e, v, q);
    return enter_gate(e, v, q, nested && class != CLOSE && class != DEATH);
}

bool rdg_again(struct entry *e, bool empty, int *timeout_ms)
{
    struct visit *v = e->visit;
    e->empty = empty;
    if (!gate_again(v, empty, timeout_ms)) {
        if (v->sent_home && empty && v->call != CALL_rd_kafka_poll &&
            v->call != CALL_rd_kafka_queue_poll_callback) {
            e->code = RD_KAFKA_RESP_ERR__TIMED_OUT; /* not __INTR, which the application did not ask for */
            rdg_last_error(e);
        }
        return false;
    }
    cut_timeout(v, timeout_ms);
    if (v->timed)
        errno = e->error;
    return true;
}

void odd_deferred_destroy(struct consumer *c);

static void afterwards(struct entry *e, struct self *s, struct consumer *c)
{
    int saved = errno;
    if (c->deferred == s && !inner_visit(s, c))
        odd_deferred_destroy(c);
    if (s->cancel_wanted) {
        /* Woken for this: now that no mutex of librdkafka is held, the cancellation may take place. */
        s->cancel_wanted = false;
        real_pthread_cancel(pthread_self());
        if (e->empty)
            pthread_testcancel();
    }
    if (e->idle && e->empty)
        gate_idle_poll(e->idle);
    errno = saved;
}

void rdg_out(struct entry *e)
{
    struct visit *v = e->visit;
    struct self *s = e->self;
    struct consumer *c = v->consumer;
    if (v->guard) {
        guard_out(v);
    } else {
        if (v->class != POLL)
            flight_call_ends(v, e->outcome);
        else if (!flight_dull(v, e->outcome))
            flight_poll(v, e->outcome);
        gate_leave(v);
    }
    self_pop(s, v);
    if (__builtin_expect(c->deferred == s || s->cancel_wanted || e->idle, 0))
        afterwards(e, s, c);
}

/* ------------------------------------------------------------------ saying no */

int rdg_code(const struct entry *e, const void *error)
{
    return error && e->lib->h_rd_kafka_error_code ? (int)e->lib->h_rd_kafka_error_code(error) : 0;
}

rd_kafka_error_t *rdg_error(const struct entry *e)
{
    if (e->code == RD_KAFKA_RESP_ERR_NO_ERROR || !e->lib || !e->lib->h_rd_kafka_error_new)
        return NULL;
    const char *why = e->code == RD_KAFKA_RESP_ERR__TIMED_OUT  ? "timed out waiting for another thread's call"
                      : e->code == RD_KAFKA_RESP_ERR__CONFLICT ? "another thread is using this consumer"
                      : e->refused                             ? "consumer is closed or destroyed"
                                                               : "not in this version of librdkafka";
    return e->lib->h_rd_kafka_error_new((rd_kafka_resp_err_t)e->code, "%s", why);
}

void rdg_last_error(const struct entry *e)
{
    /* The mapping of librdkafka 2.0.2 rdkafka.c rd_kafka_errno2err, the other way round. */
    errno = e->code == RD_KAFKA_RESP_ERR__TIMED_OUT  ? ETIMEDOUT
            : e->code == RD_KAFKA_RESP_ERR__CONFLICT ? EBUSY
                                                     : EINVAL;
    struct self *s = e->self;
    if (!s || !e->lib)
        return;
    s->last_error = (rd_kafka_resp_err_t)e->code;
    s->last_real = e->lib->rd_kafka_last_error();
    s->last_set = s->unusual = true;
}

/* What a poll without a handle gives: a message that says so, as NULL would let a caller that polls in slices
 * of a timeout without end go on for ever. librdkafka makes it, so that all its functions can read and free
 * it: for a consumer without a group, which a blank handle is (rdkafka.c rd_kafka_consumer_poll, 1.5.3
 * to 2.15). */
void *rdg_nobody(const struct entry *e)
{
    static char blank[65536] __attribute__((aligned(64)));
    if (!e->refused || e->consumer || !e->lib || !e->lib->rd_kafka_consumer_poll)
        return NULL;
    rd_kafka_message_t *m = e->lib->rd_kafka_consumer_poll((rd_kafka_t *)blank, 0);
    if (m)
        m->err = RD_KAFKA_RESP_ERR__DESTROY;
    return m;
}

/* ------------------------------------------------------------------ unwinding */

/* _UA_CLEANUP_PHASE, _UA_FORCE_UNWIND and _URC_CONTINUE_UNWIND of the Itanium C++ ABI. */
#define CLEANUP_PHASE   2
#define FORCED          8
#define CONTINUE_UNWIND 8
#if defined(__x86_64__)
#    define FRAME_REGISTER 6 /* rbp */
#else
#    define FRAME_REGISTER 29
#endif

__attribute__((used, visibility("hidden"))) int rdg_personality(int version, int actions, uint64_t class,
                                                                void *exception, void *context)
{
    (void)version, (void)class, (void)exception;
    struct self *s = rdg_self;
    if (!(actions & CLEANUP_PHASE) || !s || !s->top)
        return CONTINUE_UNWIND;
    /* The unwinder is whoever called us; ask the same copy of it. */
    uintptr_t (*get_register)(void *, int) =
        (uintptr_t(*)(void *, int))real_unwinder(CALLER, "_Unwind_GetGR");
    if (get_register)
        gate_abandon(s, get_register(context, FRAME_REGISTER) + 1,
                     actions & FORCED ? OWNER_GONE : CALLBACK_ESCAPED);
    return CONTINUE_UNWIND;
}

/* ------------------------------------------------------------------ the wrappers */

/* The words of the columns are no macros themselves, so that a row travels unexpanded to its body. */
#define KIND_HANDLE(x) HANDLE_KIND
#define KIND_QUEUE(x)  QUEUE_KIND
#define KIND_TOPIC(x)  TOPIC_KIND
#define KIND_NONE      0
#define KEY_HANDLE(x)  x
#define KEY_QUEUE(x)   x
#define KEY_TOPIC(x)   x
#define KEY_NONE       NULL

#define TIMEOUT_NO_TIMEOUT NULL
#define TIMEOUT_timeout_ms &timeout_ms

#define QUESTION(name, key_kind, key_pointer, timeout)                                                       \
    {                                                                                                        \
        .call = CALL_##name, .kind = key_kind, .key = key_pointer, .caller = CALLER, .frame = FRAME,         \
        .timeout_ms = timeout                                                                                \
    }

/* A message is the application's debt, and its error worth an event. */
#define TAKE_MESSAGE(r, call)                                                                                \
    (ledger_message(e.consumer, (const void *)(uintptr_t)(r), call),                                         \
     e.outcome = ((const rd_kafka_message_t *)(uintptr_t)(r))->err)

/* The row's columns are constants here, so of each body only what the class needs is left. */
#define BODY_value(result, name, parameters, arguments, key, class_, fail, timeout, traits_)                 \
    BODY(result, name, parameters, arguments, key, class_, fail, timeout, traits_, (void)0)
#define BODY_noted(result, name, parameters, arguments, key, class_, fail, timeout, traits_)                 \
    BODY(result, name, parameters, arguments, key, class_, fail, timeout, traits_,                           \
         odd_note(&e, CALL_##name, SECOND arguments, (long)(intptr_t)r))
#define SECOND(...)        SECOND_(__VA_ARGS__, 0, 0)
#define SECOND_(a, b, ...) (const void *)(uintptr_t)(b)
#define BODY(result, name, parameters, arguments, key, class_, fail, timeout, traits_, note)                 \
    PUBLIC result name parameters                                                                            \
    {                                                                                                        \
        struct entry e;                                                                                      \
        UNWOUND;                                                                                             \
        if (KIND_##key != HANDLE_KIND || class_ > CALL ||                                                    \
            !lonely_in(&e, CALL_##name, class_, traits_, KEY_##key, CALLER, FRAME, TIMEOUT_##timeout)) {     \
            struct question q = QUESTION(name, KIND_##key, KEY_##key, TIMEOUT_##timeout);                    \
            if (!rdg_in(&e, &q))                                                                             \
                return FAIL_##fail;                                                                          \
        }                                                                                                    \
        result r = e.lib->name arguments;                                                                    \
        if (!e.visit)                                                                                        \
            return r;                                                                                        \
        note;                                                                                                \
        if (class_ != POLL)                                                                                  \
            e.outcome = RESULT_##fail;                                                                       \
        if (((traits_)&MESSAGE) && r)                                                                        \
            TAKE_MESSAGE(r, CALL_##name);                                                                    \
        if (!((traits_)&EVENT) && lonely_out(&e, class_))                                                    \
            return r;                                                                                        \
        while (class_ == POLL && rdg_again(&e, !r, TIMEOUT_##timeout)) {                                     \
            r = e.lib->name arguments;                                                                       \
            if (((traits_)&MESSAGE) && r)                                                                    \
                TAKE_MESSAGE(r, CALL_##name);                                                                \
        }                                                                                                    \
        if (class_ == POLL && r && odd_result(&e, CALL_##name, (void *)(uintptr_t)r))                        \
            r = 0;                                                                                           \
        rdg_out(&e);                                                                                         \
        return r;                                                                                            \
    }
#define BODY_nothing(result, name, parameters, arguments, key, class_, fail, timeout, traits_)               \
    PUBLIC void name parameters                                                                              \
    {                                                                                                        \
        struct entry e;                                                                                      \
        struct question q = QUESTION(name, KIND_##key, KEY_##key, TIMEOUT_##timeout);                        \
        UNWOUND;                                                                                             \
        if (!rdg_in(&e, &q))                                                                                 \
            return;                                                                                          \
        e.lib->name arguments;                                                                               \
        if (e.visit)                                                                                         \
            rdg_out(&e);                                                                                     \
    }
#define BODY_odd(...)

bool odd_result(struct entry *e, int call, void *result);
void odd_note(const struct entry *e, int call, const void *second, long result);

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define CALL(kind, result, name, parameters, arguments, key, class, fail, timeout, traits)                   \
    BODY_##kind(result, name, parameters, arguments, key, class, fail, timeout, traits)
#include "calls.def"

const void *const rdg_wrappers[CALL_COUNT] = {
#define CALL(kind, result, name, ...) (const void *)name,
#include "calls.def"
};
