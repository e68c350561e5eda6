/*
 * report.c: a verdict about a snapshot in words. Pure: bytes into a buffer, from the snapshot, the verdict
 * and the tables findings.def and defects.def. It must not allocate, look at the process or trust an index;
 * what comes from the application is printed escaped, and what is not known is not printed.
 */
#include "report.h"
#include "call.h"
#include "page.h"

#include <string.h>

#define LABELS 16
#define MORE   6 /* threads that wait for those of the finding, shown beside them */

static const struct {
    const char *code;
    enum severity severity;
} findings[] = {
#define FINDING(NAME, code, severity) {code, SEVERITY_##severity},
#include "findings.def"
};

static const struct words {
    int finding, note;
    const char *says, *why, *what_to_do, *how_sure;
} words[] = {
#define WORDS(NAME, note, says, why, what_to_do, how_sure) {NAME, note, says, why, what_to_do, how_sure},
#include "findings.def"
};

static const struct defect {
    int number;
    const char *fixed, *what;
} defects[] = {
#define DEFECT(number, from, to, text, on, what) {number, text, what},
#include "defects.def"
};

#define COUNT(a) ((int)(sizeof(a) / sizeof(*(a))))

static const char *const severities[] = {"info", "warning", "error"};
static const char *const callbacks[] = {
#define X(name) #name,
    FOR_CALLBACKS(X)
#undef X
};
static const char *const lives[] = {"open", "closing", "closing", "closed", "being destroyed", "destroyed"};
static const char *const states[] = {"waiting", "inside", "returning"};
static const char *const sleeps[] = {"unknown", "running", "mutex", "futex",   "poll", "read",
                                     "time",    "wait",    "disk",  "stopped", "gone"};
static const char *const doings[] = {NULL,
                                     "is running",
                                     "sleeps in a pthread mutex",
                                     "sleeps in a futex (condition variable, join or a lock)",
                                     "sleeps in poll, select or epoll",
                                     "sleeps in a read from a file or socket",
                                     "sleeps for a time of its own choice",
                                     "waits for a child process",
                                     "is in an uninterruptible wait (disk)",
                                     "is stopped by a signal or a debugger",
                                     "has ended"};
static const char *const froms[] = {NULL, "taken when the wait began", "asked of the thread just now", NULL};
static const char *const edge_names[] = {"gate", "borrower", "guard", "mutex", "answer"};
static const char *const debts[][2] = {{"message", "messages"},
                                       {"event", "events"},
                                       {"offset list", "offset lists"},
                                       {"topic handle", "topic handles"},
                                       {"queue handle", "queue handles"}};

static const char *pick(const char *const *list, int n, int i)
{
    return i >= 0 && i < n ? list[i] : NULL;
}
#define PICK(list, i) pick(list, COUNT(list), i)

static const char *call_name(int call)
{
    return call >= 0 && call < CALL_COUNT ? rdg_calls[call].name : NULL;
}

/* ------------------------------------------------------------------ what there is to tell */

struct view {
    const struct snapshot *s;
    const struct verdict *v;
    const struct seen_consumer *c; /* NULL: none */
    const char *code;
    enum severity severity;
    const struct words *words;
    int thread[LABELS], threads, parties; /* T1 …: the parties, then who waits for them */
    int gate[LABELS], gates;              /* G1 … */
    uintptr_t mutex[LABELS];              /* M1 … */
    int mutexes;
};

static int label(const int *list, int n, int x)
{
    for (int i = 0; i < n; i++)
        if (list[i] == x)
            return i + 1;
    return 0;
}

static int mutex_label(const struct view *w, uintptr_t m)
{
    for (int i = 0; i < w->mutexes; i++)
        if (w->mutex[i] == m)
            return i + 1;
    return 0;
}

static void name_gate(struct view *w, int consumer)
{
    if (consumer_at(w->s, consumer) && w->gates < LABELS && !label(w->gate, w->gates, consumer))
        w->gate[w->gates++] = consumer;
}

static void name_thread(struct view *w, int t)
{
    if (thread_at(w->s, t) && w->threads < LABELS && !label(w->thread, w->threads, t))
        w->thread[w->threads++] = t;
}

static const struct seen_thread *party(const struct view *w, int i)
{
    return i < w->parties ? thread_at(w->s, w->thread[i]) : NULL;
}

static bool look(struct view *w, const struct snapshot *s, const struct verdict *v)
{
    *w = (struct view){.s = s, .v = v, .c = consumer_at(s, v->consumer)};
    if ((int)v->finding < 0 || (int)v->finding >= FINDINGS)
        return false;
    w->code = findings[v->finding].code;
    w->severity = findings[v->finding].severity;
    if (v->note == ANSWER_RETURNED || v->note == ANSWER_EVENT)
        w->severity = SEVERITY_INFO; /* it may yet be answered */
    for (int i = COUNT(words) - 1; i >= 0; i--)
        if (words[i].finding == (int)v->finding && (words[i].note == v->note || !w->words))
            w->words = &words[i];
    for (int i = 0; i < COUNT(words) && w->words->note != v->note; i++)
        if (words[i].finding == (int)v->finding) {
            w->words = &words[i];
            break;
        }
    for (int i = 0; i < v->parties && i < PARTIES; i++)
        name_thread(w, v->party[i]);
    w->parties = w->threads;
    for (int i = 0; i < seen_count(s->edges, s->edge) && w->threads < w->parties + MORE; i++)
        if (w->parties && label(w->thread, w->parties, s->edge[i].to))
            name_thread(w, s->edge[i].from);
    name_gate(w, v->consumer);
    for (int i = 0; i < w->threads; i++) {
        const struct seen_thread *t = thread_at(s, w->thread[i]);
        for (int k = 0; k < calls_of(t); k++)
            name_gate(w, t->call[k].consumer);
        if (t->sleep == SLEEP_MUTEX && t->futex && w->mutexes < LABELS && !mutex_label(w, t->futex))
            w->mutex[w->mutexes++] = t->futex;
    }
    for (int i = 0; i < v->edges && i < PARTIES; i++) {
        const struct edge *e = edge_at(s, v->edge[i]);
        if (e && e->kind == EDGE_MUTEX && w->mutexes < LABELS && !mutex_label(w, e->mutex))
            w->mutex[w->mutexes++] = e->mutex;
    }
    return true;
}

