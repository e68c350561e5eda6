/* spawn LIBRARY [COUNT]: starts /bin/true without and with LD_PRELOAD=LIBRARY, in turns. */
#include "bench.h"
#include <spawn.h>
#include <sys/wait.h>

static double spawn_ms(char *preload)
{
    char *argv[] = {"true", NULL}, *env[] = {"PATH=/bin:/usr/bin", preload, NULL};
    int64_t start = now_ns();
    pid_t pid;
    int status;

    if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, env) || waitpid(pid, &status, 0) != pid || status)
        die("/bin/true failed%s%s", preload ? " with " : "", preload ? preload : "");
    return (double)(now_ns() - start) / 1e6;
}

int main(int argc, char **argv)
{
    enum { MOST = 1000 };
    static double without[MOST], with[MOST];
    char preload[4096];
    int n = argc > 2 ? atoi(argv[2]) : 200;

    if (argc < 2 || n < 1 || n > MOST)
        die("usage: spawn LIBRARY [COUNT]");
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", argv[1]);
    for (int i = 0; i < n; i++) {
        without[i] = spawn_ms(NULL);
        with[i] = spawn_ms(preload);
    }
    figure("spawn_ms", percentile(without, n, 50));
    figure("spawn_shim_ms", percentile(with, n, 50));
    return 0;
}
