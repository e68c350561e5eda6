/*
 * errnos: one line for every kind of call: its result, rd_kafka_last_error() and errno after it. errno is 0
 * before a first round and a number of our own before a second, so that a call that leaves it alone shows.
 */
#include "calm.h"

#define OURS 4321

static rd_kafka_t *rk;
static rd_kafka_queue_t *q;
static rd_kafka_topic_t *rkt;
static int ours;
static char result[128];

static const char *err(rd_kafka_resp_err_t e)
{
    return rd_kafka_err2name(e);
}

static const char *number(int64_t n)
{
    snprintf(result, sizeof result, "%" PRId64, n);
    return result;
}

static const char *message(rd_kafka_message_t *m)
{
    int saved = errno;
    snprintf(result, sizeof result, "%s", !m ? "null" : m->err ? err(m->err) : "message");
    if (m)
        rd_kafka_message_destroy(m);
    errno = saved;
    return result;
}

static const char *event(rd_kafka_event_t *ev)
{
    int saved = errno;
    snprintf(result, sizeof result, "%s", ev ? rd_kafka_event_name(ev) : "null");
    if (ev)
        rd_kafka_event_destroy(ev);
    errno = saved;
    return result;
}

static const char *error(rd_kafka_error_t *e)
{
    int saved = errno;
    snprintf(result, sizeof result, "%s", e ? rd_kafka_error_name(e) : "null");
    if (e)
        rd_kafka_error_destroy(e);
    errno = saved;
    return result;
}

/* The call is made, then errno is read, then everything else. */
#define ROW(name, show, call)                                                                                \
    do {                                                                                                     \
        errno = ours;                                                                                        \
        __typeof__(call) value_ = (call);                                                                    \
        int errno_ = errno;                                                                                  \
        rd_kafka_resp_err_t last_ = rd_kafka_last_error();                                                   \
        const char *shown_ = show(value_);                                                                   \
        say("%s.%s=%s last_error=%s errno=%s", ours ? "ours" : "zero", name, shown_, err(last_),             \
            errno_ == OURS ? "ours" : errno_name(errno_));                                                   \
    } while (0)

static const char *text(const char *s)
{
    return s ? "text" : "null";
}

static const char *any(const void *p)
{
    return p ? "object" : "null";
}

static void round_of_calls(void)
{
    rd_kafka_topic_partition_list_t *p = one(0, 1), *bad = rd_kafka_topic_partition_list_new(1), *out = NULL;
    rd_kafka_topic_partition_list_t *empty = rd_kafka_topic_partition_list_new(0);
    rd_kafka_message_t *batch[2] = {NULL, NULL};
    char *member;
    rd_kafka_consumer_group_metadata_t *meta;
    int64_t lo, hi;

    rd_kafka_topic_partition_list_add(bad, "nonesuch", 7)->offset = 1;

    /* timeouts */
    ROW("consumer_poll(0)", message, rd_kafka_consumer_poll(rk, 0));
    ROW("consumer_poll(20)", message, rd_kafka_consumer_poll(rk, 20));
    ROW("consume_queue(0)", message, rd_kafka_consume_queue(q, 0));
    ROW("consume_queue(20)", message, rd_kafka_consume_queue(q, 20));
    ROW("queue_poll(0)", event, rd_kafka_queue_poll(q, 0));
    ROW("queue_poll(20)", event, rd_kafka_queue_poll(q, 20));
    ROW("consume_batch_queue(0)", number, rd_kafka_consume_batch_queue(q, 0, batch, 2));
    ROW("consume_batch_queue(20)", number, rd_kafka_consume_batch_queue(q, 20, batch, 2));
    ROW("poll(0)", number, rd_kafka_poll(rk, 0));
    ROW("poll(20)", number, rd_kafka_poll(rk, 20));

    /* messages */
    produce(0, 1);
    ROW("consumer_poll", message, rd_kafka_consumer_poll(rk, 30000));
    produce(0, 1);
    ROW("queue_poll", event, rd_kafka_queue_poll(q, 30000));
    produce(0, 1);
    ROW("consume_queue", message, rd_kafka_consume_queue(q, -1));

    /* the legacy calls, which speak through errno */
    ROW("consume_start(bad)", number, rd_kafka_consume_start(rkt, -7, 0));
    ROW("after a failure: consumer_poll(0)", message, rd_kafka_consumer_poll(rk, 0));
    ROW("consume_start(bad) again", number, rd_kafka_consume_start(rkt, -7, 0));
    ROW("after a failure: position", err, rd_kafka_position(rk, p));
    ROW("after a failure: pause", err, rd_kafka_pause_partitions(rk, bad));
    ROW("after a failure: assignment", err, rd_kafka_assignment(rk, &out));
    rd_kafka_topic_partition_list_destroy(out);
    ROW("consume_stop(bad)", number, rd_kafka_consume_stop(rkt, -7));
    ROW("consume_stop(not started)", number, rd_kafka_consume_stop(rkt, 99));
    ROW("consume(not started)", message, rd_kafka_consume(rkt, 99, 0));
    ROW("consume_batch(not started)", number, rd_kafka_consume_batch(rkt, 99, 0, batch, 2));

    /* commits */
    ROW("commit(list)", err, rd_kafka_commit(rk, p, 0));
    ROW("commit(list, async)", err, rd_kafka_commit(rk, p, 1));
    ROW("commit(empty)", err, rd_kafka_commit(rk, empty, 0));
    ROW("commit(unknown)", err, rd_kafka_commit(rk, bad, 0));

    /* queries */
    ROW("position", err, rd_kafka_position(rk, p));
    ROW("position(unknown)", err, rd_kafka_position(rk, bad));
    ROW("committed", err, rd_kafka_committed(rk, p, 10000));
    ROW("query_watermark_offsets", err, rd_kafka_query_watermark_offsets(rk, TOPIC, 0, &lo, &hi, 10000));
    ROW("get_watermark_offsets", err, rd_kafka_get_watermark_offsets(rk, TOPIC, 0, &lo, &hi));
    ROW("get_watermark_offsets(unknown)", err, rd_kafka_get_watermark_offsets(rk, "nonesuch", 7, &lo, &hi));
    p->elems[0].offset = 0;
    ROW("offsets_for_times(empty)", err, rd_kafka_offsets_for_times(rk, empty, 10000));
    ROW("subscription", err, rd_kafka_subscription(rk, &out));
    rd_kafka_topic_partition_list_destroy(out);
    ROW("assignment", err, rd_kafka_assignment(rk, &out));
    rd_kafka_topic_partition_list_destroy(out);
    ROW("assignment_lost", number, rd_kafka_assignment_lost(rk));
    ROW("rebalance_protocol", text, rd_kafka_rebalance_protocol(rk));
    ROW("memberid", text, member = rd_kafka_memberid(rk));
    rd_kafka_mem_free(rk, member);
    ROW("consumer_group_metadata", any, meta = rd_kafka_consumer_group_metadata(rk));
    rd_kafka_consumer_group_metadata_destroy(meta);
    ROW("name", text, rd_kafka_name(rk));
    ROW("outq_len", number, rd_kafka_outq_len(rk));

    /* pause, seek, store */
    ROW("pause", err, rd_kafka_pause_partitions(rk, p));
    ROW("resume", err, rd_kafka_resume_partitions(rk, p));
    ROW("pause(unknown)", err, rd_kafka_pause_partitions(rk, bad));
    ROW("pause(empty)", err, rd_kafka_pause_partitions(rk, empty));
    ROW("seek(bad)", err, rd_kafka_seek(rkt, -7, 0, 1000));
    ROW("seek_partitions(unknown)", error, rd_kafka_seek_partitions(rk, bad, 1000));
    ROW("offset_store(bad)", err, rd_kafka_offset_store(rkt, -7, 0));
    ROW("offsets_store(unknown)", err, rd_kafka_offsets_store(rk, bad));
    ROW("offsets_store(empty)", err, rd_kafka_offsets_store(rk, empty));

    /* subscribe and assign */
    ROW("subscribe(empty)", err, rd_kafka_subscribe(rk, empty));
    ROW("incremental_unassign(unknown)", error, rd_kafka_incremental_unassign(rk, bad));
    ROW("unsubscribe", err, rd_kafka_unsubscribe(rk));
    ROW("closed", number, rd_kafka_consumer_closed(rk));

    rd_kafka_topic_partition_list_destroy(p);
    rd_kafka_topic_partition_list_destroy(bad);
    rd_kafka_topic_partition_list_destroy(empty);
}