/* ------------------------------------------------------------------ pieces of sentences
 * Each says whether it had anything to say. */

static bool say(struct page *p, const char *s)
{
    if (s)
        page_add(p, s);
    return s != NULL;
}

static bool say_age(struct page *p, int64_t ms)
{
    if (ms >= 0)
        page_duration(p, ms);
    return ms >= 0;
}

static void say_label(struct page *p, char kind, int n)
{
    page_char(p, kind);
    page_number(p, n);
}

static bool quoted(struct page *p, const char *name, size_t most)
{
    if (!name[0])
        return false;
    page_char(p, '"');
    page_escaped(p, name, most);
    page_char(p, '"');
    return true;
}

static bool say_tid(struct page *p, int tid, const char *name)
{
    if (tid <= 0)
        return false;
    page_add(p, "thread~");
    page_number(p, tid);
    if (name && name[0]) {
        page_add(p, "~");
        quoted(p, name, sizeof(((struct seen_thread *)0)->name));
    }
    return true;
}

static bool say_thread(struct page *p, const struct seen_thread *t)
{
    return t && say_tid(p, t->tid, t->name);
}

static void say_consumer(struct page *p, const struct seen_consumer *c)
{
    page_add(p, c->name[0] ? "consumer~" : "a~consumer without a name");
    quoted(p, c->name, sizeof(c->name));
    if (c->group[0]) {
        page_add(p, " of group~");
        quoted(p, c->group, sizeof(c->group));
    }
}

static void plural(struct page *p, int64_t n, const char *one, const char *many)
{
    page_number(p, n);
    page_add(p, "~");
    page_add(p, n == 1 ? one : many);
}

static const char *kind_of(const struct seen_rebalance *r)
{
    return !r->code                 ? NULL
           : r->code == CODE_ASSIGN ? "ASSIGN"
           : r->code == CODE_REVOKE ? "REVOKE"
                                    : "rebalance";
}

static bool say_rebalance(struct page *p, const struct seen_rebalance *r)
{
    if (!say(p, kind_of(r)))
        return false;
    if (r->partitions >= 0) {
        page_add(p, " of~");
        plural(p, r->partitions, "partition", "partitions");
    }
    return true;
}

static bool say_place(struct page *p, const struct place *a)
{
    if (!a->address && !a->object[0])
        return false;
    if (a->object[0]) {
        page_escaped(p, a->object, sizeof(a->object));
        page_char(p, '+');
        page_hex(p, a->offset);
    } else {
        page_hex(p, a->address);
    }
    if (a->function[0]) {
        page_add(p, "~(");
        page_escaped(p, a->function, sizeof(a->function));
        page_char(p, ')');
    }
    return true;
}

static const char *code_name(int code)
{
    switch (code) {
    case -197: return "RD_KAFKA_RESP_ERR__DESTROY";
    case -186: return "RD_KAFKA_RESP_ERR__INVALID_ARG";
    case -185: return "RD_KAFKA_RESP_ERR__TIMED_OUT";
    case -179: return "RD_KAFKA_RESP_ERR__UNKNOWN_GROUP";
    case -173: return "RD_KAFKA_RESP_ERR__CONFLICT";
    case -172: return "RD_KAFKA_RESP_ERR__STATE";
    case -150: return "RD_KAFKA_RESP_ERR__FATAL";
    default: return NULL;
    }
}

static const char *callback_of(const struct seen_thread *t, int from)
{
    const char *name = NULL;
    for (int i = from < 0 ? 0 : from; t && i < calls_of(t); i++)
        if (t->call[i].callback)
            name = PICK(callbacks, t->call[i].callback - 1);
    return name;
}

static bool say_chain(struct page *p, const struct seen_thread *t, int from)
{
    bool any = false;
    for (int i = from < 0 ? 0 : from; t && i < calls_of(t); i++) {
        const char *name = call_name(t->call[i].call), *cb = PICK(callbacks, t->call[i].callback - 1);
        if (!name)
            continue;
        if (any)
            page_add(p, " > ");
        page_add(p, name);
        any = true;
        if (cb) {
            page_add(p, " > ");
            page_add(p, cb);
        }
    }
    return any;
}

static bool say_doing(struct page *p, const struct view *w, const struct seen_thread *t)
{
    const char *doing = t && t->gil ? "waits for Python's interpreter lock"
                        : t         ? PICK(doings, t->sleep)
                                    : NULL;
    if (!say(p, doing))
        return false;
    if (t->sleep == SLEEP_MUTEX) {
        if (mutex_label(w, t->futex)) {
            page_add(p, ",~");
            say_label(p, 'M', mutex_label(w, t->futex));
        }
        if (t->mutex_owner > 0) {
            page_add(p, ", that thread~");
            page_number(p, t->mutex_owner);
            page_add(p, t->mutex_elsewhere ? " of another process holds" : " holds");
        }
    }
    if (t->asleep >= 0 && t->sleep != SLEEP_RUNNING && t->sleep != SLEEP_GONE) {
        page_add(p, ", for~");
        page_duration(p, t->asleep);
    }
    return true;
}

static bool say_holds(struct page *p, const struct seen_consumer *c)
{
    bool any = false;
    for (int i = 0; c && i < DEBTS; i++) {
        if (c->debt[i].count <= 0)
            continue;
        if (any)
            page_add(p, ", ");
        if (c->debt[i].more)
            page_add(p, "at least ");
        plural(p, c->debt[i].count, debts[i][0], debts[i][1]);
        any = true;
    }
    return any;
}

