/*
 * newer.h: types and prototypes of librdkafka functions that the build header may be too old to know, so that
 * a shim built with 2.0.2 gates 2.15 as well. Only opaque types; it must not describe the inside of anything.
 */
#ifndef RDGATE_NEWER_H
#define RDGATE_NEWER_H

#include <librdkafka/rdkafka.h>
#include <sys/types.h>

/* Repeating a typedef of the same incomplete type is allowed in C11, so these agree with newer headers. */
typedef struct rd_kafka_share_s rd_kafka_share_t;
typedef struct rd_kafka_messages_s rd_kafka_messages_t;
typedef struct rd_kafka_share_partition_offsets_list_s rd_kafka_share_partition_offsets_list_t;
typedef struct rd_kafka_TopicCollection_s rd_kafka_TopicCollection_t;
typedef struct rd_kafka_UserScramCredentialAlteration_s rd_kafka_UserScramCredentialAlteration_t;
typedef struct rd_kafka_ElectLeaders_s rd_kafka_ElectLeaders_t;
#if RD_KAFKA_VERSION < 0x020f0000
typedef unsigned int rd_kafka_share_AcknowledgeType_t; /* an enum there; the same register */
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define CALL(kind, result, name, parameters, ...) result name parameters;
#include "calls.def"
#pragma GCC diagnostic pop

#endif