int main(void)
{
    rd_kafka_t *simple;

    mock_start(1);
    rk = consumer_new(
        consumer_conf("errnos", "topic.metadata.refresh.interval.ms", "-1", "log_level", "3", NULL));
    q = rd_kafka_queue_get_consumer(rk);
    rkt = rd_kafka_topic_new(rk, TOPIC, NULL);
    assign(rk, 1);
    warm(rk, 1);
    warm_commit(rk);
    round_of_calls();
    ours = OURS;
    rd_kafka_consume_start(rkt, -7, 0); /* the second round begins with an old error */
    round_of_calls();

    ROW("poll_set_consumer", err, rd_kafka_poll_set_consumer(rk));
    ROW("consumer_close", err, rd_kafka_consumer_close(rk));
    ROW("closed: closed", number, rd_kafka_consumer_closed(rk));
    ROW("closed: consumer_poll(0)", message, rd_kafka_consumer_poll(rk, 0));
    ROW("closed: consumer_poll(20)", message, rd_kafka_consumer_poll(rk, 20));
    ROW("closed: commit", err, rd_kafka_commit(rk, NULL, 0));
    ROW("closed: unsubscribe", err, rd_kafka_unsubscribe(rk));
    ROW("closed: consumer_close", err, rd_kafka_consumer_close(rk));
    rd_kafka_topic_destroy(rkt);
    rd_kafka_queue_destroy(q);
    rd_kafka_destroy(rk);

    /* no group at all */
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", bootstrap);
    simple = consumer_new(conf);
    rd_kafka_topic_partition_list_t *l = one(0, 0);
    ROW("groupless: consumer_poll(0)", message, rd_kafka_consumer_poll(simple, 0));
    ROW("groupless: commit", err, rd_kafka_commit(simple, l, 0));
    ROW("groupless: subscribe", err, rd_kafka_subscribe(simple, l));
    ROW("groupless: poll_set_consumer", err, rd_kafka_poll_set_consumer(simple));
    ROW("groupless: queue_get_consumer", any, rd_kafka_queue_get_consumer(simple));
    ROW("groupless: memberid", text, rd_kafka_memberid(simple));
    ROW("groupless: consumer_close", err, rd_kafka_consumer_close(simple));
    rd_kafka_topic_partition_list_destroy(l);
    rd_kafka_destroy(simple);
    mock_stop();
    return 0;
}
