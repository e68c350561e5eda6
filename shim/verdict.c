/*
 * verdict.c: from a snapshot to findings. Pure: it reads the snapshot and nothing else, keeps nothing, and
 * takes nothing in it for granted: every index and count is checked. It must not allocate or print; what a
 * verdict is called in words is report.c's business.
 */
#include "verdict.h"
#include "call.h"

#include <string.h>

#define MARGIN_MS 1000   /* a call may return so much later than its timeout says */
#define STEPS     100000 /* of one search for loops: a snapshot that needs more is not real */

/* ------------------------------------------------------------------ the ledger */

bool call_destroys(int call)
{
    return call == CALL_rd_kafka_destroy || call == CALL_rd_kafka_destroy_flags;
}

bool call_closes(int call)
{
    return call == CALL_rd_kafka_consumer_close || call == CALL_rd_kafka_consumer_close_queue;
}

bool verdict_unanswered(const struct seen_consumer *c)
{
    const struct seen_rebalance *r = &c->rebalance;
    return r->code && !r->answered && (r->code == CODE_REVOKE || (c->cooperative && !r->by_event));
}

enum note verdict_owes(const struct seen_consumer *c, bool destroy)
{
    if (verdict_unanswered(c))
        return OWES_ANSWER;
    /* These hold up a destroy, topics and queues do not, and nothing of it holds up a close. */
    if (destroy &&
        (c->debt[DEBT_MESSAGE].count > 0 || c->debt[DEBT_EVENT].count > 0 || c->debt[DEBT_LIST].count > 0))
        return OWES_OBJECTS;
    return OWES_NOTHING;
}

enum { ON_CLOSE = 1, ON_DESTROY = 2, ON_CALL = 4 };

static int hint(int version, int on)
{
    static const struct {
        int from, to, on;
    } defects[] = {
#define DEFECT(number, from, to, text, on, what) {from, to, on},
#include "defects.def"
    };
    for (int i = 0; i < (int)(sizeof(defects) / sizeof(*defects)); i++)
        if (version > 0 && version >= defects[i].from && version < defects[i].to && on & defects[i].on)
            return i + 1;
    return 0;
}

/* ------------------------------------------------------------------ what is a long time */

static bool waits(const struct seen_call *k)
{
    return k->state == SEEN_WAITING || k->state == SEEN_RETURNING;
}

/* Its own timeout will end it, or has only just. */
static bool in_time(const struct seen_call *k)
{
    return k->finite && k->timeout_left > -MARGIN_MS;
}

/* For how long this call has stood where it should not; -1: it does not. */
static int64_t stuck_for(const struct seen_call *k)
{
    if (k->state == SEEN_RETURNING)
        return k->waiting;
    if (k->callback)
        return k->callback_age;
    if (in_time(k))
        return -1;
    if (k->state == SEEN_WAITING)
        return k->waiting;
    /* a poll that finds nothing may do so for ever */
    if (k->state != SEEN_INSIDE || (k->class == POLL && !k->finite))
        return -1;
    return k->class == POLL ? -k->timeout_left : k->age;
}

static bool long_stuck(const struct seen_call *k, const struct limits *l)
{
    int64_t ms = stuck_for(k);
    return ms >= 0 && ms >= l->stuck_ms;
}

static bool in_callback(const struct seen_thread *t, int consumer, int callback)
{
    for (int i = 0; i < calls_of(t); i++)
        if (t->call[i].consumer == consumer && t->call[i].callback == callback + 1)
            return true;
    return false;
}

/* Whom an end of a consumer waits for although no lock says so: the callback that owes the answer to a
 * rebalance. -1: nobody that is known. */
static int answerer(const struct snapshot *s, int thread)
{
    const struct seen_thread *t = thread_at(s, thread);
    const struct seen_call *k = t ? innermost(t) : NULL;
    if (!k || k->state != SEEN_INSIDE || k->callback || (!call_closes(k->call) && !call_destroys(k->call)))
        return -1;
    const struct seen_consumer *c = consumer_at(s, k->consumer);
    if (!c || !verdict_unanswered(c) || c->rebalance.by_event || c->rebalance.returned)
        return -1;
    for (int i = 0; i < seen_count(s->threads, s->thread); i++)
        if (i != thread && s->thread[i].tid == c->rebalance.tid &&
            in_callback(&s->thread[i], k->consumer, CB_rebalance_cb))
            return i;
    return -1;
}

