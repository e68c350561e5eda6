/*
 * gate.c: the gate in front of one consumer. The only file with its protocol.
 *
 * WORDS. A visit is one call of one thread. An occupant is a visit that was admitted. An occupant is active
 * while its thread is (or may be) inside librdkafka, and lends while its thread runs an application callback
 * (window).
 *
 * STATES of a visit: OUTSIDE -> WAITING (in one of three lines: death and close, call, poll) -> INSIDE (in
 * the list of occupants) -> OUTSIDE; WAITING -> REFUSED when the life of the handle decides for it; INSIDE ->
 * RETURNING -> INSIDE when a callback window ends while a borrower is still in. Every change of a state, a
 * line or the list of occupants happens under mu. mu is held for a few dozen instructions, never while
 * calling librdkafka, the application or the loader.
 *
 * THE WORD. One atomic word makes the lonely call cheap: 0 = nobody, visit|FAST = this visit is inside and
 * nobody else has looked, SLOW = the fields under mu are the truth. A lonely visit enters by CAS 0 ->
 * visit|FAST and leaves by CAS visit|FAST -> 0. Whoever needs more takes mu and sets SLOW by fetch-or; what
 * he finds in the word is then an occupant (slow_take links it). From then on the lonely visit's CAS fails
 * and it takes mu too. The word goes back to 0 only under mu and only when nothing is left to know
 * (slow_drop). So either a visit has seen that it was alone from beginning to end, or it meets everybody else
 * under mu.
 *
 * WHO WAITS FOR WHOM (conflicts). In serialize: a CALL for every active occupant; a POLL for every CALL and
 * for the POLL of its own lane, active or not; a CLOSE for every active occupant; a DEATH for every occupant,
 * lending or not, and for the guards. Nobody waits for a visit of its own thread. A lending occupant is
 * passed by CALLs and by CLOSE, never by POLLs, so borrowers are serialized by waiting for the active one
 * among them. A CLOSE or DEATH is passed by CALLs only as long as a rebalance is unanswered: somebody must
 * answer it, and until then the group cannot terminate. Any other call beside it could lose its reply; it
 * waits, and is refused as soon as the close runs a callback, which might be waiting for its thread. Beside a
 * destroy it is refused at once, since the destroy waits for the messages that its thread may hold. An owner
 * whose window ends waits for the occupants that came after it, then goes on; a poll that finds a close there
 * leaves instead (send_home). Thus every edge leads from a waiting thread to one that is inside librdkafka or
 * the application, never to another that waits at this gate; what loops remain are made by the application
 * and are bounded by RDGATE_MAX_WAIT_MS.
 *
 * NO WAKE-UP IS LOST. A waiter sleeps on its own state word, which is WAITING only while it stands in a line.
 * Everything that may let somebody in (a leave, a window that opens or shuts, a yield that has been sent, a
 * change of life, an answer) takes mu and runs grant() before it drops it; grant() changes the word and
 * wakes. A window opens without mu only if the word is still visit|FAST: window is stored before the word is
 * read, and a contender sets SLOW before it reads window (both sequentially consistent), so one of the two
 * sees the other.
 *
 * PREEMPTION. A waiter that conflicts with an active POLL has rd_kafka_queue_yield sent to that poll's queue.
 * The decision is made under mu, the call is made without it, and `yielding` keeps everybody from being
 * admitted meanwhile: no yield can reach a queue after a close was admitted, which would abort the close and
 * hang the destroy (librdkafka 2.0.2 rdkafka_queue.h rd_kafka_q_yield follows the forward). The flag is
 * sticky and single-shot: one yield for each poll known to be inside; the lane is marked stale until an empty
 * return has taken the flag (twice, for one that is taken and one that is raised), and a poll that comes back
 * empty from a stale lane goes back in for the rest of its time. A poll of the same librdkafka queue that we
 * cannot see may have taken the flag, so a waiter that is still there after 100 ms sends another one.
 *
 * ORDER. Death and close, then calls, then polls; first come first served in each. A preempted poll goes to
 * the head of the polls. A poll that 16 calls have overtaken goes before the next one: it then takes what is
 * ready and is preempted again, so that neither starves.
 *
 * TIME. No wait outlasts the call's own timeout; a poll of 0 does not wait at all. A poll whose time is up
 * comes back empty, but where the application polls only when an event tells it to, it takes what is there
 * (takes_beside). No wait outlasts
 * RDGATE_MAX_WAIT_MS: then the visit is let in beside the others (passed), except a DEATH, which leaks the
 * handle (at once if the watchdog has proven that it stands in a loop, which only a DEATH
 * can make: everybody else passes a callback), and whoever waits for a close to end, who gets an error.
 */
#include "gate.h"
#include "flight.h"
#include "handle.h"
#include "maps.h"
#include "options.h"
#include "peek.h"
#include "notes.h"
#include "shim.h"
#include "snapshot.h"
#include "stack.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLOW ((uintptr_t)2)
#define TAGS ((uintptr_t)63)

#define MS         1000000LL
#define LOOK_AGAIN (100 * MS)  /* a yield may have been taken by a poll we cannot see */
#define LOOK_OWNER (1000 * MS) /* is the owner still there? */
#define ZERO_BATCH                                                                                           \
    (100 * MS)    /* a call that does not want to wait, against a batch that would lose messages */
#define ENOUGH 16 /* calls that may overtake a poll */
#define FINE   1  /* no resp_err_t is positive here */

/* ------------------------------------------------------------------ the word and the lists */

static void link_inside(struct consumer *c, struct visit *v)
{
    v->prev = NULL;
    v->next = c->inside;
    if (c->inside)
        c->inside->prev = v;
    c->inside = v;
}

static void unlink_inside(struct consumer *c, struct visit *v)
{
    if (v->prev)
        v->prev->next = v->next;
    else
        c->inside = v->next;
    if (v->next)
        v->next->prev = v->prev;
    v->next = v->prev = NULL;
}