static bool say_oldest(struct page *p, const struct seen_consumer *c)
{
    for (int i = 0; c && i < DEBTS; i++) {
        const struct debt *d = &c->debt[i];
        const char *name = call_name(d->call);
        if (d->count <= 0 || !name)
            continue;
        page_add(p, "The oldest ");
        page_add(p, debts[i][0]);
        page_add(p, " came from ");
        page_add(p, name);
        if (d->tid > 0) {
            page_add(p, " in ");
            say_tid(p, d->tid, d->thread);
        }
        if (d->age >= 0) {
            page_add(p, ", ");
            page_duration(p, d->age);
            page_add(p, " ago");
        }
        return true;
    }
    return false;
}

static bool say_hint(struct page *p, const struct view *w)
{
    int i = w->v->hint - 1;
    if (i < 0 || i >= COUNT(defects))
        return false;
    page_add(p, "librdkafka ");
    page_escaped(p, w->c ? w->c->version_text : "", sizeof(w->c->version_text));
    page_add(p, " has a known defect that looks like this: ");
    page_add(p, defects[i].what);
    page_add(p, " (#");
    page_number(p, defects[i].number);
    page_add(p, ", fixed in ");
    page_add(p, defects[i].fixed);
    page_add(p, ")");
    return true;
}

static void say_call_in(struct page *p, const struct seen_thread *t)
{
    const struct seen_call *k = innermost(t);
    const char *name = k ? call_name(k->call) : NULL;
    page_add(p, name ? name : "no call of librdkafka");
    if (k && k->callback && callback_of(t, 0)) {
        page_add(p, ", in ");
        page_add(p, callback_of(t, 0));
    }
}

/* Why an edge of the loop cannot give way. */
static void say_edge(struct page *p, const struct view *w, int i)
{
    const struct verdict *v = w->v;
    const struct edge *e = edge_at(w->s, v->edge[i]);
    int kind = e ? e->kind : EDGE_ANSWER, to = (i + 1) % w->parties;
    const struct seen_thread *a = party(w, i), *b = party(w, to);
    const struct seen_call *k = innermost(a);
    say_label(p, 'T', i + 1);
    switch (kind) {
    case EDGE_MUTEX:
        page_add(p, " is in ");
        say_call_in(p, a);
        page_add(p, " and wants~");
        say_label(p, 'M', e ? mutex_label(w, e->mutex) : 0);
        page_add(p, a == b ? ", which it has locked itself" : ", which~");
        if (a != b) {
            say_label(p, 'T', to + 1);
            page_add(p, " has locked");
        }
        break;
    case EDGE_ANSWER:
        page_add(p, " is in ");
        say_call_in(p, a);
        page_add(p, ", which returns only when the rebalance is answered;~");
        say_label(p, 'T', to + 1);
        page_add(p, " got it and is still in its callback");
        break;
    case EDGE_GUARD:
        page_add(p, " is in ");
        say_call_in(p, a);
        page_add(p, " and waits until~");
        say_label(p, 'T', to + 1);
        page_add(p, " has left ");
        say_call_in(p, b);
        break;
    default:
        page_add(p, kind == EDGE_BORROWER ? "'s callback is over, but it cannot leave " : " wants to enter ");
        say_call_in(p, a);
        page_add(p, ", and at gate~");
        say_label(p, 'G', k ? label(w->gate, w->gates, e ? e->consumer : k->consumer) : 0);
        page_add(p, " it waits for~");
        say_label(p, 'T', to + 1);
        page_add(p, ", which is in ");
        say_call_in(p, b);
    }
    page_add(p, ".");
}

/* What T(i) wants, in a loop. */
static void say_want(struct page *p, const struct view *w, int i)
{
    const struct edge *e = edge_at(w->s, w->v->edge[i]);
    const struct seen_call *k = innermost(party(w, i));
    int to = (i + 1) % w->parties;
    say_label(p, 'T', i + 1);
    if (!e || e->kind == EDGE_ANSWER) {
        page_add(p, "~wants an answer~from~");
    } else {
        page_add(p, e->kind == EDGE_MUTEX || e->kind == EDGE_GATE ? "~wants~" : "~waits at~");
        if (e->kind == EDGE_MUTEX)
            say_label(p, 'M', mutex_label(w, e->mutex));
        else
            say_label(p, 'G',
                      label(w->gate, w->gates,
                            consumer_at(w->s, e->consumer) ? e->consumer
                            : k                            ? k->consumer
                                                           : -1));
        page_add(p, e->kind == EDGE_MUTEX || e->kind == EDGE_GATE ? ",~held~by~" : "~for~");
    }
    say_label(p, 'T', to + 1);
}

static bool in_loop(const struct view *w)
{
    return w->v->finding == DEADLOCK && w->parties > 0 && w->v->edges == w->parties &&
           w->parties == w->v->parties;
}

/* ------------------------------------------------------------------ the words of findings.def */

static bool say_edges(struct page *p, const struct view *w)
{
    for (int i = 0; in_loop(w) && i < w->parties; i++) {
        if (i)
            page_add(p, " ");
        say_edge(p, w, i);
    }
    return in_loop(w);
}

static bool say_ended(struct page *p, const struct seen_consumer *c)
{
    if (!c || !c->ended_call)
        return false;
    page_escaped(p, c->ended_call, 64);
    page_add(p, " was called");
    if (c->ended_age >= 0) {
        page_add(p, " ");
        page_duration(p, c->ended_age);
        page_add(p, " ago");
    }
    if (c->ended_tid > 0) {
        page_add(p, " by ");
        say_tid(p, c->ended_tid, c->ended_thread);
    }
    return true;
}

static bool is(const char *word, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(word, name, n) == 0;
}
#define IS(name) is(word, n, name)

static bool number(struct page *p, int64_t x)
{
    page_number(p, x);
    return true;
}