/* ------------------------------------------------------------------ loops */

/* The edge binds: what waits along it will not give up by itself. */
static bool binds(const struct snapshot *s, const struct edge *e)
{
    const struct seen_thread *t = thread_at(s, e->from);
    if (!t || !thread_at(s, e->to) || e->kind > EDGE_ANSWER)
        return false;
    if (e->kind == EDGE_MUTEX)
        return true;
    const struct seen_call *k = innermost(t);
    return e->from != e->to && k && !(e->kind == EDGE_GATE && in_time(k));
}

struct search {
    const struct snapshot *s;
    struct verdict *v;
    int steps;
};

static bool reaches(struct search *x, int start, int at);

static bool step(struct search *x, int start, int to, int edge)
{
    struct verdict *v = x->v;
    if (to < start || (to != start && v->parties == PARTIES))
        return false; /* found from its least thread alone, so only once */
    for (int i = 1; i < v->parties; i++)
        if (v->party[i] == to)
            return false;
    v->edge[v->edges++] = (short)edge;
    if (to == start)
        return true;
    v->party[v->parties++] = (short)to;
    if (reaches(x, start, to))
        return true;
    v->parties--;
    v->edges--;
    return false;
}

static bool reaches(struct search *x, int start, int at)
{
    const struct snapshot *s = x->s;
    for (int i = 0; i < seen_count(s->edges, s->edge) && x->steps > 0; i++, x->steps--)
        if (s->edge[i].from == at && binds(s, &s->edge[i]) && step(x, start, s->edge[i].to, i))
            return true;
    if (x->steps <= 0)
        return false;
    x->steps--;
    int to = answerer(s, at);
    return to >= 0 && step(x, start, to, -1);
}

static int64_t waited(const struct snapshot *s, const struct verdict *v, int i)
{
    const struct seen_thread *t = thread_at(s, v->party[i]);
    const struct seen_call *k = innermost(t);
    const struct edge *e = edge_at(s, v->edge[i]);
    if (e && e->kind == EDGE_MUTEX)
        return t->asleep;
    return !k ? -1 : waits(k) && k->waiting >= 0 ? k->waiting : k->age;
}

/* T1 is whose callback it is, if there is one: the report begins where the loop began. */
static void turn(const struct snapshot *s, struct verdict *v)
{
    struct verdict old = *v;
    int first = 0;
    int64_t age = -1;
    for (int i = 0; i < old.parties; i++) {
        const struct seen_thread *t = thread_at(s, old.party[i]);
        if (calls_of(t) && t->call[0].age > age) {
            age = t->call[0].age;
            first = i;
        }
    }
    for (int i = 0; i < old.parties; i++) {
        v->party[i] = old.party[(first + i) % old.parties];
        v->edge[i] = old.edge[(first + i) % old.parties];
    }
}

static void describe_loop(const struct snapshot *s, struct verdict *v)
{
    bool mutex = false, answer = false;
    turn(s, v);
    v->consumer = -1;
    v->call = CALL_COUNT;
    v->age = -1;
    for (int i = 0; i < v->parties; i++) {
        const struct edge *e = edge_at(s, v->edge[i]);
        const struct seen_thread *t = thread_at(s, v->party[i]);
        int64_t ms = waited(s, v, i);
        mutex |= e && e->kind == EDGE_MUTEX;
        answer |= !e || e->kind == EDGE_ANSWER;
        if (ms >= 0 && (v->age < 0 || ms < v->age))
            v->age = ms;
        for (int k = 0; k < calls_of(t) && v->consumer < 0; k++)
            if (consumer_at(s, t->call[k].consumer) && t->call[k].call < CALL_COUNT) {
                v->consumer = t->call[k].consumer;
                v->call = t->call[k].call;
            }
    }
    v->note = v->parties == 1 ? LOOP_SELF : answer ? LOOP_ANSWER : mutex ? LOOP_MUTEX : LOOP_GATES;
}

/* ------------------------------------------------------------------ the list */

struct list {
    const struct snapshot *s;
    const struct limits *l;
    struct verdict *out;
    int used, most;
};

static bool party_of(const struct verdict *v, int thread)
{
    for (int i = 0; i < v->parties; i++)
        if (v->party[i] == thread)
            return true;
    return false;
}

