/*
 * findings.h: runs a program with a directory of its own for flight files, to know afterwards whether
 * anything was found in it or in any process that it started.
 */
#ifndef RDGATE_CLI_FINDINGS_H
#define RDGATE_CLI_FINDINGS_H

/* Runs it; the environment is set but for the flight files. Returns as the program did, or `code` if that was
 * 0 and there were findings; ends by the program's signal if that ended so. */
int run_for_findings(char **argv, int code);

#endif
