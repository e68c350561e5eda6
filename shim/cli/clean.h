/*
 * clean.h: text from outside, made fit for a terminal, for JSON and for Prometheus.
 */
#ifndef RDGATE_CLI_CLEAN_H
#define RDGATE_CLI_CLEAN_H

#include <stdbool.h>
#include <stddef.h>

/* The string, terminated and cut to fit: valid UTF-8 without control characters, whatever does not belong
 * there shown as '?'. ascii: nothing beyond ASCII either. */
void clean(char *to, size_t size, const char *from, bool ascii);
/* Can the terminal show UTF-8? (setlocale has been called) */
bool speaks_utf8(void);

#endif