static struct verdict *add(struct list *x, enum finding f, int consumer)
{
    if (x->used >= x->most)
        return NULL;
    struct verdict *v = &x->out[x->used++];
    *v = (struct verdict){.finding = f, .consumer = (short)consumer, .call = CALL_COUNT, .age = -1};
    return v;
}

static void join(struct verdict *v, int thread)
{
    if (v->parties < PARTIES && !party_of(v, thread))
        v->party[v->parties++] = (short)thread;
}

static void deadlocks(struct list *x)
{
    struct verdict v;
    struct search search = {x->s, &v, STEPS};
    for (int i = 0; i < seen_count(x->s->edges, x->s->edge) + seen_count(x->s->threads, x->s->thread); i++) {
        /* a loop has a least thread, and an edge leaves it: one of the snapshot's, or one of ours */
        int edges = seen_count(x->s->edges, x->s->edge), start = i < edges ? x->s->edge[i].from : i - edges;
        if (i < edges ? !binds(x->s, &x->s->edge[i]) : answerer(x->s, start) < 0)
            continue;
        bool known = false;
        v = (struct verdict){.finding = DEADLOCK, .parties = 1, .party = {(short)start}};
        for (int k = 0; k < x->used; k++)
            known |= party_of(&x->out[k], start);
        if (known || start > INT16_MAX || !reaches(&search, start, start))
            continue;
        for (int k = 0; k < x->used; k++)
            for (int p = 0; p < v.parties; p++)
                known |= party_of(&x->out[k], v.party[p]);
        if (known || x->used >= x->most)
            continue;
        describe_loop(x->s, &v);
        x->out[x->used++] = v;
    }
}

/* Whom this thread waits for, by any edge; -1: nobody that is known. */
static int next_of(const struct snapshot *s, int thread)
{
    for (int i = 0; i < seen_count(s->edges, s->edge); i++)
        if (s->edge[i].from == thread && s->edge[i].to != thread && thread_at(s, s->edge[i].to))
            return s->edge[i].to;
    return answerer(s, thread);
}

/* Does it wait, however indirectly, for a thread that has been reported? */
static bool is_told(const struct list *x, int thread)
{
    for (int hops = 0; thread >= 0 && hops < PARTIES; hops++, thread = next_of(x->s, thread))
        for (int k = 0; k < x->used; k++)
            if (x->out[k].finding <= STUCK_CALL || x->out[k].finding == CLOSE_STUCK ||
                x->out[k].finding == DESTROY_STUCK) {
                if (party_of(&x->out[k], thread))
                    return true;
            }
    return false;
}

/* Those whom the first party waits for, and then those who wait for any of them. */
static void gather(const struct snapshot *s, struct verdict *v)
{
    for (int t = next_of(s, v->party[0]), hops = 0; t >= 0 && hops < PARTIES; t = next_of(s, t), hops++)
        join(v, t);
    for (int i = 0; i < seen_count(s->edges, s->edge) && v->parties < PARTIES; i++)
        if (party_of(v, s->edge[i].to) && thread_at(s, s->edge[i].from))
            join(v, s->edge[i].from);
}

/* The first call of the thread, from the outside, that is stuck; -1: none. */
static int stuck_level(const struct seen_thread *t, const struct limits *l)
{
    for (int i = 0; i < calls_of(t); i++)
        if (t->call[i].call < CALL_COUNT && long_stuck(&t->call[i], l))
            return i;
    return -1;
}

/* Another thread that is inside librdkafka with the same consumer; -1: none. */
static int beside(const struct snapshot *s, int thread, int consumer)
{
    for (int i = 0; i < seen_count(s->threads, s->thread) && i <= INT16_MAX; i++)
        for (int k = 0; i != thread && k < calls_of(&s->thread[i]); k++) {
            const struct seen_call *call = &s->thread[i].call[k];
            if (call->consumer == consumer && call->state == SEEN_INSIDE && !call->guard)
                return i;
        }
    return -1;
}

/* The close or destroy owes nothing: is it that others were in its way? */
static enum note in_the_way(const struct snapshot *s, struct verdict *v, int thread,
                            const struct seen_call *call)
{
    const struct seen_consumer *c = consumer_at(s, call->consumer);
    int other = beside(s, thread, call->consumer);
    if (other >= 0) {
        join(v, other);
        return END_BESIDE;
    }
    bool closed = c->life == CLOSED && c->ended_age >= 0 && c->ended_age < call->age;
    return closed && call_closes(call->call) ? END_TWICE : OWES_NOTHING;
}

