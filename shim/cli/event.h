/*
 * event.h: an event of the flight file, and a thread, in words.
 */
#ifndef RDGATE_CLI_EVENT_H
#define RDGATE_CLI_EVENT_H

#include "flight.h"

/* The name of a thread, terminated; empty if nobody knows. */
void thread_name(char to[16], const struct flight *f, int tid);
/* "poller/4182"; as much as is known. Not cleaned. */
void thread_words(char *to, size_t size, const struct flight *f, int tid);
/* What happened, without when and to whom: "rd_kafka_commit waits for poller/4182 in rd_kafka_consumer_poll".
 */
void event_words(char *to, size_t size, const struct flight *f, const struct flight_event *e);
const char *callback_name(int callback); /* enum callback */
const char *finding_code(unsigned finding);
unsigned finding_severity(unsigned finding); /* enum severity */
/* 450 us, 1.2 ms, 12.4 s, 5.0 min */
void duration_words(char *to, size_t size, int64_t ns);
/* "info", "warning", "error" */
const char *severity_name(unsigned severity);

#endif
