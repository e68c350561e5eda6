/*
 * every: calls every function of calls.def that this librdkafka has, and prints what it returned, to be
 * compared with what it returns without us. A function of the table that was not called ends it badly.
 */
#include "newer.h"
#include "../calm/calm.h"

#if RD_KAFKA_VERSION < 0x020f0000
int main(void)
{
    die("built with the headers of another librdkafka");
}
#else

#    pragma GCC diagnostic ignored "-Wdeprecated-declarations"

enum {
#    define CALL(kind, result, name, ...) ID_##name,
#    include "calls.def"
    IDS
};

static const char *const names[] = {
#    define CALL(kind, result, name, ...) #    name,
#    include "calls.def"
};

static bool called[IDS];

/* The name alone, to be called: and noted. */
#    define F(name) (called[ID_##name] = true, name)

static void code(const char *what, rd_kafka_resp_err_t e)
{
    say("%s=%s", what, rd_kafka_err2name(e));
}

static void number(const char *what, int64_t n)
{
    say("%s=%" PRId64, what, n);
}

static void object(const char *what, const void *p)
{
    say("%s=%s", what, p ? "object" : "null");
}

static void error(const char *what, rd_kafka_error_t *e)
{
    say("%s=%s", what, e ? rd_kafka_error_name(e) : "null");
    if (e)
        rd_kafka_error_destroy(e);
}

static void message(const char *what, rd_kafka_message_t *m)
{
    say("%s=%s", what, !m ? "null" : m->err ? rd_kafka_err2name(m->err) : "message");
    if (m)
        F(rd_kafka_message_destroy)(m);
}

static void event(const char *what, rd_kafka_event_t *e)
{
    say("%s=%s %s", what, e ? rd_kafka_event_name(e) : "null",
        e ? rd_kafka_err2name(rd_kafka_event_error(e)) : "");
    if (e) {
        object("opaque", F(rd_kafka_event_opaque)(e));
        F(rd_kafka_event_destroy)(e);
    }
}

static int consumed;

static void consume_cb(rd_kafka_message_t *m, void *opaque)
{
    (void)opaque;
    if (!m->err)
        consumed++;
}

static void commit_cb(rd_kafka_t *rk, rd_kafka_resp_err_t e, rd_kafka_topic_partition_list_t *l, void *opaque)
{
    (void)rk, (void)l, (void)opaque;
    code("commit_cb", e);
}

static void queue_cb(rd_kafka_t *rk, void *opaque)
{
    (void)rk, (void)opaque;
}

static rd_kafka_t *rk;
static rd_kafka_topic_t *rkt;
static rd_kafka_queue_t *q;

/* ------------------------------------------------------------------ the admin calls */