/* The words about threads and calls. */
static bool word_thread(struct page *p, const struct view *w, const char *word, size_t n, bool *known)
{
    const struct seen_thread *a = party(w, 0), *b = party(w, 1);
    const char *cb = callback_of(a, w->v->level);
    *known = true;
    if (IS("t1"))
        return say_thread(p, a);
    if (IS("t2"))
        return say_thread(p, b);
    if (IS("T1") || IS("T2")) {
        if (IS("T1") ? !a : !b)
            return false;
        say_label(p, 'T', word[1] - '0');
        return true;
    }
    if (IS("call2")) {
        if (!b || !innermost(b))
            return false;
        say_call_in(p, b);
        return true;
    }
    if (IS("inner")) {
        const struct seen_call *k = a ? innermost(a) : NULL;
        return k && calls_of(a) > w->v->level + 1 && say(p, call_name(k->call));
    }
    if (IS("chain"))
        return say_chain(p, a, w->v->level);
    if (IS("doing"))
        return say_doing(p, w, a);
    if (IS("cb")) {
        for (int i = 0; !cb && w->v->finding == DEADLOCK && i < w->parties; i++)
            cb = callback_of(party(w, i), 0);
        return say(p, cb);
    }
    if (IS("edges"))
        return say_edges(p, w);
    if (IS("n"))
        return number(p, w->parties);
    if (IS("mutex")) {
        for (int i = 0; i < w->v->edges && i < PARTIES; i++) {
            const struct edge *e = edge_at(w->s, w->v->edge[i]);
            if (e && e->kind == EDGE_MUTEX) {
                say_label(p, 'M', mutex_label(w, e->mutex));
                return true;
            }
        }
        return false;
    }
    *known = false;
    return false;
}

/* The words about the consumer. */
static bool word_consumer(struct page *p, const struct view *w, const char *word, size_t n)
{
    const struct seen_consumer *c = w->c;
    if (IS("on")) {
        if (c) {
            page_add(p, " on~");
            say_consumer(p, c);
        }
        return true;
    }
    if (!c)
        return false;
    const struct seen_rebalance *r = &c->rebalance;
    if (IS("rebalance") || (IS("owed") && !r->answered))
        return say_rebalance(p, r);
    if (IS("got"))
        return say_tid(p, r->tid, r->thread);
    if (IS("rage"))
        return say_age(p, r->age);
    if (IS("answers"))
        return say(p, r->code == CODE_REVOKE ? "rd_kafka_assign(rk, NULL)" : "rd_kafka_assign");
    if (IS("answering"))
        return say(p, r->code == CODE_REVOKE
                          ? "rd_kafka_assign(rk, NULL) (cooperative: rd_kafka_incremental_unassign)"
                          : "rd_kafka_assign with its list (cooperative: rd_kafka_incremental_assign)");
    if (IS("answer"))
        return say(p, call_name(r->answer));
    if (IS("at"))
        return say_tid(p, r->answer_tid, r->answer_thread);
    if (IS("code")) {
        if (code_name(r->answer_code))
            return say(p, code_name(r->answer_code));
        page_add(p, "error~");
        return number(p, r->answer_code);
    }
    if (IS("list")) {
        if (r->answer_list >= 0)
            plural(p, r->answer_list, "partition", "partitions");
        return r->answer_list >= 0;
    }
    if (IS("ended"))
        return say_ended(p, c);
    if (IS("poll"))
        return say_age(p, c->last_poll);
    if (IS("poller"))
        return say_tid(p, c->poll_tid, c->poll_thread) || say(p, "The thread that polls");
    if (IS("max"))
        return say_age(p, c->max_poll_ms);
    if (IS("holds"))
        return say_holds(p, c);
    if (IS("oldest"))
        return say_oldest(p, c);
    if (IS("version"))
        return w->v->hint > 0 && c->version_text[0] &&
               (page_escaped(p, c->version_text, sizeof(c->version_text)), true);
    if (IS("parent"))
        return c->made_pid > 0 && number(p, c->made_pid);
    return false;
}

/* Words of ours, up to where they end or another one begins. */
static void say_words(struct page *p, const char *from, const char *to)
{
    while (from < to)
        page_char(p, *from++);
}

static bool say_reason(struct page *p, const char *reason)
{
    const char *remedy = reason ? strstr(reason, "; ") : NULL;
    if (reason)
        say_words(p, reason, remedy ? remedy : reason + strlen(reason));
    return reason != NULL;
}

static bool say_remedy(struct page *p, const char *reason)
{
    const char *remedy = reason ? strstr(reason, "; ") : NULL;
    if (!remedy || !remedy[2])
        return false;
    remedy += 2;
    page_char(p, *remedy >= 'a' && *remedy <= 'z' ? (char)(*remedy - 'a' + 'A') : *remedy);
    say_words(p, remedy + 1, remedy + strlen(remedy));
    return true;
}

static bool fill(struct page *p, const struct view *w, const char *word, size_t n)
{
    bool known;
    if (IS("call"))
        return say(p, call_name(w->v->call)) || say(p, "A call");
    if (IS("age"))
        return say_age(p, w->v->age);
    if (IS("pid"))
        return number(p, w->s->pid);
    if (IS("hint"))
        return say_hint(p, w);
    if (IS("fixed"))
        return w->v->hint > 0 && w->v->hint <= COUNT(defects) && say(p, defects[w->v->hint - 1].fixed);
    if (IS("about"))
        return w->v->about && (page_escaped(p, w->v->about, 200), true);
    if (IS("reason"))
        return say_reason(p, w->v->reason);
    if (IS("remedy"))
        return say_remedy(p, w->v->reason);
    bool said = word_thread(p, w, word, n, &known);
    return known ? said : word_consumer(p, w, word, n);
}

/* Writes text up to `end`; false: a word in it is not known. */
static bool part(struct page *p, const struct view *w, const char *text, const char *end)
{
    bool all = true;
    while (text < end) {
        const char *close = *text == '{' ? memchr(text, '}', (size_t)(end - text)) : NULL;
        if (close) {
            all &= fill(p, w, text + 1, (size_t)(close - text) - 1);
            text = close + 1;
        } else {
            page_char(p, *text++);
        }
    }
    return all;
}

static void expand(struct page *p, const struct view *w, const char *text)
{
    while (*text) {
        const char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;
        if (!close) {
            part(p, w, text, text + strlen(text));
            return;
        }
        part(p, w, text, open);
        const char *bar = memchr(open, '|', (size_t)(close - open));
        struct page dry = {0};
        if (part(&dry, w, open + 1, bar ? bar : close))
            part(p, w, open + 1, bar ? bar : close);
        else if (bar)
            part(p, w, bar + 1, close);
        text = close + 1;
    }
}

