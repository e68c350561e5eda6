/*
 * covers.h: how librdgate.so covers a program, a module or a process, or why not. Collects what is to be
 * said; prints nothing.
 */
#ifndef RDGATE_COVERS_H
#define RDGATE_COVERS_H

#include "world.h"
#include "../options.h"

enum level { LEVEL_OK, LEVEL_NO, LEVEL_NOTE, LEVEL_WORKS };

struct line {
    enum level level;
    char *text;
    char *more; /* what to do about it, or NULL */
};

#define LINES_MOST     128
#define LIBRARIES_MOST 16
#define OTHERS_MOST    512

/* How calls come to us. */
enum by { BY_PRELOAD = 1, BY_DLSYM = 2, BY_PATCH = 4 };

struct covers {
    struct world world;
    struct options options; /* as the program will have them */
    int pid;                /* 0: a file */
    char shim[PATH_MAX];    /* empty: there is none */
    bool verbose;

    struct line lines[LINES_MOST];
    int line_count;
    bool no;     /* it is not covered */
    unsigned by; /* enum by */
    struct {
        char path[PATH_MAX];
        unsigned version;
        bool covered;
    } libraries[LIBRARIES_MOST];
    int library_count;
    bool gated[CALL_COUNT];
    int gated_count;
    char *others[OTHERS_MOST]; /* functions of librdkafka asked for and not gated */
    int other_count;
};

__attribute__((format(printf, 4, 5))) void covers_say(struct covers *c, enum level level, const char *more,
                                                      const char *format, ...);

/* A librdkafka that was found. */
void covers_library(struct covers *c, const char *path, unsigned version, bool covered);
const char *covers_version(unsigned version);

/* The program or module in l, with all that it needs. May use l's file as long as it runs. */
void covers_file(struct covers *c, struct loaded *l);
/* The process c->pid, whose program and mapped files these are. */
void covers_process(struct covers *c, struct loaded *objects, int count);

/* The defects of librdkafka that this version has: the i-th; false: there are no more. */
bool covers_defect(unsigned version, int i, int *number, const char **fixed, const char **what);
/* Why calls of this name have no gate; NULL: nothing is known of it. */
const char *covers_excuse(const char *name);

#endif