/* Whatever the mock makes of them: an event comes, and says the same. */
#    define ADMIN(name, ...)                                                                                 \
        do {                                                                                                 \
            F(name)(rk, __VA_ARGS__, options, answers);                                                      \
            event(#name, F(rd_kafka_queue_poll)(answers, 30000));                                            \
        } while (0)

static void admin(void)
{
    char why[256];
    rd_kafka_queue_t *answers = F(rd_kafka_queue_new)(rk);
    rd_kafka_AdminOptions_t *options = F(rd_kafka_AdminOptions_new)(rk, RD_KAFKA_ADMIN_OP_ANY);
    object("AdminOptions_new", options);
    code("request_timeout", rd_kafka_AdminOptions_set_request_timeout(options, 250, why, sizeof(why)));

    rd_kafka_NewTopic_t *made = rd_kafka_NewTopic_new("made", 1, 1, why, sizeof(why));
    rd_kafka_DeleteTopic_t *gone = rd_kafka_DeleteTopic_new("made");
    rd_kafka_NewPartitions_t *parts = rd_kafka_NewPartitions_new("made", 2, why, sizeof(why));
    rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, TOPIC);
    rd_kafka_DeleteRecords_t *records = rd_kafka_DeleteRecords_new(one(0, 1));
    rd_kafka_DeleteGroup_t *group = rd_kafka_DeleteGroup_new("nobody");
    rd_kafka_ListConsumerGroupOffsets_t *listed = rd_kafka_ListConsumerGroupOffsets_new("every", NULL);
    rd_kafka_AlterConsumerGroupOffsets_t *altered =
        rd_kafka_AlterConsumerGroupOffsets_new("every", one(0, 1));
    rd_kafka_DeleteConsumerGroupOffsets_t *deleted =
        rd_kafka_DeleteConsumerGroupOffsets_new("every", one(0, 0));
    rd_kafka_UserScramCredentialAlteration_t *scram =
        rd_kafka_UserScramCredentialDeletion_new("somebody", RD_KAFKA_SCRAM_MECHANISM_SHA_256);
    rd_kafka_AclBinding_t *acl = rd_kafka_AclBinding_new(
        RD_KAFKA_RESOURCE_TOPIC, TOPIC, RD_KAFKA_RESOURCE_PATTERN_LITERAL, "User:a", "*",
        RD_KAFKA_ACL_OPERATION_READ, RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW, why, sizeof(why));
    rd_kafka_AclBindingFilter_t *filter = rd_kafka_AclBindingFilter_new(
        RD_KAFKA_RESOURCE_TOPIC, TOPIC, RD_KAFKA_RESOURCE_PATTERN_LITERAL, "User:a", "*",
        RD_KAFKA_ACL_OPERATION_READ, RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW, why, sizeof(why));
    const char *topics[] = {TOPIC}, *groups[] = {"every"}, *users[] = {"somebody"};
    rd_kafka_TopicCollection_t *collection = rd_kafka_TopicCollection_of_topic_names(topics, 1);
    rd_kafka_topic_partition_list_t *list = one(0, RD_KAFKA_OFFSET_SPEC_LATEST);
    rd_kafka_ElectLeaders_t *elect = rd_kafka_ElectLeaders_new(RD_KAFKA_ELECTION_TYPE_PREFERRED, list);

    ADMIN(rd_kafka_CreateTopics, &made, 1);
    ADMIN(rd_kafka_DeleteTopics, &gone, 1);
    ADMIN(rd_kafka_CreatePartitions, &parts, 1);
    ADMIN(rd_kafka_AlterConfigs, &resource, 1);
    ADMIN(rd_kafka_IncrementalAlterConfigs, &resource, 1);
    ADMIN(rd_kafka_DescribeConfigs, &resource, 1);
    ADMIN(rd_kafka_DeleteRecords, &records, 1);
    ADMIN(rd_kafka_DescribeTopics, collection);
    F(rd_kafka_DescribeCluster)(rk, options, answers);
    event("rd_kafka_DescribeCluster", F(rd_kafka_queue_poll)(answers, 30000));
    F(rd_kafka_ListConsumerGroups)(rk, options, answers);
    event("rd_kafka_ListConsumerGroups", F(rd_kafka_queue_poll)(answers, 30000));
    ADMIN(rd_kafka_DescribeConsumerGroups, groups, 1);
    ADMIN(rd_kafka_DeleteGroups, &group, 1);
    ADMIN(rd_kafka_ListConsumerGroupOffsets, &listed, 1);
    ADMIN(rd_kafka_AlterConsumerGroupOffsets, &altered, 1);
    ADMIN(rd_kafka_DeleteConsumerGroupOffsets, &deleted, 1);
    ADMIN(rd_kafka_ListOffsets, list);
    ADMIN(rd_kafka_DescribeUserScramCredentials, users, 1);
    ADMIN(rd_kafka_AlterUserScramCredentials, &scram, 1);
    ADMIN(rd_kafka_CreateAcls, &acl, 1);
    ADMIN(rd_kafka_DescribeAcls, filter);
    ADMIN(rd_kafka_DeleteAcls, &filter, 1);
    ADMIN(rd_kafka_ElectLeaders, elect);

    rd_kafka_AdminOptions_destroy(options);
    F(rd_kafka_queue_destroy)(answers);
}

/* ------------------------------------------------------------------ the others */

