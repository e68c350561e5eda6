/* links: options.o say.o */
#include "options.h"
#include "tap.h"

static char said[8][512];
static int sentences;

static void complain(const char *sentence)
{
    if (sentences < 8)
        snprintf(said[sentences], sizeof said[0], "%s", sentence);
    sentences++;
}

static struct options parse(char *const *env)
{
    struct options o;
    sentences = 0;
    options_default(&o);
    options_parse(&o, env, complain);
    return o;
}

static struct options one(char *variable)
{
    char *env[] = {variable, NULL};
    return parse(env);
}

static int is_default(const struct options *o)
{
    return o->mode == SERIALIZE && o->max_wait_ms == 60000 && o->verbose == 0 &&
           strcmp(o->log, "stderr") == 0;
}

static void defaults(void)
{
    struct options o = one("PATH=/bin");
    is(o.mode, SERIALIZE);
    is(o.max_wait_ms, 60000);
    is(o.verbose, 0);
    is_text(o.log, "stderr");
    is(sentences, 0);
}

static void good_values(void)
{
    is(one("RDGATE_MODE=serialize").mode, SERIALIZE);
    is(one("RDGATE_MODE=lifetime").mode, LIFETIME);
    is(one("RDGATE_MODE=refuse").mode, REFUSE);
    is(one("RDGATE_MODE=observe").mode, OBSERVE);
    is(one("RDGATE_MODE=off").mode, OFF);
    is(one("RDGATE_MAX_WAIT_MS=0").max_wait_ms, 0);
    is(one("RDGATE_MAX_WAIT_MS=250").max_wait_ms, 250);
    is(one("PATH=/bin").close_ms, 0);
    is(one("RDGATE_CLOSE_MS=1500").close_ms, 1500);
    is_text(one("RDGATE_LOG=/tmp/%p").log, "/tmp/%p");
    is(sentences, 0);
    char *env[] = {"RDGATE_MODE=off", "HOME=/", "RDGATE_VERBOSE=1", NULL};
    struct options o = parse(env);
    is(o.mode, OFF);
    is(o.verbose, 1);
    is(sentences, 0);
}

static void bad_values(void)
{
    static char *const bad[] = {"RDGATE_MODE=banana",
                                "RDGATE_MODE=",
                                "RDGATE_MODE=observer",
                                "RDGATE_MODE=obs",
                                "RDGATE_MODE=observe ",
                                "RDGATE_MAX_WAIT_MS=",
                                "RDGATE_MAX_WAIT_MS=-1",
                                "RDGATE_MAX_WAIT_MS=1x",
                                "RDGATE_VERBOSE=2",
                                "RDGATE_MAX_WAIT_MS=99999999999999999999999999",
                                "RDGATE_LOG="};
    for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct options o = one(bad[i]);
        if (sentences != 1 || !is_default(&o)) {
            printf("# %s\n", bad[i]);
            ok(!"one sentence, and the default stays");
        }
    }
    one("RDGATE_MODE=banana");
    ok(strstr(said[0], "RDGATE_MODE") && strstr(said[0], "banana"));
    ok(strstr(said[0], "serialize") && strstr(said[0], "lifetime") && strstr(said[0], "off"));
    one("RDGATE_MAX_WAIT_MS=soon");
    ok(strstr(said[0], "soon") && strstr(said[0], " 0 "));
    char *env[] = {"RDGATE_MODE=x", "RDGATE_MOD=y", "RDGATE_VERBOSE=z", NULL};
    parse(env);
    is(sentences, 3);
}

static void unknown_names(void)
{
    one("RDGATE_MOD=x");
    is(sentences, 1);
    ok(strstr(said[0], "RDGATE_MOD ") && strstr(said[0], "RDGATE_MODE"));
    one("RDGATE_MAXWAIT=x");
    ok(strstr(said[0], "RDGATE_MAX_WAIT_MS") != NULL);
    one("RDGATE_=x");
    is(sentences, 1);
    one("RDGATE_A_NAME_THAT_IS_MUCH_LONGER_THAN_ANY_OPTION_THAT_WE_WILL_EVER_HAVE=x");
    is(sentences, 1);
    ok(strlen(said[0]) <= 300);
    one("RDGATE_NO_EQUALS_SIGN");
    is(sentences, 0);
    is_text(options_nearest("MODE"), "MODE");
    is_text(options_nearest("LGO"), "LOG");
    is_text(options_nearest("VERBOS"), "VERBOSE");
    ok(options_nearest("") != NULL);
}

int main(void)
{
    defaults();
    good_values();
    bad_values();
    unknown_names();
    return done();
}
