/*
 * table: says of every function of calls.def what its entry looks like ("NAME jump" or "NAME own"), and of
 * this process whether any memory is writable and executable at once, or any code no longer executable.
 */
#include "newer.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static const struct {
    const char *name;
    void (*entry)(void);
} functions[] = {
#define CALL(kind, result, name, ...) {#name, (void (*)(void))name},
#include "calls.def"
};

int main(void)
{
    char line[1024], flags[8];
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
        const uint8_t *p = (const uint8_t *)(uintptr_t)functions[i].entry;
        if (memcmp(p, "\xf3\x0f\x1e\xfa", 4) == 0)
            p += 4;
        /* Several of librdkafka's begin with a jump of their own; that leads into this program. */
        int32_t to;
        memcpy(&to, p + 1, sizeof(to));
        const uint8_t *target = p + 5 + to;
        int jump = p[0] == 0xe9 && target[0] == 0xff && target[1] == 0x25;
        printf("%s %s\n", functions[i].name, jump ? "jump" : "own");
    }
    FILE *maps = fopen("/proc/self/maps", "r");
    uintptr_t from, to, code = (uintptr_t)rd_kafka_new;
    while (maps && fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%lx-%lx %7s", &from, &to, flags) != 3)
            return 1;
        if (strstr(flags, "wx"))
            printf("writable and executable: %s", line);
        if (code >= from && code < to && strncmp(flags, "r-x", 3) != 0)
            printf("not executable: %s", line);
    }
    return 0;
}