static void messages(void)
{
    rd_kafka_message_t *batch[4], *m;
    rd_kafka_topic_partition_list_t *p = one(0, 1);

    message("consumer_poll(0)", F(rd_kafka_consumer_poll)(rk, 0));
    code("last_error", F(rd_kafka_last_error)());
    produce(0, 8);
    message("consumer_poll", m = F(rd_kafka_consumer_poll)(rk, 30000));
    message("consume_queue", F(rd_kafka_consume_queue)(q, 30000));
    event("queue_poll", F(rd_kafka_queue_poll)(q, 30000));
    ssize_t n = F(rd_kafka_consume_batch_queue)(q, 30000, batch, 1);
    number("consume_batch_queue", n);
    for (ssize_t i = 0; i < n; i++)
        F(rd_kafka_message_destroy)(batch[i]);
    while (consumed < 4)
        F(rd_kafka_consume_callback_queue)(q, 1000, consume_cb, NULL);
    number("consume_callback_queue", consumed);
    produce(0, 1);
    m = F(rd_kafka_consumer_poll)(rk, 30000);
    error("offset_store_message", F(rd_kafka_offset_store_message)(m));
    code("commit_message", F(rd_kafka_commit_message)(rk, m, 0));
    F(rd_kafka_message_destroy)(m);

    code("commit", F(rd_kafka_commit)(rk, p, 0));
    code("commit_queue", F(rd_kafka_commit_queue)(rk, p, NULL, commit_cb, NULL));
    code("offset_store", F(rd_kafka_offset_store)(rkt, 0, 1));
    p->elems[0].offset = 1;
    code("offsets_store", F(rd_kafka_offsets_store)(rk, p));
    code("committed", F(rd_kafka_committed)(rk, p, 10000));
    code("position", F(rd_kafka_position)(rk, p));
    p->elems[0].offset = 0;
    code("offsets_for_times", F(rd_kafka_offsets_for_times)(rk, p, 10000));
    p->elems[0].offset = 0;
    code("pause_partitions", F(rd_kafka_pause_partitions)(rk, p));
    code("resume_partitions", F(rd_kafka_resume_partitions)(rk, p));
    code("seek", F(rd_kafka_seek)(rkt, 0, 0, 10000));
    error("seek_partitions", F(rd_kafka_seek_partitions)(rk, p, 10000));
    F(rd_kafka_topic_partition_list_destroy)(F(rd_kafka_topic_partition_list_copy)(p));
    F(rd_kafka_topic_partition_list_destroy)(p);
}

static void questions(void)
{
    char why[256];
    int64_t low, high;
    size_t n = 0;
    rd_kafka_topic_partition_list_t *out = NULL;
    const struct rd_kafka_metadata *metadata = NULL;
    const struct rd_kafka_group_list *groups = NULL;
    char *text;

    code("query_watermark_offsets", F(rd_kafka_query_watermark_offsets)(rk, TOPIC, 0, &low, &high, 10000));
    say("%" PRId64 "..%" PRId64, low, high);
    code("get_watermark_offsets", F(rd_kafka_get_watermark_offsets)(rk, TOPIC, 0, &low, &high));
    code("assignment", F(rd_kafka_assignment)(rk, &out));
    number("assigned", out->cnt);
    rd_kafka_topic_partition_list_destroy(out);
    code("subscription", F(rd_kafka_subscription)(rk, &out));
    number("subscribed", out->cnt);
    rd_kafka_topic_partition_list_destroy(out);
    say("rebalance_protocol=%s", F(rd_kafka_rebalance_protocol)(rk));
    number("assignment_lost", F(rd_kafka_assignment_lost)(rk));
    object("memberid", text = F(rd_kafka_memberid)(rk));
    rd_kafka_mem_free(rk, text);
    rd_kafka_consumer_group_metadata_t *meta = F(rd_kafka_consumer_group_metadata)(rk);
    object("consumer_group_metadata", meta);
    rd_kafka_consumer_group_metadata_destroy(meta);
    object("name", F(rd_kafka_name)(rk));
    number("type", F(rd_kafka_type)(rk));
    number("opaque", (intptr_t)F(rd_kafka_opaque)(rk));
    object("conf", F(rd_kafka_conf)(rk));
    rd_kafka_topic_conf_t *defaults = F(rd_kafka_default_topic_conf_dup)(rk);
    object("default_topic_conf_dup", defaults);
    rd_kafka_topic_conf_destroy(defaults);
    code("fatal_error", F(rd_kafka_fatal_error)(rk, why, sizeof(why)));
    object("clusterid", text = F(rd_kafka_clusterid)(rk, 10000));
    rd_kafka_mem_free(rk, text);
    number("controllerid", F(rd_kafka_controllerid)(rk, 10000));
    code("metadata", F(rd_kafka_metadata)(rk, 0, rkt, &metadata, 10000));
    number("topics", metadata->topic_cnt);
    rd_kafka_metadata_destroy(metadata);
    code("list_groups", F(rd_kafka_list_groups)(rk, "nobody", &groups, 2000));
    if (groups)
        rd_kafka_group_list_destroy(groups);
    number("brokers_add", F(rd_kafka_brokers_add)(rk, bootstrap));
    int32_t *ids = F(rd_kafka_brokers_learned_ids)(rk, &n);
    number("brokers_learned_ids", (int64_t)n);
    free(ids);
    number("outq_len", F(rd_kafka_outq_len)(rk) >= 0);
    F(rd_kafka_set_logger)(rk, rd_kafka_log_print);
    F(rd_kafka_set_log_level)(rk, 3);
    FILE *nowhere = fopen("/dev/null", "we");
    F(rd_kafka_dump)(nowhere, rk);
    fclose(nowhere);
    F(rd_kafka_yield)(rk);
    code("set_log_queue", F(rd_kafka_set_log_queue)(rk, NULL));
    error("sasl_background_callbacks_enable", F(rd_kafka_sasl_background_callbacks_enable)(rk));
    error("sasl_set_credentials", F(rd_kafka_sasl_set_credentials)(rk, "a", "b"));
    code("oauthbearer_set_token",
         F(rd_kafka_oauthbearer_set_token)(rk, "t", 1, "p", NULL, 0, why, sizeof(why)));
    code("oauthbearer_set_token_failure", F(rd_kafka_oauthbearer_set_token_failure)(rk, "no"));
}