static void say_summary(struct page *p, const struct view *w)
{
    page_add(p, w->code);
    page_add(p, ":");
    if (w->v->finding == COLLISION && party(w, 0) && party(w, 1) && innermost(party(w, 1))) {
        /* as the first line says it, which may have been too long for one line */
        page_add(p, "~");
        page_add(p, call_name(w->v->call) ? call_name(w->v->call) : "a call");
        page_add(p, "~of~T1~met~");
        say_call_in(p, party(w, 1));
        page_add(p, "~of~thread~");
        page_number(p, party(w, 1)->tid);
    } else {
        for (int i = 0; i < w->parties && i < 4; i++) {
            page_add(p, " ");
            say_label(p, 'T', i + 1);
            page_add(p, "~");
            say_call_in(p, party(w, i));
            page_add(p, i + 1 < w->parties && i < 3 ? ";" : "");
        }
        if (!w->parties && call_name(w->v->call)) {
            page_add(p, " ");
            page_add(p, call_name(w->v->call));
        }
    }
    if (w->v->about) {
        page_add(p, " ");
        page_escaped(p, w->v->about, 60);
    }
    if (w->c) {
        page_add(p, " on~");
        quoted(p, w->c->name, sizeof(w->c->name));
    }
    if (w->v->age >= 0) {
        page_add(p, ",~");
        page_duration(p, w->v->age);
    }
}

/* ------------------------------------------------------------------ the text */

static const char fence[] =
    "======================================================================================\n";

static void new_line(struct page *p, int first, int rest)
{
    if (p->column)
        page_line(p, rest);
    p->indent = rest;
    for (int i = 0; i < first; i++)
        page_char(p, '~');
}

static void section(struct page *p, const char *name)
{
    new_line(p, 0, 7);
    page_add(p, name);
    for (size_t i = strlen(name); i < 7; i++)
        page_add(p, "~");
}

static void section_words(struct page *p, const struct view *w, const char *name, const char *text)
{
    section(p, name);
    expand(p, w, text);
}

static void empty_line(struct page *p)
{
    new_line(p, 0, 0);
    page_line(p, 0);
}

static void ledger_line(struct page *p, const char *name)
{
    new_line(p, 7, 18);
    page_add(p, name);
    for (size_t i = strlen(name); i < 11; i++)
        page_add(p, "~");
}

static void text_ledger(struct page *p, const struct seen_consumer *c)
{
    const struct seen_rebalance *r = &c->rebalance;
    if (kind_of(r)) {
        ledger_line(p, "rebalance");
        say_rebalance(p, r);
        page_add(p, r->by_event ? ", by event" : ", by callback");
        if (r->tid > 0) {
            page_add(p, ", to ");
            say_tid(p, r->tid, r->thread);
        }
        if (r->age >= 0) {
            page_add(p, ", ");
            page_duration(p, r->age);
            page_add(p, " ago");
        }
        page_add(p, r->answered ? ", answered" : ", NOT answered");
        if (r->answered && call_name(r->answer)) {
            page_add(p, " by ");
            page_add(p, call_name(r->answer));
        }
    }
    for (int i = 0; i < DEBTS; i++) {
        const struct debt *d = &c->debt[i];
        if (d->count <= 0)
            continue;
        ledger_line(p, "holds");
        if (d->more)
            page_add(p, "at least ");
        plural(p, d->count, debts[i][0], debts[i][1]);
        if (call_name(d->call)) {
            page_add(p, d->count == 1 ? ", from " : ", the oldest from ");
            page_add(p, call_name(d->call));
        }
        if (d->tid > 0) {
            page_add(p, " in ");
            say_tid(p, d->tid, d->thread);
        }
        if (d->age >= 0) {
            page_add(p, ", ");
            page_duration(p, d->age);
            page_add(p, " ago");
        }
    }
    if (c->last_poll >= 0) {
        ledger_line(p, "last poll");
        if (c->last_poll == 0)
            page_add(p, "one is running");
        else
            page_duration(p, c->last_poll);
        page_add(p, c->last_poll == 0 ? "" : " ago");
        if (c->poll_tid > 0) {
            page_add(p, ", ");
            say_tid(p, c->poll_tid, c->poll_thread);
        }
    }
    if (c->last_commit > 0) {
        ledger_line(p, "last commit");
        page_add(p, "~");
        page_duration(p, c->last_commit);
        page_add(p, " ago");
    }
}

static void text_gate(struct page *p, const struct view *w, int i, bool ledger)
{
    const struct seen_consumer *c = consumer_at(w->s, w->gate[i]);
    new_line(p, 0, 5);
    say_label(p, 'G', i + 1);
    page_add(p, "~~~the gate of ");
    say_consumer(p, c);
    if (c->version_text[0]) {
        page_add(p, ", librdkafka~");
        page_escaped(p, c->version_text, sizeof(c->version_text));
    }
    if (PICK(lives, c->life)) {
        page_add(p, ", ");
        page_add(p, PICK(lives, c->life));
    }
    if (c->made_tid > 0) {
        page_add(p, ", made by ");
        say_tid(p, c->made_tid, NULL);
    }
    if (c->made_age >= 0 && c->made_tid > 0) {
        page_add(p, " ");
        page_duration(p, c->made_age);
        page_add(p, " ago");
    }
    if (ledger)
        text_ledger(p, c);
}

static void text_mutex(struct page *p, const struct view *w, int i)
{
    new_line(p, 0, 5);
    say_label(p, 'M', i + 1);
    bool gil = false;
    for (int k = 0; k < w->threads; k++) {
        const struct seen_thread *t = thread_at(w->s, w->thread[k]);
        gil |= t->gil && t->futex == w->mutex[i];
    }
    page_add(p, gil ? "~~~Python's interpreter lock (the GIL) at " : "~~~a pthread mutex at ");
    page_hex(p, w->mutex[i]);
    for (int k = 0; k < w->threads; k++) {
        const struct seen_thread *t = thread_at(w->s, w->thread[k]);
        if (t->sleep != SLEEP_MUTEX || t->futex != w->mutex[i] || t->mutex_owner <= 0)
            continue;
        page_add(p, "; it names thread~");
        page_number(p, t->mutex_owner);
        page_add(p, t->mutex_elsewhere ? " of another process as its owner" : " as its owner");
        return;
    }
}

