/*
 * twolibs PATH_A PATH_B: two librdkafka of different versions in one process, each by its own handle. Each
 * keeps to itself: its version, its consumer, its errors, its end. The program is not linked with either.
 */
#include "calm.h"

/* clang-format off */
#define FUNCTIONS(X) \
    X(version) X(conf_new) X(conf_set) X(new) X(destroy) X(handle_mock_cluster) X(mock_topic_create) \
    X(mock_cluster_bootstraps) X(producev) X(flush) X(topic_partition_list_new) \
    X(topic_partition_list_add) X(topic_partition_list_destroy) X(assign) X(consumer_poll) \
    X(consumer_close) X(message_destroy) X(pause_partitions) X(resume_partitions) X(committed) \
    X(last_error) X(err2name) X(queue_get_consumer) X(queue_destroy) X(consume_queue) X(consumer_closed) \
    X(position) X(assignment)
/* clang-format on */

struct lib {
    const char *name;
    void *handle;
#define X(f) __typeof__(rd_kafka_##f) *f;
    FUNCTIONS(X)
#undef X
    rd_kafka_t *producer, *rk;
    rd_kafka_queue_t *q;
    int messages;
    int64_t offset;
};

static void load(struct lib *l, const char *name, const char *path)
{
    l->name = name;
    l->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!l->handle)
        die("%s", dlerror());
#define X(f)                                                                                                 \
    *(void **)&l->f = dlsym(l->handle, "rd_kafka_" #f);                                                      \
    if (!l->f)                                                                                               \
        die("%s", dlerror());
    FUNCTIONS(X)
#undef X
}

static void put(struct lib *l, rd_kafka_conf_t *conf, const char *key, const char *value)
{
    char e[256];
    if (l->conf_set(conf, key, value, e, sizeof e) != RD_KAFKA_CONF_OK)
        die("%s", e);
}

static void feed(struct lib *l, int n)
{
    while (n-- > 0)
        if (l->producev(l->producer, RD_KAFKA_V_TOPIC(TOPIC), RD_KAFKA_V_PARTITION(0),
                        RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END))
            die("produce");
    if (l->flush(l->producer, 20000))
        die("flush");
}

static rd_kafka_topic_partition_list_t *first(struct lib *l, int64_t offset)
{
    rd_kafka_topic_partition_list_t *p = l->topic_partition_list_new(1);
    l->topic_partition_list_add(p, TOPIC, 0)->offset = offset;
    return p;
}

static void begin(struct lib *l)
{
    char e[256];
    rd_kafka_conf_t *conf = l->conf_new();
    rd_kafka_mock_cluster_t *m;
    rd_kafka_topic_partition_list_t *p;

    put(l, conf, "test.mock.num.brokers", "1");
    put(l, conf, "log_level", "4");
    if (!(l->producer = l->new (RD_KAFKA_PRODUCER, conf, e, sizeof e)))
        die("%s", e);
    m = l->handle_mock_cluster(l->producer);
    l->mock_topic_create(m, TOPIC, 1, 1);
    conf = l->conf_new();
    put(l, conf, "bootstrap.servers", l->mock_cluster_bootstraps(m));
    put(l, conf, "group.id", "two");
    put(l, conf, "fetch.wait.max.ms", "50");
    put(l, conf, "enable.auto.commit", "false");
    if (!(l->rk = l->new (RD_KAFKA_CONSUMER, conf, e, sizeof e)))
        die("%s", e);
    l->q = l->queue_get_consumer(l->rk);
    p = first(l, 0);
    l->assign(l->rk, p);
    l->topic_partition_list_destroy(p);
}

static void poll_one(struct lib *l, int timeout)
{
    rd_kafka_message_t *m = l->consumer_poll(l->rk, timeout);
    if (!m || m->err)
        die("%s: no message", l->name);
    l->messages++;
    l->offset = m->offset;
    l->message_destroy(m);
}

static void sitter(struct thread *t)
{
    here(t);
    poll_one(t->arg, -1);
}

static void disturb(struct lib *l, int n)
{
    while (n-- > 0) {
        rd_kafka_topic_partition_list_t *p = first(l, 1);
        if (l->committed(l->rk, p, 10000) || l->position(l->rk, p))
            die("%s: committed", l->name);
        l->topic_partition_list_destroy(p);
    }
}

int main(int argc, char **argv)
{
    struct lib a = {0}, b = {0};
    struct thread ta, tb;
    rd_kafka_resp_err_t ea, eb;

    if (argc != 3)
        die("twolibs PATH_A PATH_B");
    load(&a, "a", argv[1]);
    load(&b, "b", argv[2]);
    say("a_version=%x", a.version());
    say("b_version=%x", b.version());
    begin(&a);
    begin(&b);
    feed(&a, 1);
    feed(&b, 2);
    poll_one(&a, 30000);
    poll_one(&b, 30000);
    poll_one(&b, 30000);

    /* each has a last error of its own */
    if (a.consumer_poll(a.rk, 10))
        die("a message too many");
    feed(&b, 1);
    poll_one(&b, 30000);
    ea = a.last_error();
    eb = b.last_error();
    say("a_last_error=%s", a.err2name(ea));
    say("b_last_error=%s", b.err2name(eb));

    /* both sit in poll(-1), both are disturbed, each gets its message */
    start(&ta, sitter, &a, 0);
    start(&tb, sitter, &b, 0);
    UNTIL(settled(ta.tid) && settled(tb.tid), 10000);
    disturb(&a, 20);
    disturb(&b, 20);
    say("inside=%d", !ta.done && !tb.done);
    feed(&a, 1);
    join(&ta, 30000);
    say("b_inside=%d", !tb.done);
    feed(&b, 1);
    join(&tb, 30000);
    say("a_messages=%d", a.messages);
    say("b_messages=%d", b.messages);

    /* one ends, the other lives */
    say("a_close=%s", a.err2name(a.consumer_close(a.rk)));
    say("a_closed=%d", a.consumer_closed(a.rk));
    say("b_closed=%d", b.consumer_closed(b.rk));
    a.queue_destroy(a.q);
    a.destroy(a.rk);
    a.destroy(a.producer);
    say("a_dlclose=%d", dlclose(a.handle));
    disturb(&b, 5);
    feed(&b, 1);
    poll_one(&b, 30000);
    say("b_messages=%d", b.messages);
    say("b_close=%s", b.err2name(b.consumer_close(b.rk)));
    b.queue_destroy(b.q);
    b.destroy(b.rk);
    b.destroy(b.producer);
    say("b_dlclose=%d", dlclose(b.handle));
    return 0;
}
