#ifndef RDGATE_STACK_H
#define RDGATE_STACK_H
#include "snapshot.h"
void stack_start(void);
int stack_here(uintptr_t *frames, int most);
int stack_of(int tid, uintptr_t *frames, int most, int64_t wait_ms);
bool place_name(uintptr_t address, struct place *p);
#endif
