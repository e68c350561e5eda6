/* links: call.o verdict.o report.o page.o */
/* With a directory as argument it writes there what the golden files have (tests/report.bats, make golden).
 */
#include "cases.h"
#include "tap.h"

static char text[16384], json[16384];

static int write_all(const char *directory)
{
    const char *name;
    for (int i = 0; (name = make_case(i)); i++)
        for (int k = 0; k < 2; k++) {
            char path[512];
            size_t n = k ? report_json(text, sizeof(text), &snap, &found, i + 1)
                         : report_text(text, sizeof(text), &snap, &found, i + 1);
            snprintf(path, sizeof(path), "%s/%s.%s", directory, name, k ? "json" : "txt");
            FILE *f = fopen(path, "w");
            if (!f || fwrite(text, 1, n, f) != n || fclose(f) != 0)
                return 1;
        }
    return 0;
}

/* Every line within 100 columns, ASCII, ended. */
static int well_formed(const char *s, size_t n)
{
    int column = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\n') {
            column = 0;
            continue;
        }
        if (s[i] < 0x20 || s[i] > 0x7e || ++column > 100)
            return 0;
    }
    return n == 0 || s[n - 1] == '\n';
}

static void every_case(void)
{
    const char *name;
    int bad = 0, codes[FINDINGS] = {0};
    for (int i = 0; (name = make_case(i)); i++) {
        size_t n = report_text(text, sizeof(text), &snap, &found, 1);
        size_t m = report_json(json, sizeof(json), &snap, &found, 1);
        codes[found.finding] = 1;
        if (!strcmp(name, "none") || !n || !m || !well_formed(text, n) || !strstr(text, "\nSUMMARY: ") ||
            !strstr(text, "\nrdgate: [4170] finding: ") || strstr(text, "-1 ms") ||
            memchr(json, '\n', m - 1) || strpbrk(text, "{}[|") != strstr(text, "[4170]")) {
            printf("# case %d %s\n%s\n", i, name, text);
            bad++;
        }
    }
    is(bad, 0);
    for (int f = 0; f < FINDINGS; f++)
        if (!codes[f]) {
            printf("# no case for finding %d\n", f);
            ok(!"every finding has a case");
        }
}

static void hostile(void)
{
    int bad = 0;
    for (int i = 0; make_case(i); i++) {
        for (int k = 0; k < 2; k++) {
            memset(consumers[k].name, k ? '"' : '\\', sizeof(consumers[k].name));
            memset(consumers[k].group, 0x80 + k, sizeof(consumers[k].group));
            memset(consumers[k].poll_thread, '\n', sizeof(consumers[k].poll_thread));
            memset(consumers[k].version_text, '~', sizeof(consumers[k].version_text));
        }
        for (int k = 0; k < 3; k++) {
            memset(threads[k].name, '\033', sizeof(threads[k].name));
            memset(threads[k].call[0].caller.function, 'x', sizeof(threads[k].call[0].caller.function));
            memset(threads[k].call[0].caller.object, 'y', sizeof(threads[k].call[0].caller.object));
        }
        memset(snap.program, '}', sizeof(snap.program));
        size_t n = report_text(text, sizeof(text), &snap, &found, 1);
        size_t m = report_json(json, sizeof(json), &snap, &found, 1);
        bad += !n || !well_formed(text, n) || !m || strpbrk(json, "\n") != json + m - 1;
    }
    is(bad, 0);
}

static void any_size(void)
{
    int bad = 0;
    for (int i = 0; make_case(i); i++)
        for (size_t size = 0; size < 6000; size += size < 600 ? 1 : 97) {
            memset(text, 'z', sizeof(text));
            size_t n = report_text(text, size, &snap, &found, 1);
            bad += n > size || text[size] != 'z' || (size && !well_formed(text, n));
            memset(json, 'z', sizeof(json));
            n = report_json(json, size, &snap, &found, 1);
            bad +=
                n > size || json[size] != 'z' || (n && (json[0] != '{' || strcmp(json + n - 2, "}\n") != 0));
        }
    is(bad, 0);
}

static void moving(void)
{
    make_case(0);
    size_t n = report_moving_text(text, sizeof(text), &snap, &found, 2, 31200);
    text[n] = 0;
    is_text(text, "rdgate: [4170] moving again: deadlock: rd_kafka_consumer_poll on consumer "
                  "\"orders-7#consumer-1\" of\n         group \"billing\" after 31.2 s (report 2)\n");
    ok(report_moving_json(json, sizeof(json), &snap, &found, 2, 31200) > 0);
    ok(strstr(json, "\"moving\":true,\"lasted_ms\":31200}\n") != NULL);
    ok(strstr(json, "\"time\":\"2023-11-14T22:13:20.123Z\"") != NULL);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return write_all(argv[1]);
    every_case();
    hostile();
    any_size();
    moving();
    return done();
}
