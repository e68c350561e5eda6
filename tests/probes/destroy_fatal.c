/*
 * destroy_fatal: a consumer that has had a fatal error is destroyed. librdkafka refuses to close such a
 * consumer and then waits in destroy for ever for the group that was not closed; only
 * destroy_flags(NO_CONSUMER_CLOSE) returns.
 */
#include "probe.h"

int main(void)
{
    struct mock mock;
    mock_open(&mock);
    rd_kafka_t *rk = consumer_new(consumer_conf(mock.bootstraps));
    expect_err(rd_kafka_test_fatal_error(rk, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, "for a test"),
               RD_KAFKA_RESP_ERR_NO_ERROR);
    step("close");
    expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR__FATAL);
    step("destroy");
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("destroyed after a fatal error");
}
