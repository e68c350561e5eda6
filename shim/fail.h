/*
 * fail.h: how each function says no, as named in the column "fail" of calls.def. Evaluated in a wrapper,
 * where e is the entry. The values are those that librdkafka's own functions give (facts: rdkafka.h of each).
 */
#ifndef RDGATE_FAIL_H
#define RDGATE_FAIL_H

#define FAIL_CODE        ((rd_kafka_resp_err_t)e.code)
#define FAIL_CODE_OUT(p) (*(p) = NULL, (rd_kafka_resp_err_t)e.code)
#define FAIL_OBJECT      rdg_error(&e)
#define FAIL_NONE        NULL
#define FAIL_NONE_LE     (rdg_last_error(&e), rdg_nobody(&e))
#define FAIL_ZERO        0
#define FAIL_ONE         1
#define FAIL_MINUS       (-1)
#define FAIL_MINUS_LE    (rdg_last_error(&e), -1)
#define FAIL_TEXT        ""
#define FAIL_CONSUMER    RD_KAFKA_CONSUMER

#endif