static void queues(void)
{
    rd_kafka_queue_t *main_queue = F(rd_kafka_queue_get_main)(rk), *mine = F(rd_kafka_queue_new)(rk);
    rd_kafka_queue_t *partition = F(rd_kafka_queue_get_partition)(rk, TOPIC, 0), *sasl, *background;
    object("queue_get_main", main_queue);
    object("queue_get_partition", partition);
    object("queue_get_sasl", sasl = F(rd_kafka_queue_get_sasl)(rk));
    object("queue_get_background", background = F(rd_kafka_queue_get_background)(rk));
    number("poll", F(rd_kafka_poll)(rk, 0));
    number("queue_poll_callback", F(rd_kafka_queue_poll_callback)(main_queue, 0));
    number("queue_length", (int64_t)F(rd_kafka_queue_length)(mine));
    F(rd_kafka_queue_io_event_enable)(mine, -1, NULL, 0);
    F(rd_kafka_queue_cb_event_enable)(mine, queue_cb, NULL);
    F(rd_kafka_queue_cb_event_enable)(mine, NULL, NULL);
    F(rd_kafka_queue_forward)(mine, main_queue);
    F(rd_kafka_queue_forward)(mine, NULL);
    F(rd_kafka_queue_yield)(mine);
    event("queue_poll(mine)", F(rd_kafka_queue_poll)(mine, 0));
    F(rd_kafka_queue_destroy)(main_queue);
    F(rd_kafka_queue_destroy)(mine);
    F(rd_kafka_queue_destroy)(partition);
    if (sasl)
        F(rd_kafka_queue_destroy)(sasl);
    if (background)
        F(rd_kafka_queue_destroy)(background);
    code("poll_set_consumer", F(rd_kafka_poll_set_consumer)(rk));
}

