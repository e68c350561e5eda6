/*
 * plan.h: how one function's entry can be moved, and the moved code. Pure: bytes in, bytes out.
 */
#ifndef RDGATE_PLAN_H
#define RDGATE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_JUMP 5   /* bytes written at the entry */
#define PLAN_SLOT 128 /* bytes of the near area that each function takes */
#define PLAN_TAIL 32  /* where in its slot the trampoline begins */

struct plan {
    uint64_t entry; /* address of the function */
    uint32_t at;    /* offset of the jump: behind an endbr64 */
    uint32_t moved; /* offset of the first byte that is not displaced */
};

/* Was the decoder there when this was built? */
bool plan_possible(void);
/* Can the function be moved? `code`: `readable` bytes of it, of which `size` are its own and the rest, up to
 * the next symbol, may be padding. NULL: yes; otherwise why not. */
const char *plan_entry(struct plan *p, const uint8_t *code, size_t size, size_t readable, uint64_t entry);
/* Does other code of the same function (its cold part) jump into what is displaced? */
bool plan_disturbed(const struct plan *p, const uint8_t *code, size_t size, uint64_t address);
/* Fills the slot that will stand at `address`: a jump to `wrapper`, and the trampoline. false: out of reach.
 */
bool plan_slot(const struct plan *p, const uint8_t *code, uint64_t address, const void *wrapper,
               uint8_t slot[PLAN_SLOT]);
/* The jump to the slot. false: out of reach. */
bool plan_jump(const struct plan *p, uint64_t slot, uint8_t jump[PLAN_JUMP]);

#endif