static void text_call(struct page *p, const struct view *w, const struct seen_call *k, int depth)
{
    const char *name = call_name(k->call), *cb = PICK(callbacks, k->callback - 1);
    int gate = label(w->gate, w->gates, k->consumer);
    new_line(p, 5 + 2 * depth, 9 + 2 * depth);
    page_add(p, depth ? ">~" : "");
    page_add(p, name ? name : "a call");
    if (gate && w->gates > 1) {
        page_add(p, " (");
        say_label(p, 'G', gate);
        page_add(p, ")");
    }
    if (k->state == SEEN_WAITING) {
        page_add(p, ", waits at the gate");
        if (k->waiting >= 0)
            page_add(p, " for~");
        say_age(p, k->waiting);
    } else if (k->state == SEEN_RETURNING) {
        page_add(p, ", its callback is over, waits to leave");
        if (k->waiting >= 0)
            page_add(p, " for~");
        say_age(p, k->waiting);
    } else if (k->age >= 0) {
        page_add(p, ", inside for~");
        page_duration(p, k->age);
    }
    if (k->caller.address || k->caller.object[0]) {
        page_add(p, ", called from~");
        say_place(p, &k->caller);
    }
    if (!cb)
        return;
    new_line(p, 7 + 2 * depth, 11 + 2 * depth);
    page_add(p, ">~");
    page_add(p, cb);
    page_add(p, " of the application");
    if (k->callback_age >= 0) {
        page_add(p, ", running for~");
        page_duration(p, k->callback_age);
    }
}

static bool ours(const struct place *a)
{
    return strncmp(a->object, "librdkafka", 10) == 0 || strncmp(a->object, "librdgate", 9) == 0;
}

static void text_stack(struct page *p, const struct seen_thread *t)
{
    if (t->stack_from == STACK_SILENT) {
        new_line(p, 5, 9);
        page_add(p, "stack: asked for, but the thread did not answer (signal blocked?)");
        return;
    }
    int frames = t->frames < SEEN_FRAMES ? t->frames : SEEN_FRAMES;
    if (!t->frame || !frames || !PICK(froms, t->stack_from))
        return;
    new_line(p, 5, 9);
    page_add(p, "stack, ");
    page_add(p, PICK(froms, t->stack_from));
    page_add(p, ":");
    for (int i = 0; i < frames; i++) {
        int like = i;
        new_line(p, 7, 12);
        page_add(p, "#");
        page_number(p, i);
        page_add(p, i < 10 ? "~~" : "~");
        if (!say_place(p, &t->frame[i]))
            page_add(p, "?");
        /* of the insides of a library the first frame is enough */
        while (ours(&t->frame[i]) && like + 1 < frames &&
               strncmp(t->frame[like + 1].object, t->frame[i].object, sizeof(t->frame[i].object)) == 0)
            like++;
        if (like > i) {
            page_add(p, ", and ");
            plural(p, like - i, "more frame of it", "more frames of it");
            i = like;
        }
    }
}

static void text_thread(struct page *p, const struct view *w, int i)
{
    const struct seen_thread *t = thread_at(w->s, w->thread[i]);
    new_line(p, 0, 5);
    say_label(p, 'T', i + 1);
    page_add(p, i < 9 ? "~~~" : "~~");
    if (!say_thread(p, t))
        page_add(p, "a thread");
    struct page dry = {0};
    if (say_doing(&dry, w, t)) {
        page_add(p, ": ");
        say_doing(p, w, t);
    }
    for (int k = 0; k < calls_of(t); k++)
        text_call(p, w, &t->call[k], k * 2);
    text_stack(p, t);
}

/* Is what the consumer owes of interest? */
static bool wants_ledger(enum finding f)
{
    switch (f) {
    case DEADLOCK:
    case STUCK_CALL:
    case REBALANCE_UNANSWERED:
    case REBALANCE_MISANSWERED:
    case CLOSE_DEBT:
    case CLOSE_STUCK:
    case DESTROY_STUCK:
    case POLL_GAP:
    case POLL_EXCEEDED:
    case UNCLOSED_AT_EXIT:
    case FINALIZER_DESTROY: return true;
    default: return false;
    }
}

static void head(struct page *p, const struct view *w, const char *what)
{
    page_add(p, "rdgate:~[");
    page_number(p, w->s->pid);
    page_add(p, "]~");
    page_add(p, what);
    page_add(p, w->code);
    page_add(p, ":~");
}

static size_t finish(struct page *p)
{
    while (p->full && p->used && p->bytes[p->used - 1] != '\n')
        p->used--;
    if (p->size)
        p->bytes[p->used] = 0;
    return p->used;
}

size_t report_text(char *bytes, size_t size, const struct snapshot *s, const struct verdict *v, long n)
{
    struct page page = {.bytes = bytes, .size = size}, *p = &page;
    struct view view, *w = &view;
    if (!look(w, s, v))
        return 0;
    page_raw(p, fence);
    p->indent = 9;
    head(p, w, "finding:~");
    expand(p, w, w->words->says);
    new_line(p, 2, 9);
    page_add(p, severities[w->severity]);
    page_add(p, ", report ");
    page_number(p, n);
    if (s->program[0]) {
        page_add(p, ", program~");
        quoted(p, s->program, sizeof(s->program));
    }
    page_add(p, ", ");
    page_time(p, s->time);
    empty_line(p);
    if (in_loop(w)) {
        section(p, "Loop");
        for (int i = 0; i < w->parties; i++) {
            say_want(p, w, i);
            page_add(p, i + 1 < w->parties ? "; " : ".");
        }
        empty_line(p);
    }
    for (int i = 0; i < w->gates; i++)
        text_gate(p, w, i, w->gate[i] == v->consumer && wants_ledger(v->finding));
    for (int i = 0; i < w->mutexes; i++)
        text_mutex(p, w, i);
    for (int i = 0; i < w->parties; i++)
        text_thread(p, w, i);
    if (w->threads > w->parties) {
        new_line(p, 0, 5);
        page_add(p, "Also waiting for them:");
        for (int i = w->parties; i < w->threads; i++)
            text_thread(p, w, i);
    }
    if (p->column)
        empty_line(p);
    section_words(p, w, "Why", w->words->why);
    section_words(p, w, "Do", w->words->what_to_do);
    section_words(p, w, "Sure", w->words->how_sure);
    new_line(p, 0, 9);
    page_add(p, "SUMMARY:~");
    say_summary(p, w);
    new_line(p, 0, 0);
    page_raw(p, fence);
    return finish(p);
}