static void slow_take(struct consumer *c)
{
    lock_take(&c->mu);
    if (atomic_load_explicit(&c->word, memory_order_relaxed) & SLOW)
        return;
    uintptr_t w = atomic_fetch_or(&c->word, SLOW);
    if (w & FAST)
        link_inside(c, (struct visit *)(w & ~TAGS));
    atomic_store(&c->word, SLOW);
}

static bool nothing_to_know(const struct consumer *c)
{
    return !c->inside && !c->waiting[0].first && !c->waiting[1].first && !c->waiting[2].first &&
           !c->yielding && c->life == OPEN && !c->stale && !c->forked && !c->deferred;
}

static void slow_drop(struct consumer *c)
{
    if (nothing_to_know(c))
        atomic_store_explicit(&c->word, 0, memory_order_release);
    lock_drop(&c->mu);
}

static struct line *line_of(struct consumer *c, const struct visit *v)
{
    return &c->waiting[v->class == POLL ? 2 : v->class == CALL ? 1 : 0];
}

static void line_up(struct consumer *c, struct visit *v, bool in_front)
{
    struct line *l = line_of(c, v);
    v->next = in_front ? l->first : NULL;
    v->prev = in_front ? NULL : l->last;
    if (v->next)
        v->next->prev = v;
    else
        l->last = v;
    if (v->prev)
        v->prev->next = v;
    else
        l->first = v;
    atomic_store(&v->state, WAITING);
}

static void step_out(struct consumer *c, struct visit *v)
{
    struct line *l = line_of(c, v);
    if (v->prev)
        v->prev->next = v->next;
    else
        l->first = v->next;
    if (v->next)
        v->next->prev = v->prev;
    else
        l->last = v->prev;
    v->next = v->prev = NULL;
}

static void tell(struct visit *v, enum visit_state state)
{
    atomic_store(&v->state, state);
    futex_wake(&v->state, 1);
}

static int find_stale(const struct consumer *c, uint64_t lane)
{
    int i = 0;
    while (i < c->stale && c->stale_lane[i] != lane + 1)
        i++;
    return i;
}

/* A lane is marked twice if need be: a poll may have taken one flag and not yet said so when the next is
 * raised, and to forget that one is to let the application see it (tests/model/gate.pml, mutant 10). There
 * are never more, as a raised flag cannot be raised again; a mark too many costs one look more. false: too
 * many lanes have a flag on the way; no yield can be accounted for now. */
static bool mark_stale(struct consumer *c, uint64_t lane)
{
    int marks = 0;
    for (int i = 0; i < c->stale; i++)
        marks += c->stale_lane[i] == lane + 1;
    if (marks < 2 && c->stale < STALE) {
        c->stale_lane[c->stale++] = lane + 1;
        marks++;
    }
    return marks > 0;
}

static bool take_stale(struct consumer *c, uint64_t lane)
{
    int i = find_stale(c, lane);
    if (i == c->stale)
        return false;
    c->stale_lane[i] = c->stale_lane[--c->stale];
    return true;
}

/* ------------------------------------------------------------------ who may be in with whom */

static bool lends(const struct visit *o)
{
    return atomic_load(&o->window) > 0;
}

/* The one hole that librdkafka documents: batch consume beside seek, pause, resume and assign loses messages.
 */
static bool batch_hole(const struct visit *a, const struct visit *b)
{
    return (a->traits & BATCH && b->traits & BATCHX) || (a->traits & BATCHX && b->traits & BATCH);
}

/* Must v wait for the occupant o? */
static bool conflicts(const struct consumer *c, const struct visit *v, const struct visit *o)
{
    if (o->self == v->self)
        return false;
    bool serial = rdg_options.mode != LIFETIME;
    switch (v->class) {
    case POLL:
        if (o->object && o->class == DEATH)
            return o->object == v->object;
        if (o->class == CLOSE || o->class == DEATH)
            return !v->alien;
        if (v->alien || o->alien)
            return batch_hole(v, o) || (v->lane == o->lane && o->class == POLL);
        if (o->class == POLL)
            return v->lane == o->lane && (serial || v->traits & o->traits & BATCH);
        return serial || batch_hole(v, o);
    case CALL:
        if (o->class == CLOSE || o->class == DEATH)
            return !o->object && !atomic_load(&c->unanswered);
        if (lends(o))
            return false;
        if (o->class == POLL && o->alien)
            return batch_hole(v, o);
        return serial || batch_hole(v, o);
    case CLOSE:
        if (o->class == POLL && o->alien)
            return false;
        return !lends(o);
    default:
        /* The death of a queue concerns only those who poll that queue. */
        return v->object ? o->object == v->object : true;
    }
}

static struct visit *blocker(const struct consumer *c, const struct visit *v)
{
    for (struct visit *o = c->inside; o; o = o->next)
        if (conflicts(c, v, o))
            return o;
    return NULL;
}

/* An owner whose window is over waits for those who came after it. */
static bool borrower_in(const struct consumer *c, const struct visit *v)
{
    if (v->passed)
        return false;
    if ((v->class == CLOSE || v->class == DEATH) && atomic_load(&c->unanswered))
        return false; /* still lent, to whoever answers */
    for (struct visit *o = c->inside; o && o != v; o = o->next) {
        if (o->self == v->self || o->class == POLL || o->object)
            continue;
        if (rdg_options.mode != LIFETIME || o->class == CLOSE || o->class == DEATH || batch_hole(v, o))
            return true;
    }
    return false;
}

/* Is the close or destroy itself in a callback of the application? */
static bool closer_lends(const struct consumer *c)
{
    for (struct visit *o = c->inside; o; o = o->next)
        if ((o->class == CLOSE || o->class == DEATH) && !o->object && lends(o))
            return true;
    return false;
}

