/*
 * shim.h: what the wrappers share: the way in and out of a call, and the state of the process.
 */
#ifndef RDGATE_SHIM_H
#define RDGATE_SHIM_H

#include "handle.h"
#include "options.h"
#include "real.h"

extern struct options rdg_options;

/* Called by the first call that comes through: the process uses librdkafka, so options count from now on. */
void shim_awake(void);
extern _Atomic int rdg_awake;

/* One passage of a wrapper. */
struct entry {
    const struct library *lib; /* whose function to call */
    struct visit *visit;       /* NULL: straight on, nothing to leave */
    struct consumer *consumer;
    struct self *self;
    int code;                  /* the error to give, if we say no */
    int error;                 /* errno when the call came: an interrupted poll leaves no trace in it */
    int idle;                  /* a poll of a closed handle: what its timeout was */
    bool empty;                /* the poll brought nothing */
    bool refused;              /* false: the function does not exist in this library */
};

struct question {
    uint16_t call;
    uint8_t kind;        /* enum kind, 0: no handle */
    uint8_t traits;      /* besides the row's */
    const void *key;
    const void *caller;  /* return address */
    uintptr_t frame;
    int *timeout_ms;     /* NULL: none. Changed to what the real call shall get */
    rd_kafka_topic_t *topic;
    int32_t partition;
};

/* true: call entry->lib, then rdg_again (polls) and rdg_out if there is a visit. false: say no with ->code. */
bool rdg_in(struct entry *e, const struct question *q);
bool rdg_again(struct entry *e, bool empty, int *timeout_ms);
void rdg_out(struct entry *e);

/* How to say no. */
rd_kafka_error_t *rdg_error(const struct entry *e);
/* Makes rd_kafka_last_error() and errno say what a real refusal would. */
void rdg_last_error(const struct entry *e);

/* The unwinder passes through our frames by exception, pthread_cancel and pthread_exit; visits must not stay
 * behind. No landing pads and no libgcc: the frame names its personality, which does it (wrap.c). */
#define UNWOUND __asm__ volatile(".cfi_personality 0x1b, rdg_personality")
#define FRAME   ((uintptr_t)__builtin_frame_address(0))
#define CALLER  __builtin_return_address(0)
#define PUBLIC  __attribute__((visibility("default")))

#endif
