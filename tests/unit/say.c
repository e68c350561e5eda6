/* links: say.o */
#include "say.h"
#include "tap.h"

#include <limits.h>

static const char *number(int64_t n)
{
    static struct text t;
    t = (struct text){0};
    text_number(&t, n);
    return text_end(&t);
}

static const char *hex(uint64_t n)
{
    static struct text t;
    t = (struct text){0};
    text_hex(&t, n);
    return text_end(&t);
}

static const char *escaped(const char *s, size_t most)
{
    static struct text t;
    t = (struct text){0};
    text_escaped(&t, s, most);
    return text_end(&t);
}

static const char *duration(int64_t ms)
{
    static struct text t;
    t = (struct text){0};
    text_duration(&t, ms);
    return text_end(&t);
}

static void never_overflows(void)
{
    struct {
        struct text t;
        char after[16];
    } box = {0};
    for (int i = 0; i < 5000; i++)
        text_add(&box.t, "abc");
    text_number(&box.t, INT64_MIN);
    text_hex(&box.t, UINT64_MAX);
    text_escaped(&box.t, "xyz", 3);
    text_duration(&box.t, 1);
    ok(strlen(text_end(&box.t)) < sizeof(box.t.bytes));
    ok(strlen(text_end(&box.t)) > sizeof(box.t.bytes) - 8);
    ok(strncmp(text_end(&box.t), "abcabc", 6) == 0);
    for (unsigned i = 0; i < sizeof(box.after); i++)
        if (box.after[i])
            ok(!"written behind the text");
}

int main(void)
{
    struct text t = {0};
    is_text(text_end(&t), "");
    text_add(&t, "a");
    text_add(&t, "");
    text_add(&t, "bc");
    is_text(text_end(&t), "abc");

    is_text(number(0), "0");
    is_text(number(-1), "-1");
    is_text(number(1234567890123), "1234567890123");
    is_text(number(INT64_MAX), "9223372036854775807");
    is_text(number(INT64_MIN), "-9223372036854775808");

    ok(strstr(hex(0xdeadbeef), "deadbeef") != NULL);
    ok(strstr(hex(UINT64_MAX), "ffffffffffffffff") != NULL);
    ok(strchr(hex(0), '0') != NULL);

    is_text(escaped("plain", 40), "plain");
    is_text(escaped("a\n\033[31m\x80", 40), "a??[31m?");
    ok(strncmp(escaped("abcdefgh", 3), "abc", 3) == 0);
    ok(!strchr(escaped("abcdefgh", 3), 'd'));

    is_text(duration(0), "0 ms");
    is_text(duration(450), "450 ms");
    is_text(duration(12300), "12.3 s");
    never_overflows();
    return done();
}
