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

/* The same columns: the error in what the function returned, for the flight file; r is that. */
#define RESULT_CODE        ((int)r)
#define RESULT_CODE_OUT(p) ((int)r)
#define RESULT_OBJECT      rdg_code(&e, (const void *)(uintptr_t)r)
#define RESULT_NONE        0
#define RESULT_NONE_LE     0
#define RESULT_ZERO        0
#define RESULT_ONE         0
#define RESULT_MINUS       ((intptr_t)r == -1 ? RD_KAFKA_RESP_ERR__FAIL : 0)
#define RESULT_MINUS_LE    RESULT_MINUS
#define RESULT_TEXT        0
#define RESULT_CONSUMER    0

#endif