/* A call that comes while the group terminates may lose its reply and wait for ever, so it waits for the end
 * of the close and is told then; at once, if the close runs a callback that may be waiting for the caller.
 * Nobody waits for the end of a destroy: the destroy waits for every message, event and partition list that
 * the caller may hold. */
static int while_ending(const struct consumer *c, const struct visit *v)
{
    if (v->class != CALL || atomic_load(&c->unanswered))
        return FINE;
    return c->life == DESTROYING || (!v->outer && closer_lends(c)) ? RD_KAFKA_RESP_ERR__DESTROY : FINE;
}

/* What the life of the handle says to this visit: FINE, or the error it gets. */
static int standing(struct consumer *c, const struct visit *v, bool waiting)
{
    if (v->class == POLL && v->object && object_dead(v->object))
        return RD_KAFKA_RESP_ERR__TIMED_OUT; /* its queue was destroyed while it made way */
    switch (atomic_load(&c->life)) {
    case OPEN: return FINE;
    case CLOSING: return v->class == POLL && !v->alien ? RD_KAFKA_RESP_ERR__TIMED_OUT : while_ending(c, v);
    case CLOSING_QUEUE:
        if (v->class == CALL && !(v->traits & ANSWERS && !c->given_up) && !atomic_load(&c->unanswered))
            return RD_KAFKA_RESP_ERR__DESTROY;
        if (v->class == POLL && c->given_up && !v->alien)
            return RD_KAFKA_RESP_ERR__TIMED_OUT; /* the queue of the close is disabled, nothing would end it
                                                  */
        return FINE;
    case CLOSED:
        if (v->class == POLL && waiting && !v->alien)
            return RD_KAFKA_RESP_ERR__TIMED_OUT;
        if (v->class == CLOSE && waiting)
            return c->close_result;
        /* The answer to a rebalance that was handed out before the end comes too late to matter, not too late
         * to be right: librdkafka accepts it and does nothing, and so do we. */
        if (v->traits & ANSWERS && atomic_exchange(&c->unanswered, 0))
            return RD_KAFKA_RESP_ERR_NO_ERROR;
        return v->traits & LIES ? RD_KAFKA_RESP_ERR__DESTROY : FINE;
    case DESTROYING:
        if (v->class == CALL)
            return while_ending(c, v);
        return v->object && v->class == DEATH ? FINE : RD_KAFKA_RESP_ERR__DESTROY;
    default: return RD_KAFKA_RESP_ERR__DESTROY;
    }
}

static void admit(struct consumer *c, struct visit *v)
{
    link_inside(c, v);
    if (v->class == CLOSE && c->life == OPEN)
        atomic_store(&c->life, CLOSING);
    else if (v->class == DEATH && !v->object)
        atomic_store(&c->life, DESTROYING);
}

static bool waits_for_closed(const struct consumer *c, const struct visit *v)
{
    return v->class == CLOSE && c->life == CLOSING_QUEUE;
}

/* Lets in everybody who may come in. */
static void grant(struct consumer *c)
{
    if (c->yielding)
        return; /* whoever sends the yield comes back here */
    bool lending = false;
    for (struct visit *o = c->inside; o; o = o->next) {
        if (o->state == RETURNING && !borrower_in(c, o))
            tell(o, INSIDE);
        lending |= lends(o);
    }
    for (int i = 0; i < 3; i++) {
        struct visit *starved = c->waiting[2].first;
        if (i == 1 && !lending && starved && starved->overtaken >= ENOUGH &&
            standing(c, starved, true) == FINE) {
            if (blocker(c, starved))
                return;
            step_out(c, starved);
            admit(c, starved);
            tell(starved, INSIDE);
        }
        for (struct visit *v = c->waiting[i].first, *next; v; v = next) {
            next = v->next;
            int code = standing(c, v, v->since != 0);
            if (code != FINE) {
                step_out(c, v);
                v->code = code;
                tell(v, REFUSED);
                continue;
            }
            if (!waits_for_closed(c, v) && !blocker(c, v)) {
                step_out(c, v);
                if (v->class == CALL && c->waiting[2].first)
                    c->waiting[2].first->overtaken++;
                if (v->class == CALL && lending)
                    flight_loan(v);
                admit(c, v);
                tell(v, INSIDE);
                continue;
            }
            /* A death waits for the callback window to end and must not keep out the borrower on whom the
             * callback waits. Polls of other lanes do not stand behind this one. */
            if (v->class == POLL || (v->class == DEATH && (lending || v->object)) || waits_for_closed(c, v))
                continue;
            return;
        }
    }
}

/* ------------------------------------------------------------------ preemption */

static struct visit *poll_in_the_way(const struct consumer *c)
{
    for (int i = 0; i < 2; i++) {
        for (struct visit *w = c->waiting[i].first; w; w = w->next) {
            bool waits = false;
            for (struct visit *o = c->inside; o; o = o->next) {
                if (!conflicts(c, w, o))
                    continue;
                waits = true;
                if (o->class == POLL && o->timed && !o->yielded && o->state == INSIDE && !lends(o))
                    return o;
            }
            if (waits && w->class != DEATH)
                return NULL;
        }
    }
    return NULL;
}

/* With mu held; drops it for the call and takes it again. Nobody is admitted meanwhile, so whoever gets true
 * owes a grant(). What o points to may be another visit afterwards. false: nothing was sent. */
