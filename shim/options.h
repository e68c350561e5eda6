/*
 * options.h: the options of options.def, parsed. Pure: no files, no output, no globals but the result.
 */
#ifndef RDGATE_OPTIONS_H
#define RDGATE_OPTIONS_H

/* The order of options.def. */
enum mode { SERIALIZE, LIFETIME, REFUSE, OBSERVE, OFF };
enum format { FORMAT_TEXT, FORMAT_JSON };
enum on_deadlock { ON_DEADLOCK_REPORT, ON_DEADLOCK_ABORT, ON_DEADLOCK_EXIT };
enum owner_stack { OWNER_STACK_DEADLOCK, OWNER_STACK_ALWAYS, OWNER_STACK_NEVER };
enum patch { PATCH_OFF, PATCH_AUTO };

struct options {
#define CHOICE(NAME, field, ...) int field;
#define NUMBER(NAME, field, ...) long field;
#define TEXT(NAME, field, ...)   char field[256];
#include "options.def"
};

struct option_info {
    const char *name; /* without RDGATE_ */
    const char *fallback;
    const char *values; /* NULL unless a choice */
    const char *help;
};

extern const struct option_info option_infos[];
extern const int option_count;

/* Called for each thing that is wrong with one sentence of at most 300 characters. */
typedef void complain_f(const char *sentence);

/* The defaults. */
void options_default(struct options *o);
/* Takes every RDGATE_* of environ (NULL-terminated "NAME=value" strings); a bad one is complained of and
 * ignored. */
void options_parse(struct options *o, char *const *env, complain_f *complain);
/* Sets one option by its name (MODE). Returns 0, or -1 after a complaint. */
int options_set(struct options *o, const char *name, const char *value, complain_f *complain);
/* The option whose name is nearest to this one. Never NULL. */
const char *options_nearest(const char *name);

#endif