size_t report_moving_text(char *bytes, size_t size, const struct snapshot *s, const struct verdict *v,
                          long of, int64_t lasted)
{
    struct page page = {.bytes = bytes, .size = size, .indent = 9}, *p = &page;
    struct view w;
    if (!look(&w, s, v))
        return 0;
    head(p, &w, "moving again:~");
    const char *name = call_name(v->call);
    page_add(p, name ? name : "it");
    if (w.c) {
        page_add(p, " on~");
        say_consumer(p, w.c);
    }
    if (lasted >= 0) {
        page_add(p, " after ");
        page_duration(p, lasted);
    }
    page_add(p, " (report~");
    page_number(p, of);
    page_add(p, ")");
    page_line(p, 0);
    return finish(p);
}

/* ------------------------------------------------------------------ JSON */

struct json {
    struct page page;
    bool comma; /* something stands before */
};

static void json_key(struct json *j, const char *key)
{
    page_raw(&j->page, j->comma ? "," : "");
    j->comma = true;
    if (key) {
        page_raw(&j->page, "\"");
        page_raw(&j->page, key);
        page_raw(&j->page, "\":");
    }
}

static void json_open(struct json *j, const char *key, const char *bracket)
{
    json_key(j, key);
    page_raw(&j->page, bracket);
    j->comma = false;
}

static void json_close(struct json *j, const char *bracket)
{
    page_raw(&j->page, bracket);
    j->comma = true;
}

static struct page *string_opens(struct json *j, const char *key)
{
    json_key(j, key);
    page_raw(&j->page, "\"");
    j->page.json = true;
    return &j->page;
}

static void string_closes(struct json *j)
{
    j->page.json = false;
    page_raw(&j->page, "\"");
}

static void json_string(struct json *j, const char *key, const char *s, size_t most)
{
    if (!s || !s[0])
        return;
    page_escaped(string_opens(j, key), s, most);
    string_closes(j);
}

static void json_number(struct json *j, const char *key, int64_t n)
{
    json_key(j, key);
    page_number(&j->page, n);
}

static void json_known(struct json *j, const char *key, int64_t n)
{
    if (n >= 0)
        json_number(j, key, n);
}

static void json_true(struct json *j, const char *key, bool is)
{
    json_key(j, key);
    page_raw(&j->page, is ? "true" : "false");
}

static void json_place(struct json *j, const char *key, const struct place *a)
{
    struct page dry = {0};
    if (!say_place(&dry, a))
        return;
    say_place(string_opens(j, key), a);
    string_closes(j);
}

static void json_words(struct json *j, const char *key, const struct view *w, const char *text)
{
    expand(string_opens(j, key), w, text);
    string_closes(j);
}

static void json_label(struct json *j, const char *key, char kind, int n)
{
    if (n <= 0)
        return;
    say_label(string_opens(j, key), kind, n);
    string_closes(j);
}

#define ARRAY(a) a, sizeof(a)

static void json_thread(struct json *j, const struct view *w, int i, bool stacks)
{
    const struct seen_thread *t = thread_at(w->s, w->thread[i]);
    int frames = t->frames < SEEN_FRAMES ? t->frames : SEEN_FRAMES;
    json_open(j, NULL, "{");
    json_label(j, "label", 'T', i + 1);
    json_number(j, "tid", t->tid);
    json_string(j, "name", ARRAY(t->name));
    json_true(j, "party", i < w->parties);
    json_open(j, "calls", "[");
    for (int k = 0; k < calls_of(t); k++) {
        const struct seen_call *call = &t->call[k];
        json_open(j, NULL, "{");
        json_string(j, "call", call_name(call->call), 64);
        json_string(j, "state", PICK(states, call->state), 16);
        json_known(j, "age_ms", call->age);
        json_known(j, "waiting_ms", call->state == SEEN_INSIDE ? -1 : call->waiting);
        json_string(j, "callback", PICK(callbacks, call->callback - 1), 64);
        json_known(j, "callback_age_ms", call->callback ? call->callback_age : -1);
        json_label(j, "gate", 'G', label(w->gate, w->gates, call->consumer));
        if (call->finite)
            json_number(j, "timeout_left_ms", call->timeout_left);
        json_place(j, "caller", &call->caller);
        json_close(j, "}");
    }
    json_close(j, "]");
    json_string(j, "sleep", PICK(sleeps, t->sleep), 16);
    json_known(j, "asleep_ms", t->asleep);
    if (t->sleep == SLEEP_MUTEX) {
        json_label(j, "mutex", 'M', mutex_label(w, t->futex));
        if (t->mutex_owner > 0)
            json_number(j, "owner", t->mutex_owner);
        json_true(j, "owner_elsewhere", t->mutex_elsewhere);
    }
    if (stacks && t->frame && frames) {
        json_string(j, "stack_from", PICK(froms, t->stack_from), 64);
        json_open(j, "stack", "[");
        for (int k = 0; k < frames; k++) {
            struct page dry = {0};
            if (say_place(&dry, &t->frame[k]))
                json_place(j, NULL, &t->frame[k]);
            else
                json_string(j, NULL, "?", 1);
        }
        json_close(j, "]");
    }
    json_close(j, "}");
}