static bool send_yield(struct consumer *c, struct visit *o)
{
    const struct library *lib = c->lib;
    if (!lib->rd_kafka_queue_yield || c->life == CLOSING || c->life == DESTROYING || !mark_stale(c, o->lane))
        return false;
    rd_kafka_queue_t *q = o->object ? (void *)(o->object->key & ~(uintptr_t)3) : c->consumer_queue;
    rd_kafka_topic_t *topic = o->topic;
    int32_t partition = o->partition;
    int saved = errno; /* an io-event is written by the yield */
    o->yielded = true;
    flight_preempts(c, o);
    c->yielding++;
    lock_drop(&c->mu); /* the word stays SLOW: yielding */
    if (topic) {
        q = lib->rd_kafka_queue_get_partition(c->rk, lib->h_rd_kafka_topic_name(topic), partition);
        if (q) {
            lib->rd_kafka_queue_yield(q);
            lib->rd_kafka_queue_destroy(q);
        }
    } else if (q) {
        lib->rd_kafka_queue_yield(q);
    }
    errno = saved;
    lock_take(&c->mu);
    c->yielding--;
    return true;
}

static void settle(struct consumer *c)
{
    for (;;) {
        grant(c);
        if (c->yielding)
            return;
        struct visit *o = poll_in_the_way(c);
        if (!o || !send_yield(c, o))
            return; /* a library that cannot yield: the poll runs in slices */
    }
}

/* ------------------------------------------------------------------ owners that are no longer there */

static void unreachable(struct consumer *c, struct visit *o, enum finding f)
{
    unlink_inside(c, o);
    atomic_store(&o->state, OUTSIDE);
    if (o->class == CLOSE && c->life == CLOSING)
        atomic_store(&c->life, CLOSING_QUEUE);
    if (o->class == DEATH && !o->object)
        atomic_store(&c->life, GONE);
    flight_abandoned(c, o, f);
    report(f, c, o->call, o, -1);
}

static void look_for_owners(struct consumer *c)
{
    int saved = errno;
    for (struct visit *o = c->inside, *next; o; o = next) {
        next = o->next;
        struct self *s = o->self;
        if (syscall(SYS_tgkill, getpid(), s->tid, 0) < 0 && errno == ESRCH) {
            unreachable(c, o, OWNER_GONE);
            continue;
        }
        /* Left by longjmp or an exception: the thread sleeps above the frame that it called us from. Only
         * believed for the stack it was born with, and seen twice. */
        uintptr_t sp = stack_pointer(s->tid), from, to;
        bool above = sp > o->frame && maps_range(o->frame, &from, &to) && sp < to;
        if (above && o->suspect)
            unreachable(c, o, CALLBACK_ESCAPED);
        else
            o->suspect = above;
    }
    errno = saved;
}

/* ------------------------------------------------------------------ waiting */

/* A poll that waits here is not inside librdkafka, which would exempt it from max.poll.interval.ms. Polling
 * an empty queue of our own says "I am polling" (librdkafka: rd_kafka_app_polled in every rd_kafka_consume*).
 */
static void keep_membership(struct consumer *c, const struct visit *v)
{
    int saved = errno;
    if (!c->private_queue) {
        rd_kafka_queue_t *q = v->lib->rd_kafka_queue_new(c->rk);
        slow_take(c);
        if (!c->private_queue) {
            c->private_queue = q;
            q = NULL;
        }
        slow_drop(c);
        if (q)
            v->lib->rd_kafka_queue_destroy(q);
    }
    if (c->private_queue) {
        rd_kafka_message_t *m = v->lib->rd_kafka_consume_queue(c->private_queue, 0);
        if (m)
            v->lib->rd_kafka_message_destroy(m);
    }
    errno = saved;
}