/* Has the callback that this call runs answered the rebalance, and waits for librdkafka's reply? */
static bool answers_in(const struct seen_thread *t, int k)
{
    for (k++; k < calls_of(t); k++)
        if (t->call[k].call < CALL_COUNT && rdg_calls[t->call[k].call].traits & ANSWERS &&
            t->call[k].state == SEEN_INSIDE)
            return true;
    return false;
}

static void ends(struct list *x)
{
    for (int i = 0; i < seen_count(x->s->threads, x->s->thread) && i <= INT16_MAX; i++) {
        const struct seen_thread *t = &x->s->thread[i];
        for (int k = 0; k < calls_of(t); k++) {
            const struct seen_call *call = &t->call[k];
            const struct seen_consumer *c = consumer_at(x->s, call->consumer);
            if (!c || c->forked || call->state != SEEN_INSIDE || call->age < x->l->stuck_ms ||
                call->age < 0 || (!call_closes(call->call) && !call_destroys(call->call)) || is_told(x, i))
                continue;
            bool destroy = call_destroys(call->call);
            struct verdict *v = add(x, destroy ? DESTROY_STUCK : CLOSE_STUCK, call->consumer);
            if (!v)
                return;
            join(v, i);
            v->note = !call->callback    ? verdict_owes(c, destroy)
                      : answers_in(t, k) ? END_NO_REPLY
                                         : END_CALLBACK;
            if (v->note == OWES_NOTHING)
                v->note = in_the_way(x->s, v, i, call);
            gather(x->s, v);
            v->call = call->call;
            v->level = (short)k;
            v->age = call->age;
            v->limit = x->l->stuck_ms;
            if (v->note == OWES_NOTHING)
                v->hint = hint(c->version, destroy ? ON_DESTROY : ON_CLOSE);
            break;
        }
    }
}

static void stuck(struct list *x)
{
    for (int i = 0; i < seen_count(x->s->threads, x->s->thread) && i <= INT16_MAX; i++) {
        int root = i;
        if (stuck_level(&x->s->thread[i], x->l) < 0)
            continue;
        for (int t = next_of(x->s, i), hops = 0; t >= 0 && hops < PARTIES; t = next_of(x->s, t), hops++)
            if (stuck_level(&x->s->thread[t], x->l) >= 0)
                root = t;
        const struct seen_thread *t = thread_at(x->s, root);
        int level = stuck_level(t, x->l);
        const struct seen_call *call = &t->call[level];
        const struct seen_consumer *c = consumer_at(x->s, call->consumer);
        bool told = !c || c->forked || is_told(x, root) || is_told(x, i);
        for (int k = 0; k < x->used; k++) /* one a consumer */
            told |= x->out[k].consumer == call->consumer && x->out[k].finding != DEADLOCK;
        if (told)
            continue;
        struct verdict *v = add(x, STUCK_CALL, call->consumer);
        if (!v)
            return;
        join(v, root);
        gather(x->s, v);
        v->call = call->call;
        v->level = (short)level;
        v->age = stuck_for(call);
        v->limit = x->l->stuck_ms;
        v->note = call->state == SEEN_WAITING     ? STUCK_AT_GATE
                  : call->state == SEEN_RETURNING ? STUCK_RETURNING
                  : !call->callback               ? STUCK_INSIDE
                  : level + 1 < calls_of(t)       ? STUCK_NESTED
                                                  : STUCK_CALLBACK;
        if (v->note == STUCK_INSIDE)
            v->hint = hint(c->version, ON_CALL);
    }
}

static int thread_of(const struct snapshot *s, int tid)
{
    for (int i = 0; tid > 0 && i < seen_count(s->threads, s->thread) && i <= INT16_MAX; i++)
        if (s->thread[i].tid == tid)
            return i;
    return -1;
}

