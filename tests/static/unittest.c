/*
 * unittest: librdkafka's own unit tests. They call what they test from inside, through the redirected
 * entries.
 */
#include <librdkafka/rdkafka.h>
#include <stdio.h>

int main(void)
{
    int failed = rd_kafka_unittest();
    printf("%s\n", failed ? "not ok: librdkafka's unit tests" : "ok all passed");
    return failed != 0;
}