/* Even when whole, so that the watchdog never reads half of one. */
static void stack_of_waiter(struct self *s)
{
    atomic_fetch_add(&s->stack_number, 1);
    s->stack_frames = stack_here(s->stack, WAIT_FRAMES);
    atomic_fetch_add(&s->stack_number, 1);
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t wait_limit(int64_t from)
{
    return rdg_options.max_wait_ms ? from + rdg_options.max_wait_ms * MS : FOREVER;
}

/* A poll whose time is up at the gate comes back empty, and the next one gets what is there. Where librdkafka
 * tells the application by an event that there is something, there may be no next one: it tells that once,
 * when the queue was empty before (librdkafka 2.0.2 rdkafka_queue.h rd_kafka_q_io_event). Such a poll goes in
 * beside the others and takes what is there; not beside or before a close or a destroy, and not where a batch
 * would lose messages. With mu held and v in no line. */
static bool takes_beside(struct consumer *c, struct visit *v)
{
    if (v->class != POLL || !atomic_load(&c->told_by_event) ||
        (c->life != OPEN && c->life != CLOSING_QUEUE) || c->waiting[0].first)
        return false;
    for (const struct visit *o = c->inside; o; o = o->next)
        if (o->class > CALL || batch_hole(v, o))
            return false;
    admit(c, v);
    atomic_store(&v->state, INSIDE);
    return true;
}

/* With mu held and v in its line; returns with mu held. */
static enum admission wait_in_line(struct consumer *c, struct visit *v)
{
    int64_t now = now_ns();
    int64_t limit = wait_limit(now);
    int64_t beat = v->class == POLL && !v->alien && c->max_poll_ms > 0 ? c->max_poll_ms / 3 * MS : FOREVER;
    int64_t next_beat = beat == FOREVER ? FOREVER : now + beat;
    int64_t next_look = now + LOOK_AGAIN, next_owner = now + LOOK_OWNER;
    bool looked = false;
    v->since = now;
    for (;;) {
        settle(c);
        if (v->state != WAITING)
            return v->state == INSIDE ? ADMITTED : REFUSED_IT;
        now = now_ns();
        if (now >= v->deadline) {
            step_out(c, v);
            atomic_store(&v->state, OUTSIDE);
            bool in = takes_beside(c, v);
            settle(c); /* whoever stood behind us */
            return in ? ADMITTED : OUT_OF_TIME;
        }
        if (now >= limit || atomic_load(&v->let_go)) {
            struct visit *o = blocker(c, v);
            step_out(c, v);
            atomic_store(&v->state, OUTSIDE);
            if (v->class == DEATH)
                return OUT_OF_TIME;
            /* Beside a close there is nothing to be let through to: a second close would never be answered,
             * and a call would lose its reply, and with it the close. */
            if ((o && o->class == CLOSE && !lends(o)) || waits_for_closed(c, v)) {
                v->code = v->class == CLOSE ? RD_KAFKA_RESP_ERR__IN_PROGRESS : RD_KAFKA_RESP_ERR__DESTROY;
                settle(c);
                return REFUSED_IT;
            }
            report(GATE_PASSED, c, v->call, o, (now - v->since) / MS);
            v->passed = true;
            admit(c, v);
            atomic_store(&v->state, INSIDE);
            settle(c);
            return ADMITTED;
        }
        if (now >= next_look) {
            next_look = now + LOOK_AGAIN;
            if (c->life == CLOSING_QUEUE) {
                slow_drop(c);
                gate_is_closed(c);
                slow_take(c);
                continue;
            }
            struct visit *o = blocker(c, v);
            if (o && o->yielded && v->class != POLL) {
                o->yielded = false;
                continue;
            }
        }
        if (now >= next_owner) {
            next_owner = now + LOOK_OWNER;
            look_for_owners(c);
            continue;
        }
        bool beats = now >= next_beat && c->life == OPEN;
        if (now >= next_beat)
            next_beat = now + beat;
        struct visit *o = blocker(c, v);
        int64_t until = sooner(sooner(v->deadline, limit), sooner(next_beat, next_owner));
        if ((o && o->yielded) || c->life == CLOSING_QUEUE)
            until = sooner(until, next_look);
        slow_drop(c);
        if (beats && guard_enter(c)) { /* a destroy does not wait for those who wait */
            keep_membership(c, v);
            guard_leave(c);
        } else {
            if (!looked) { /* the yield or the wake-up is under way: this costs no time */
                stack_of_waiter(v->self);
                looked = true;
            }
            futex_wait(&v->state, WAITING, until, 1);
        }
        slow_take(c);
    }
}

/* Whom it waits for, or who goes before it. */
static const struct visit *ahead_of(const struct consumer *c, const struct visit *v)
{
    const struct visit *o = blocker(c, v);
    for (int i = 0; i < 2 && !o; i++)
        if (c->waiting[i].first != v)
            o = c->waiting[i].first;
    return o;
}

static enum admission await(struct consumer *c, struct visit *v)
{
    flight_waits(v, ahead_of(c, v));
    enum admission a = wait_in_line(c, v);
    flight_waited(v, a);
    return a;
}

/* ------------------------------------------------------------------ entering and leaving */

static _Atomic int64_t tick_ns;

/* Exact to a tick and cheap: read before every poll with a timeout, used only if the poll is preempted. The
 * tick is added, so that no preempted poll ends too early. */
int64_t coarse_ns(void)
{
    struct timespec t;
    if (!atomic_load_explicit(&tick_ns, memory_order_relaxed)) {
        clock_getres(CLOCK_MONOTONIC_COARSE, &t);
        tick_ns = t.tv_nsec;
    }
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + atomic_load_explicit(&tick_ns, memory_order_relaxed);
}

int rest_ms(const struct visit *v)
{
    if (v->deadline == FOREVER)
        return -1;
    int64_t rest = v->deadline - now_ns();
    return rest <= 0 ? 0 : (int)((rest + MS - 1) / MS);
}

/* Each kind of collision, that is each pair of calls, is said once for this consumer. */
static void collided(struct consumer *c, const struct visit *v, const struct visit *o, enum note note)
{
    uint32_t pair = (uint32_t)v->call << 16 | (o->call + 1);
    for (int i = 0; i < COLLISIONS; i++) {
        if (c->collisions[i] == pair)
            return;
        if (c->collisions[i])
            continue;
        c->collisions[i] = pair;
        report_variant(COLLISION, note, c, v->call, o, -1);
        return;
    }
}

/* observe: never waits, never changes anything. */
static enum admission look_on(struct consumer *c, struct visit *v)
{
    slow_take(c);
    for (struct visit *o = c->inside; o; o = o->next)
        if (conflicts(c, v, o)) {
            flight_met(v, o);
            collided(c, v, o, NOTE_NONE);
        }
    link_inside(c, v);
    atomic_store(&v->state, INSIDE);
    if (v->class == CLOSE && c->life == OPEN)
        atomic_store(&c->life, CLOSING);
    slow_drop(c);
    return ADMITTED;
}

/* refuse: does this call meet another one? */
static bool collides(struct consumer *c, const struct visit *v)
{
    if (rdg_options.mode != REFUSE || v->class > CALL || c->life != OPEN)
        return false;
    const struct visit *o = blocker(c, v);
    if (o) {
        flight_met(v, o);
        collided(c, v, o, COLLISION_REFUSED);
    }
    return o != NULL;
}

static enum admission not_at_once(struct consumer *c, struct visit *v)
{
    struct visit *o = blocker(c, v);
    if (v->timed || v->class == CLOSE || v->class == DEATH)
        return await(c, v);
    if (v->class == POLL) {
        step_out(c, v);
        atomic_store(&v->state, OUTSIDE);
        return takes_beside(c, v) ? ADMITTED : OUT_OF_TIME;
    }
    /* A call that asks not to wait: beside the others, as it would be without us, unless that loses messages.
     */
    if (o && batch_hole(v, o)) {
        v->deadline = now_ns() + ZERO_BATCH;
        enum admission a = await(c, v);
        if (a != OUT_OF_TIME)
            return a;
    } else {
        step_out(c, v);
    }
    admit(c, v);
    atomic_store(&v->state, INSIDE);
    return ADMITTED;
}

enum admission gate_enter(struct consumer *c, struct visit *v)
{
    atomic_store_explicit(&v->state, INSIDE, memory_order_relaxed);
    uintptr_t nobody = 0;
    if ((rdg_options.mode == SERIALIZE || rdg_options.mode == REFUSE) && v->class <= CALL && !v->alien &&
        atomic_compare_exchange_strong(&c->word, &nobody, (uintptr_t)v | FAST)) {
        if (v->deadline != FOREVER && v->timed)
            v->deadline += coarse_ns();
        return ADMITTED;
    }
    if (v->deadline != FOREVER)
        v->deadline += now_ns();
    if (rdg_options.mode == OBSERVE)
        return look_on(c, v);
    if (c->life == CLOSING_QUEUE)
        gate_is_closed(c);
    slow_take(c);
    enum admission a;
    int code = standing(c, v, false);
    if (code == FINE && collides(c, v)) /* before a yield could send the other one away */
        code = RD_KAFKA_RESP_ERR__CONFLICT;
    if (code != FINE) {
        v->code = code;
        atomic_store(&v->state, REFUSED);
        a = REFUSED_IT;
    } else if (c->life == CLOSING_QUEUE && v->class == CALL) {
        admit(c, v); /* the answer that everybody waits for, or asked for by who has yet to answer */
        a = ADMITTED;
    } else {
        line_up(c, v, false);
        settle(c);
        a = v->state == INSIDE ? ADMITTED : v->state == REFUSED ? REFUSED_IT : not_at_once(c, v);
    }
    slow_drop(c);
    return a;
}

/* What a call from inside a callback is told while the handle is being closed. The closing thread itself may
 * do what its callback is there for, but once the rebalance is answered a pause or seek would leave a barrier
 * on a queue that nobody polls, with a reference that destroy waits for (librdkafka rdkafka_partition.c
 * rd_kafka_toppar_op_version_bump); and its poll could take the terminate that the close waits for. Another
 * thread's callback, which the close did not wait for, is told what any call is told, at once. */
static int nested_standing(const struct consumer *c, const struct visit *v)
{
    if (c->life != CLOSING && c->life != DESTROYING)
        return FINE;
    if (v->class == POLL)
        return v->alien || v->topic ? FINE : RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (atomic_load(&c->unanswered))
        return FINE;
    for (const struct visit *o = v->outer; o; o = o->outer)
        if (o->consumer == c && !o->object && (o->class == CLOSE || o->class == DEATH))
            return v->traits & BATCHX && !(v->traits & ANSWERS) ? RD_KAFKA_RESP_ERR__DESTROY : FINE;
    return RD_KAFKA_RESP_ERR__DESTROY;
}

enum admission gate_nest(struct consumer *c, struct visit *v)
{
    enum admission a = ADMITTED;
    if (v->deadline != FOREVER)
        v->deadline += now_ns();
    slow_take(c);
    int code = rdg_options.mode == OBSERVE ? FINE : nested_standing(c, v);
    if (code != FINE) {
        v->code = code;
        atomic_store(&v->state, REFUSED);
        a = REFUSED_IT;
    } else if (v->traits & ANSWERS && (c->life == CLOSING || c->life == DESTROYING) &&
               rdg_options.mode != OBSERVE) {
        /* The answer lets the group terminate: borrowers must be out before it, or they lose their replies.
         */
        line_up(c, v, true);
        a = await(c, v);
    } else {
        link_inside(c, v);
        atomic_store(&v->state, INSIDE);
    }
    slow_drop(c);
    return a;
}

void gate_leave(struct visit *v)
{
    struct consumer *c = v->consumer;
    uintptr_t lonely = (uintptr_t)v | FAST;
    if (atomic_compare_exchange_strong(&c->word, &lonely, 0))
        return;
    slow_take(c);
    if (v->state == INSIDE)
        unlink_inside(c, v);
    atomic_store(&v->state, OUTSIDE);
    settle(c);
    slow_drop(c);
}

bool gate_again(struct visit *v, bool empty, int *timeout_ms)
{
    struct consumer *c = v->consumer;
    if (empty && atomic_load_explicit(&c->app_yield, memory_order_relaxed)) {
        atomic_store(&c->app_yield, false);
        return false;
    }
    if (v->guard || rdg_options.mode == OBSERVE ||
        atomic_load_explicit(&c->word, memory_order_relaxed) == ((uintptr_t)v | FAST)) {
        if (!empty || !v->cut)
            return false;
        *timeout_ms = rest_ms(v);
        return *timeout_ms != 0;
    }
    if (!empty)
        return false;
    slow_take(c);
    bool ours = take_stale(c, v->lane) | v->yielded | v->cut;
    bool again = false;
    v->yielded = false;
    bool theirs = v->free_return || v->cancel || c->deferred;
    if (v->state == INSIDE && ours && !theirs && (c->life == OPEN || c->life == CLOSING_QUEUE)) {
        if (!v->timed) {
            again = true; /* a poll of 0 took the flag: ask once more */
        } else if (rest_ms(v) != 0) {
            if (c->waiting[0].first || c->waiting[1].first || c->waiting[2].first) {
                unlink_inside(c, v);
                v->overtaken = 0;
                line_up(c, v, true);
                again = await(c, v) == ADMITTED;
            } else {
                again = true;
            }
        }
    }
    slow_drop(c);
    if (again)
        *timeout_ms = v->timed ? rest_ms(v) : 0;
    return again && (*timeout_ms != 0 || !v->timed || atomic_load(&c->told_by_event));
}

/* ------------------------------------------------------------------ callback windows */

void gate_window_begins(struct visit *v, enum callback which)
{
    struct consumer *c = v->consumer;
    v->callback = (uint8_t)(which + 1);
    atomic_fetch_add_explicit(&v->windows, 1, memory_order_relaxed);
    atomic_fetch_add(&v->window, 1);
    flight_window(v, FLIGHT_CALLBACK_BEGINS);
    if (v->guard || atomic_load(&c->word) == ((uintptr_t)v | FAST))
        return;
    slow_take(c);
    settle(c);
    slow_drop(c);
}

static bool close_in(const struct consumer *c, const struct visit *v)
{
    for (struct visit *o = c->inside; o && o != v; o = o->next)
        if (o->self != v->self && !o->object && (o->class == CLOSE || o->class == DEATH))
            return true;
    return false;
}

/* A poll whose callback ends beside a close must not go on popping: the queue now leads to the queue of the
 * close, and the terminate that it waits for. Nor should it wait for the close, which may be waiting for it.
 * rd_kafka_yield makes this thread's dispatcher return before it looks again (librdkafka 2.0.2 rdkafka.c
 * rd_kafka_consume0, rdkafka_queue.c rd_kafka_q_serve). A batch would lose a message that way, and queue_poll
 * does not look at it: these two wait. */
static bool send_home(struct consumer *c, struct visit *v)
{
    if (v->class != POLL || v->traits & BATCH || v->call == CALL_rd_kafka_queue_poll || v->state != INSIDE ||
        !c->lib->rd_kafka_yield || !close_in(c, v))
        return false;
    v->sent_home = v->free_return = v->passed = true;
    return true;
}

void gate_window_ends(struct visit *v)
{
    struct consumer *c = v->consumer;
    flight_window(v, FLIGHT_CALLBACK_ENDS);
    atomic_fetch_sub(&v->window, 1);
    if (v->guard || rdg_options.mode == OBSERVE || atomic_load(&c->word) == ((uintptr_t)v | FAST))
        return;
    slow_take(c);
    if (send_home(c, v)) {
        settle(c);
        slow_drop(c);
        c->lib->rd_kafka_yield(c->rk); /* only a flag of this thread */
        return;
    }
    int64_t now = now_ns();
    int64_t limit = wait_limit(now), since = now;
    while (v->state == INSIDE && borrower_in(c, v)) {
        atomic_store(&v->state, RETURNING);
        settle(c);
        if (v->state == INSIDE)
            break;
        now = now_ns();
        /* Going back into the library beside a borrower is what would happen without us, so a poll does it
         * when its time is up; not beside a close, whose terminate it could take, nor with a batch in hand.
         */
        bool bound = v->class == POLL && !(v->traits & BATCH) && !close_in(c, v);
        int64_t until = bound ? sooner(limit, v->timed ? v->deadline : now) : limit;
        if (now >= until) {
            if (until == limit)
                report(GATE_PASSED, c, v->call, c->inside, (now - since) / MS);
            v->passed = true;
        } else {
            slow_drop(c);
            futex_wait(&v->state, RETURNING, until, 0);
            slow_take(c);
        }
        if (v->state == RETURNING)
            atomic_store(&v->state, INSIDE);
    }
    settle(c);
    /* The handle was closed while the callback ran, destroyed by it, or given up (leaked): this poll has
     * nothing to wait for. */
    if (v->class == POLL && v->state == INSIDE && !v->yielded && v->timed &&
        (c->life == CLOSED || c->life == GONE || c->deferred) && send_yield(c, v))
        settle(c);
    slow_drop(c);
}

/* ------------------------------------------------------------------ guards */

bool guard_enter(struct consumer *c)
{
    atomic_fetch_add(&c->guards, 1);
    int life = atomic_load(&c->life);
    if (life < DESTROYING || (life == DESTROYING && atomic_load(&c->unanswered)) ||
        rdg_options.mode == OBSERVE)
        return true;
    guard_leave(c);
    return false;
}

static void tell_drainers(struct consumer *c)
{
    atomic_fetch_add(&c->guards_left, 1);
    futex_wake(&c->guards_left, INT32_MAX);
}

void guard_leave(struct consumer *c)
{
    if (atomic_fetch_sub(&c->guards, 1) == 1 && atomic_load(&c->life) >= DESTROYING)
        tell_drainers(c);
}

void guard_out(struct visit *v)
{
    struct consumer *c = v->consumer;
    if (v->object && object_left(v->object) == 0 && object_dead(v->object))
        tell_drainers(c);
    guard_leave(c);
}

/* ------------------------------------------------------------------ close and destroy */

/* Who did it and when, for those who come too late. */
static void ended_by(struct consumer *c, int call)
{
    c->killer_tid = rdg_self ? rdg_self->tid : 0;
    c->killed_at = now_ns();
    c->killer_call = rdg_calls[call].name;
}

void gate_closed(struct visit *v, int result, bool closed, bool queue_given)
{
    struct consumer *c = v->consumer;
    flight_closed(c, v->call, result);
    slow_take(c);
    c->close_result =
        c->given_up ? RD_KAFKA_RESP_ERR_NO_ERROR : result; /* for who waits until it is closed */
    ended_by(c, v->call);
    if (c->life == CLOSING || c->life == OPEN) {
        bool ended = closed || result == RD_KAFKA_RESP_ERR__DESTROY;
        bool goes_on = (queue_given && !result) || c->given_up;
        atomic_store(&c->life, goes_on && !closed ? CLOSING_QUEUE : ended || !result ? CLOSED : OPEN);
        c->closed_by_us = c->life != OPEN;
        c->closed_by_queue |= c->closed_by_us && queue_given;
        c->close_failed = queue_given && result;
    }
    settle(c);
    slow_drop(c);
}

bool gate_is_closed(struct consumer *c)
{
    if (c->life != CLOSING_QUEUE)
        return c->life == CLOSED || c->life == GONE;
    if (!c->lib->rd_kafka_consumer_closed || !guard_enter(c))
        return false;
    int closed = c->lib->rd_kafka_consumer_closed(c->rk);
    guard_leave(c);
    if (!closed)
        return false;
    slow_take(c);
    if (c->life == CLOSING_QUEUE)
        atomic_store(&c->life, CLOSED);
    settle(c);
    slow_drop(c);
    return true;
}

void gate_destroyed(struct consumer *c, int call)
{
    flight_gone(c, (uint16_t)call);
    slow_take(c);
    ended_by(c, call);
    c->deferred = NULL;
    atomic_store(&c->life, GONE);
    settle(c);
    slow_drop(c);
}

void gate_put_off(struct consumer *c, int flags)
{
    slow_take(c); /* from here on no call of it is lonely: the outermost one must see this */
    c->deferred_flags = flags;
    c->deferred = rdg_self;
    slow_drop(c);
}

void gate_idle_poll(int timeout_ms)
{
    _Atomic uint32_t never = 0;
    int64_t ms = timeout_ms < 0 || timeout_ms > 1000 ? 1000 : timeout_ms;
    int64_t until = now_ns() + ms * MS;
    while (ms && now_ns() < until)
        futex_wait(&never, 0, until, 1);
}

/* ------------------------------------------------------------------ threads that leave another way */

bool gate_cancel_poll(struct self *s)
{
    struct visit *v = s->top;
    struct consumer *c = v ? v->consumer : NULL;
    if (!c || v->class != POLL || v->guard || rdg_options.mode == OBSERVE || rdg_options.mode == OFF)
        return false;
    bool woken = false;
    slow_take(c);
    for (struct visit *o = c->inside; o; o = o->next) {
        if (o != v || lends(o) || !o->timed || o->state != INSIDE || !c->lib->rd_kafka_queue_yield ||
            c->life == CLOSING)
            continue;
        v->cancel = true;
        atomic_store(&s->cancel_wanted, true);
        if (!v->yielded)
            send_yield(c, v);
        woken = true;
        break;
    }
    settle(c);
    slow_drop(c);
    return woken;
}

void gate_abandon(struct self *s, uintptr_t frame, int finding)
{
    struct visit *v;
    while ((v = s->top) && v->frame < frame) {
        struct consumer *c = v->consumer;
        if (v->guard) {
            guard_out(v);
        } else {
            slow_take(c);
            if (v->state == WAITING)
                step_out(c, v);
            else if (v->state == INSIDE || v->state == RETURNING)
                unreachable(c, v, (enum finding)finding);
            atomic_store(&v->state, OUTSIDE);
            settle(c);
            slow_drop(c);
        }
        self_pop(s, v);
    }
}

void gate_thread_ends(struct self *s)
{
    gate_abandon(s, UINTPTR_MAX, OWNER_GONE);
}

/* ------------------------------------------------------------------ for the watchdog */

void gate_let_go(const struct self *s, int level, uint32_t sequence)
{
    struct visit *v = (struct visit *)&s->visits[level];
    struct consumer *c = v->consumer;
    if (!c || v->class != DEATH || v->object)
        return;
    slow_take(c);
    bool there = atomic_load(&v->sequence) == sequence && v->consumer == c;
    if (there && (v->state == WAITING || v->draining)) {
        atomic_store(&v->let_go, true);
        futex_wake(&v->state, 1);
        tell_drainers(c);
    }
    slow_drop(c);
}

struct guards_of {
    const struct consumer *consumer;
    const struct self *waiter;
    struct gate_edge *edges;
    int count, most;
};

static int draw(struct gate_edge *edges, int count, int most, const struct self *from, const struct self *to,
                int kind)
{
    if (count < most && from != to)
        edges[count++] = (struct gate_edge){from, to, kind};
    return count;
}

static void draw_guard(struct self *s, void *with)
{
    struct guards_of *g = with;
    for (int i = 0; i < s->used && i < VISITS; i++)
        if (s->visits[i].guard && s->visits[i].consumer == g->consumer)
            g->count = draw(g->edges, g->count, g->most, g->waiter, s, EDGE_GUARD);
}

int gate_edges(struct consumer *c, struct gate_edge *edges, int most)
{
    int n = 0;
    if (!(atomic_load(&c->word) & SLOW))
        return 0; /* nobody has met anybody */
    slow_take(c);
    const struct self *draining = NULL;
    for (struct visit *v = c->inside; v; v = v->next) {
        if (v->draining)
            draining = v->self;
        /* An owner whose callback is over waits for those who came after it (borrower_in). */
        if (v->state == RETURNING)
            for (struct visit *o = c->inside; o && o != v; o = o->next)
                if (o->class != POLL && !o->object)
                    n = draw(edges, n, most, v->self, o->self, EDGE_BORROWER);
    }
    for (int i = 0; i < 3; i++) {
        for (struct visit *v = c->waiting[i].first; v; v = v->next) {
            bool blocked = false;
            if (v->deadline != FOREVER)
                continue; /* resolves by itself */
            for (struct visit *o = c->inside; o; o = o->next) {
                if (!conflicts(c, v, o))
                    continue;
                blocked = true;
                n = draw(edges, n, most, v->self, o->self, EDGE_GATE);
            }
            if (!blocked && v->prev)
                n = draw(edges, n, most, v->self, v->prev->self, EDGE_GATE);
        }
    }
    slow_drop(c);
    if (draining) {
        struct guards_of g = {c, draining, edges, n, most};
        self_each(draw_guard, &g);
        n = g.count;
    }
    return n;
}

/* ------------------------------------------------------------------ records */

void gate_reset(struct consumer *c)
{
    struct consumer *made_before = c->made_before;
    memset((void *)c, 0, sizeof(*c));
    c->made_before = made_before;
}

bool gate_is_idle(struct consumer *c)
{
    return !c->inside && !c->waiting[0].first && !c->waiting[1].first && !c->waiting[2].first && !c->guards &&
           !c->yielding;
}

void gate_after_fork(struct consumer *c)
{
    c->mu.word = 0;
    c->inside = NULL;
    memset(c->waiting, 0, sizeof(c->waiting));
    c->yielding = 0;
    c->guards = 0;
    c->close_clock = 0;
    c->flight = NULL; /* the parent's */
    c->forked = true;
    atomic_store(&c->word, SLOW);
}