static void unanswered(struct list *x, int consumer)
{
    const struct seen_consumer *c = consumer_at(x->s, consumer);
    const struct seen_rebalance *r = &c->rebalance;
    if (!r->code || r->answered || r->age < 0 || r->age < x->l->stuck_ms || c->life >= CLOSED ||
        (!r->returned && !r->by_event)) /* while the callback runs it is the callback that is slow */
        return;
    for (int i = 0; i < x->used; i++)
        if (x->out[i].consumer == consumer &&
            (x->out[i].finding == CLOSE_STUCK || x->out[i].finding == DESTROY_STUCK))
            return;
    struct verdict *v = add(x, REBALANCE_UNANSWERED, consumer);
    if (!v)
        return;
    if (thread_of(x->s, r->tid) >= 0)
        join(v, thread_of(x->s, r->tid));
    v->age = r->age;
    v->limit = x->l->stuck_ms;
    v->note = !r->by_event ? ANSWER_LATE : r->returned ? ANSWER_LATE_EVENT : ANSWER_LATE_HELD;
}

static void poll_gap(struct list *x, int consumer)
{
    const struct seen_consumer *c = consumer_at(x->s, consumer);
    int64_t most = c->max_poll_ms;
    if (!c->subscribed || c->life != OPEN || most <= 0 || c->last_poll <= 0 || c->last_poll < most - most / 5)
        return;
    struct verdict *v = add(x, c->last_poll < most ? POLL_GAP : POLL_EXCEEDED, consumer);
    if (!v)
        return;
    int poller = thread_of(x->s, c->poll_tid);
    const struct seen_thread *t = thread_at(x->s, poller);
    const struct seen_call *k = t ? innermost(t) : NULL;
    v->age = c->last_poll;
    v->limit = most;
    v->note = !t || t->sleep == SLEEP_GONE                                              ? POLLER_GONE
              : !k                                                                      ? POLLER_OUTSIDE
              : k->consumer == consumer && k->class == POLL && k->state == SEEN_WAITING ? POLLER_AT_GATE
                                                                                        : POLLER_INSIDE;
    if (t) {
        join(v, poller);
        gather(x->s, v);
    }
    if (k && k->call < CALL_COUNT)
        v->call = k->call;
}

int verdicts(const struct snapshot *s, const struct limits *l, struct verdict *out, int most)
{
    struct list x = {s, l, out, 0, most};
    deadlocks(&x);
    ends(&x);
    stuck(&x);
    for (int i = 0; i < seen_count(s->consumers, s->consumer) && i <= INT16_MAX; i++)
        if (!s->consumer[i].forked)
            unanswered(&x, i);
    for (int i = 0; i < seen_count(s->consumers, s->consumer) && i <= INT16_MAX; i++)
        if (!s->consumer[i].forked)
            poll_gap(&x, i);
    return x.used;
}

/* ------------------------------------------------------------------ seen again */

static int tid_at(const struct snapshot *s, const struct verdict *v, int i)
{
    const struct seen_thread *t = i < v->parties && i < PARTIES ? thread_at(s, v->party[i]) : NULL;
    return t ? t->tid : 0;
}

static bool loop_same(const struct snapshot *sa, const struct verdict *a, const struct snapshot *sb,
                      const struct verdict *b)
{
    int n = a->parties;
    if (n != b->parties || n < 1 || n > PARTIES)
        return false;
    for (int from = 0; from < n; from++) {
        bool same = true;
        for (int i = 0; i < n && same; i++) {
            const struct edge *x = edge_at(sa, a->edge[i]), *y = edge_at(sb, b->edge[(from + i) % n]);
            same = tid_at(sa, a, i) == tid_at(sb, b, (from + i) % n) &&
                   (x ? x->kind : EDGE_ANSWER) == (y ? y->kind : EDGE_ANSWER) &&
                   (x ? x->mutex : 0) == (y ? y->mutex : 0);
        }
        if (same)
            return true;
    }
    return false;
}

bool verdict_same(const struct snapshot *sa, const struct verdict *a, const struct snapshot *sb,
                  const struct verdict *b)
{
    const struct seen_consumer *x = consumer_at(sa, a->consumer), *y = consumer_at(sb, b->consumer);
    if (a->finding != b->finding)
        return false;
    if (a->finding == DEADLOCK)
        return loop_same(sa, a, sb, b);
    if (!x != !y || (x && (strncmp(x->name, y->name, sizeof(x->name)) != 0 || x->made_tid != y->made_tid)))
        return false;
    if (a->finding == REBALANCE_UNANSWERED || a->finding == POLL_GAP || a->finding == POLL_EXCEEDED)
        return true; /* whatever its threads do meanwhile */
    /* who waits for it comes and goes */
    return a->call == b->call && tid_at(sa, a, 0) == tid_at(sb, b, 0);
}
