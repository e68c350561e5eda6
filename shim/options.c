/*
 * options.c: reads the RDGATE_* variables by the table options.def. Shared by the shim and the command.
 * It must not write, allocate or look at anything but its arguments.
 */
#include "options.h"
#include "say.h"

#include <stdbool.h>
#include <string.h>

const struct option_info option_infos[] = {
#define STRING(x)                                        #x
#define CHOICE(NAME, field, fallback, values, help)      {#NAME, fallback, values, help},
#define NUMBER(NAME, field, fallback, least, most, help) {#NAME, STRING(fallback), NULL, help},
#define TEXT(NAME, field, fallback, help)                {#NAME, fallback, NULL, help},
#include "options.def"
};
const int option_count = sizeof(option_infos) / sizeof(*option_infos);

/* How many letters must change; small names, so the plain recurrence on one row does. */
static int distance(const char *a, const char *b)
{
    int row[64];
    int lb = (int)strnlen(b, 63);
    for (int j = 0; j <= lb; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= lb; j++) {
            int change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            int other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < other ? change : other;
        }
    }
    return row[lb];
}

const char *options_nearest(const char *name)
{
    const char *best = option_infos[0].name;
    int least = 1000;
    for (int i = 0; i < option_count; i++) {
        int d = distance(name, option_infos[i].name);
        if (d < least) {
            least = d;
            best = option_infos[i].name;
        }
    }
    return best;
}

/* Does the value fit a word of the list? "exit:N" takes a number of 0 to 255. */
static int fits(const char *word, size_t len, const char *value, int *number)
{
    *number = 0;
    if (!len)
        return 0;
    if (strlen(value) == len && memcmp(word, value, len) == 0 && word[len - 1] != 'N')
        return 1;
    if (len < 3 || memcmp(word + len - 2, ":N", 2) != 0 || strncmp(value, word, len - 1) != 0)
        return 0;
    const char *p = value + len - 1;
    while (*p >= '0' && *p <= '9' && *number <= 255)
        *number = *number * 10 + (*p++ - '0');
    return p != value + len - 1 && !*p && *number <= 255;
}

static int choose(int *to, const char *name, const char *value, const char *values, complain_f *complain)
{
    int n = 0;
    for (const char *p = values; *p; n++) {
        size_t len = strcspn(p, " ");
        int number;
        if (fits(p, len, value, &number)) {
            *to = n | number << 8;
            return 0;
        }
        p += len + (p[len] == ' ');
    }
    struct text t = {0};
    text_add(&t, "option RDGATE_");
    text_add(&t, name);
    text_add(&t, "=");
    text_escaped(&t, value, 40);
    text_add(&t, " is ignored: valid are ");
    text_add(&t, values);
    complain(text_end(&t));
    return -1;
}

static int count(long *to, const char *name, const char *value, long least, long most, complain_f *complain)
{
    long n = 0;
    const char *p = value;
    while (*p >= '0' && *p <= '9' && n <= most)
        n = n * 10 + (*p++ - '0');
    if (p != value && !*p && n >= least && n <= most) {
        *to = n;
        return 0;
    }
    struct text t = {0};
    text_add(&t, "option RDGATE_");
    text_add(&t, name);
    text_add(&t, "=");
    text_escaped(&t, value, 40);
    text_add(&t, " is ignored: valid is a whole number from ");
    text_number(&t, least);
    text_add(&t, " to ");
    text_number(&t, most);
    complain(text_end(&t));
    return -1;
}

static int copy(char *to, size_t size, const char *name, const char *value, complain_f *complain)
{
    size_t len = strlen(value);
    if (len > 0 && len < size) {
        memcpy(to, value, len + 1);
        return 0;
    }
    struct text t = {0};
    text_add(&t, "option RDGATE_");
    text_add(&t, name);
    text_add(&t, " is ignored: valid is a text of 1 to 255 characters");
    complain(text_end(&t));
    return -1;
}

static void nothing(const char *sentence)
{
    (void)sentence;
}

void options_default(struct options *o)
{
    memset(o, 0, sizeof(*o));
#define CHOICE(NAME, field, fallback, values, help)      choose(&o->field, #NAME, fallback, values, nothing);
#define NUMBER(NAME, field, fallback, least, most, help) o->field = fallback;
#define TEXT(NAME, field, fallback, help)                copy(o->field, sizeof(o->field), #NAME, fallback, nothing);
#include "options.def"
}

int options_set(struct options *o, const char *name, const char *value, complain_f *complain)
{
#define CHOICE(NAME, field, fallback, values, help)                                                          \
    if (strcmp(name, #NAME) == 0)                                                                            \
        return choose(&o->field, name, value, values, complain);
#define NUMBER(NAME, field, fallback, least, most, help)                                                     \
    if (strcmp(name, #NAME) == 0)                                                                            \
        return count(&o->field, name, value, least, most, complain);
#define TEXT(NAME, field, fallback, help)                                                                    \
    if (strcmp(name, #NAME) == 0)                                                                            \
        return copy(o->field, sizeof(o->field), name, value, complain);
#include "options.def"
    struct text t = {0};
    text_add(&t, "option RDGATE_");
    text_escaped(&t, name, 40);
    text_add(&t, " is unknown, ignored; did you mean RDGATE_");
    text_add(&t, options_nearest(name));
    text_add(&t, "?");
    complain(text_end(&t));
    return -1;
}

void options_parse(struct options *o, char *const *env, complain_f *complain)
{
    for (; env && *env; env++) {
        const char *at = *env;
        const char *eq = strchr(at, '=');
        if (!eq || strncmp(at, "RDGATE_", 7) != 0)
            continue;
        char name[48];
        size_t len = (size_t)(eq - at) - 7;
        if (len >= sizeof(name))
            len = sizeof(name) - 1;
        memcpy(name, at + 7, len);
        name[len] = 0;
        options_set(o, name, eq + 1, complain);
    }
}