/* A consumer without a group, and the calls that look at one partition. */
static void legacy(void)
{
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new(), *copy, *part;
    const char *left_out[] = {"client.id"};
    set(conf, "bootstrap.servers", bootstrap);
    copy = F(rd_kafka_conf_dup)(conf);
    part = F(rd_kafka_conf_dup_filter)(conf, 1, left_out);
    object("conf_dup_filter", part);
    rd_kafka_conf_destroy(conf);
    rd_kafka_conf_destroy(part);
    rd_kafka_t *old = F(rd_kafka_new)(RD_KAFKA_CONSUMER, copy, why, sizeof(why));
    rd_kafka_topic_t *t = F(rd_kafka_topic_new)(old, TOPIC, NULL);
    rd_kafka_queue_t *mine = F(rd_kafka_queue_new)(old);
    rd_kafka_message_t *batch[1];
    number("consume_start", F(rd_kafka_consume_start)(t, 0, 0));
    message("consume", F(rd_kafka_consume)(t, 0, 30000));
    ssize_t n = F(rd_kafka_consume_batch)(t, 0, 30000, batch, 1);
    number("consume_batch", n);
    for (ssize_t i = 0; i < n; i++)
        F(rd_kafka_message_destroy)(batch[i]);
    consumed = 0;
    while (!consumed)
        F(rd_kafka_consume_callback)(t, 0, 1000, consume_cb, NULL);
    number("consume_stop", F(rd_kafka_consume_stop)(t, 0));
    number("consume_start_queue", F(rd_kafka_consume_start_queue)(t, 1, 0, mine));
    number("consume_stop", F(rd_kafka_consume_stop)(t, 1));
    F(rd_kafka_queue_destroy)(mine);
    F(rd_kafka_topic_destroy)(t);
    F(rd_kafka_destroy_flags)(old, 0);
}

static void group(void)
{
    rd_kafka_topic_partition_list_t *p = one(0, 0), *topics = one(-1, 0);
    code("subscribe", F(rd_kafka_subscribe)(rk, topics));
    code("unsubscribe", F(rd_kafka_unsubscribe)(rk));
    code("assign", F(rd_kafka_assign)(rk, p));
    message("assigned",
            F(rd_kafka_consumer_poll)(rk, 30000)); /* librdkafka 2.15 asserts when it is hurried */
    error("incremental_unassign", F(rd_kafka_incremental_unassign)(rk, p));
    message("unassigned", F(rd_kafka_consumer_poll)(rk, 500));
    error("incremental_assign", F(rd_kafka_incremental_assign)(rk, p));
    message("assigned", F(rd_kafka_consumer_poll)(rk, 30000));
    rd_kafka_topic_partition_list_destroy(p);
    rd_kafka_topic_partition_list_destroy(topics);
}

static void ends(void)
{
    char why[256];
    code("consumer_close", F(rd_kafka_consumer_close)(rk));
    number("consumer_closed", F(rd_kafka_consumer_closed)(rk));
    F(rd_kafka_queue_destroy)(q);
    F(rd_kafka_topic_destroy)(rkt);
    F(rd_kafka_destroy)(rk);

    rd_kafka_t *other = F(rd_kafka_new)(RD_KAFKA_CONSUMER, consumer_conf("other", NULL), why, sizeof(why));
    code("test_fatal_error", F(rd_kafka_test_fatal_error)(producer, RD_KAFKA_RESP_ERR__FENCED, "a test"));
    rd_kafka_queue_t *last = F(rd_kafka_queue_new)(other);
    error("consumer_close_queue", F(rd_kafka_consumer_close_queue)(other, last));
    while (!F(rd_kafka_consumer_closed)(other)) {
        rd_kafka_event_t *e = F(rd_kafka_queue_poll)(last, 100); /* how many there are is a matter of time */
        if (e)
            F(rd_kafka_event_destroy)(e);
    }
    F(rd_kafka_queue_destroy)(last);
    F(rd_kafka_destroy)(other);
}

int main(void)
{
    mock_start(2);
    produce(1, 1);
    rk = consumer_new(consumer_conf("every", "enable.auto.offset.store", "false", "log_level", "3", NULL));
    rkt = F(rd_kafka_topic_new)(rk, TOPIC, NULL);
    q = F(rd_kafka_queue_get_consumer)(rk);
    assign(rk, 1);
    messages();
    questions();
    queues();
    admin();
    legacy();
    group();
    ends();
    mock_stop();
    int missed = 0;
    for (int i = 0; i < IDS; i++) {
        if (called[i] || strstr(names[i], "rd_kafka_share_")) /* 2.16 */
            continue;
        say("missed %s", names[i]);
        missed++;
    }
    return missed != 0;
}
#endif