static void json_loop(struct json *j, const struct view *w)
{
    json_open(j, "loop", "[");
    for (int i = 0; i < w->parties; i++) {
        const struct edge *e = edge_at(w->s, w->v->edge[i]);
        int kind = e ? e->kind : EDGE_ANSWER;
        json_open(j, NULL, "{");
        json_label(j, "from", 'T', i + 1);
        json_label(j, "to", 'T', (i + 1) % w->parties + 1);
        json_string(j, "kind", PICK(edge_names, kind), 16);
        if (kind == EDGE_MUTEX)
            json_label(j, "mutex", 'M', mutex_label(w, e->mutex));
        else if (e)
            json_label(j, "gate", 'G', label(w->gate, w->gates, e->consumer));
        json_close(j, "}");
    }
    json_close(j, "]");
}

static void json_ledger(struct json *j, const struct seen_consumer *c)
{
    static const char *const kinds[] = {"message", "event", "list", "topic", "queue"};
    const struct seen_rebalance *r = &c->rebalance;
    json_open(j, "debts", "[");
    for (int i = 0; i < DEBTS; i++) {
        const struct debt *d = &c->debt[i];
        if (d->count <= 0)
            continue;
        json_open(j, NULL, "{");
        json_string(j, "kind", kinds[i], 16);
        json_number(j, "count", d->count);
        json_true(j, "more", d->more);
        json_string(j, "call", call_name(d->call), 64);
        if (d->tid > 0)
            json_number(j, "tid", d->tid);
        json_string(j, "thread", ARRAY(d->thread));
        json_known(j, "age_ms", d->age);
        json_close(j, "}");
    }
    json_close(j, "]");
    json_known(j, "last_poll_ms", c->last_poll);
    json_known(j, "max_poll_ms", c->max_poll_ms);
    if (!kind_of(r))
        return;
    json_open(j, "rebalance", "{");
    json_string(j, "kind", kind_of(r), 16);
    json_known(j, "partitions", r->partitions);
    json_string(j, "by", r->by_event ? "event" : "callback", 16);
    json_true(j, "returned", r->returned);
    if (r->tid > 0)
        json_number(j, "tid", r->tid);
    json_string(j, "thread", ARRAY(r->thread));
    json_known(j, "age_ms", r->age);
    json_true(j, "answered", r->answered);
    if (r->answered) {
        json_string(j, "answer", call_name(r->answer), 64);
        json_number(j, "answer_code", r->answer_code);
        json_known(j, "answer_age_ms", r->answer_age);
    }
    json_close(j, "}");
}

static void json_head(struct json *j, const struct view *w, long n)
{
    json_open(j, NULL, "{");
    json_number(j, "v", 1);
    page_time(string_opens(j, "time"), w->s->time);
    string_closes(j);
    json_number(j, "pid", w->s->pid);
    json_string(j, "program", ARRAY(w->s->program));
    json_string(j, "finding", w->code, 64);
    json_string(j, "severity", severities[w->severity], 16);
    json_number(j, "number", n);
    if (w->c) {
        json_string(j, "consumer", ARRAY(w->c->name));
        json_string(j, "group", ARRAY(w->c->group));
        json_string(j, "librdkafka", ARRAY(w->c->version_text));
    }
    json_string(j, "call", call_name(w->v->call), 64);
}

/* detail: 3 all, 2 no stacks, 1 no threads, 0 the head alone */
static size_t json_at(char *bytes, size_t size, const struct view *w, long n, int detail)
{
    struct json j = {.page = {.bytes = bytes, .size = size}};
    json_head(&j, w, n);
    if (detail > 0) {
        json_words(&j, "says", w, w->words->says);
        say_summary(string_opens(&j, "summary"), w);
        string_closes(&j);
        json_words(&j, "why", w, w->words->why);
        json_words(&j, "do", w, w->words->what_to_do);
        json_words(&j, "sure", w, w->words->how_sure);
        json_known(&j, "age_ms", w->v->age);
        if (w->c && wants_ledger(w->v->finding))
            json_ledger(&j, w->c);
        if (w->v->hint > 0 && w->v->hint <= COUNT(defects)) {
            json_open(&j, "hint", "{");
            json_number(&j, "upstream", defects[w->v->hint - 1].number);
            json_string(&j, "fixed_in", defects[w->v->hint - 1].fixed, 16);
            json_close(&j, "}");
        }
    }
    if (detail > 1) {
        json_open(&j, "threads", "[");
        for (int i = 0; i < w->threads; i++)
            json_thread(&j, w, i, detail > 2);
        json_close(&j, "]");
        if (in_loop(w))
            json_loop(&j, w);
    }
    if (detail < 3)
        json_true(&j, "truncated", true);
    json_close(&j, "}");
    page_raw(&j.page, "\n");
    if (j.page.full)
        return 0;
    j.page.bytes[j.page.used] = 0;
    return j.page.used;
}

size_t report_json(char *bytes, size_t size, const struct snapshot *s, const struct verdict *v, long n)
{
    struct view w;
    size_t used = 0;
    if (!look(&w, s, v))
        return 0;
    for (int detail = 3; detail >= 0 && !used; detail--)
        used = json_at(bytes, size, &w, n, detail);
    return used;
}

size_t report_moving_json(char *bytes, size_t size, const struct snapshot *s, const struct verdict *v,
                          long of, int64_t lasted)
{
    struct json j = {.page = {.bytes = bytes, .size = size}};
    struct view w;
    if (!look(&w, s, v))
        return 0;
    json_head(&j, &w, of);
    json_true(&j, "moving", true);
    json_known(&j, "lasted_ms", lasted);
    json_close(&j, "}");
    page_raw(&j.page, "\n");
    if (j.page.full)
        return 0;
    j.page.bytes[j.page.used] = 0;
    return j.page.used;
}

const char *report_code(int finding)
{
    return finding >= 0 && finding < COUNT(findings) ? findings[finding].code : NULL;
}

enum severity report_severity(int finding)
{
    return finding >= 0 && finding < COUNT(findings) ? findings[finding].severity : SEVERITY_INFO;
}
