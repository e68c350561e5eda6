/*
 * close_queue [fatal | late_assign | silent]: the event API's way to close. The application answers
 * rebalance events and polls until the consumer says it is closed.
 *
 * fatal        the consumer has had a fatal error, so that close_queue fails and closed() stays false
 *
 * late_assign  the assign event is still in the queue when the close begins; librdkafka #4884
 *
 * silent       the revoke event is thrown away: it is polled for ever, and no call stands. Under the
 * shim somebody answers once the report has been seen
 */
#include "probe.h"

static rd_kafka_t *rk;
static rd_kafka_queue_t *queue;
static bool assigned, revoked, silent;

static void serve(int timeout_ms)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, timeout_ms);
    if (!event)
        return;
    if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE) {
        bool given = rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        step("%s the %s", silent && !given ? "throw away" : "answer", given ? "assign" : "revoke");
        if (given || !silent)
            expect_err(rd_kafka_assign(rk, given ? rd_kafka_event_topic_partition_list(event) : NULL),
                       RD_KAFKA_RESP_ERR_NO_ERROR);
        *(given ? &assigned : &revoked) = true;
    }
    rd_kafka_event_destroy(event);
}

int main(int argc, char **argv)
{
    bool fatal = argc > 1 && !strcmp(argv[1], "fatal");
    bool late = argc > 1 && !strcmp(argv[1], "late_assign");
    silent = argc > 1 && !strcmp(argv[1], "silent");
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 1);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_REBALANCE);
    rk = consumer_new(conf);
    queue = rd_kafka_queue_get_consumer(rk);
    if (late) {
        subscribe_to(rk, "t");
        eventually(rd_kafka_queue_length(queue) > 0, "no assign event");
    } else if (!fatal) {
        subscribe_to(rk, "t");
        eventually((serve(100), assigned), "no assignment");
    }
    if (fatal)
        rd_kafka_test_fatal_error(rk, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, "for a test");

    step("close_queue");
    rd_kafka_error_t *error = rd_kafka_consumer_close_queue(rk, queue);
    expect(!error == !fatal, "close_queue: %s", error ? rd_kafka_error_string(error) : "no error");
    if (error)
        rd_kafka_error_destroy(error);
    if (silent) {
        eventually((serve(100), revoked && said("finding: rebalance-unanswered") != 0), "never said");
        if (shimmed())
            expect_err(rd_kafka_assign(rk, NULL), RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    expect(within(patience_ms(), (serve(100), rd_kafka_consumer_closed(rk))), "never closed");
    expect(fatal || late || revoked, "closed without a revoke");
    serve(0); /* closed() may be true before the queue is empty, and destroy waits for what is left there */
    rd_kafka_queue_destroy(queue);
    step("destroy");
    /* plain destroy hangs after a fatal error: destroy_fatal */
    rd_kafka_destroy_flags(rk, fatal ? RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE : 0);
    mock_close(&mock);
    probe_ok("closed by its queue");
}
