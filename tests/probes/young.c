/*
 * young: consumers that join a group before anybody could have looked at them, and are polled for the first
 * time only after the watchdog has: they are not late.
 */
#include "probe.h"

#define CONSUMERS 8

int main(void)
{
    rd_kafka_t *rk[CONSUMERS];
    struct timespec looks = {1, 0}; /* several of them; in less nothing is shown, and nothing fails */

    for (int i = 0; i < CONSUMERS; i++) {
        rk[i] = consumer_new(consumer_conf(NOWHERE));
        subscribe_to(rk[i], "t");
    }
    nanosleep(&looks, NULL);
    for (int i = 0; i < CONSUMERS; i++) {
        poll_once(rk[i], 10);
        expect_err(rd_kafka_consumer_close(rk[i]), RD_KAFKA_RESP_ERR_NO_ERROR);
        rd_kafka_destroy(rk[i]);
    }
    probe_ok("nobody was late");
}
