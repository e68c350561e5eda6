/*
 * report.h: a verdict about a snapshot as text or JSON. Pure: bytes into a buffer; the only file with report
 * wording is report.c (and the tables findings.def and defects.def, which it expands).
 */
#ifndef RDGATE_REPORT_H
#define RDGATE_REPORT_H

#include "verdict.h"

#include <stddef.h>

/* Writes the report into bytes[0 … size), cut at a line end (text) or still valid (JSON) if it does not fit.
 * Returns its length. Text: lines of at most 100 columns, ASCII, each ended by a newline. JSON: one line. */
size_t report_text(char *bytes, size_t size, const struct snapshot *s, const struct verdict *v, long number);
size_t report_json(char *bytes, size_t size, const struct snapshot *s, const struct verdict *v, long number);
/* One line: "moving again" for what was reported as number `of` and lasted so long. */
size_t report_moving_text(char *bytes, size_t size, const struct snapshot *s, const struct verdict *v,
                          long of, int64_t lasted);
size_t report_moving_json(char *bytes, size_t size, const struct snapshot *s, const struct verdict *v,
                          long of, int64_t lasted);
/* The code of a finding (NULL: there is none of this number), and how bad it is. */
const char *report_code(int finding);
enum severity report_severity(int finding);

#endif
