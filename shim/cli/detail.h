/*
 * detail.h: one consumer in full, as lines of text, for rdgate top.
 */
#ifndef RDGATE_CLI_DETAIL_H
#define RDGATE_CLI_DETAIL_H

#include "flight.h"

#include <stdio.h>

/* Writes what there is to say of a row of the file; at most so many of its last events. */
void detail_write(FILE *to, const struct flight *f, int row, int most_events);

#endif
