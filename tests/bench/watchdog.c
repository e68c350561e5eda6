/* What the watchdog uses of a processor while 100 consumers sit in a poll and nothing happens. */
#include "bench.h"

#include <dirent.h>

enum { CONSUMERS = 100, SECONDS = 4 };

static rd_kafka_t *rk[CONSUMERS];
static atomic_int polling;
static atomic_bool stop;

static void *poll_for_ever(void *arg)
{
    polling++;
    while (!stop)
        rd_kafka_consumer_poll(arg, 500);
    return NULL;
}

/* ns of processor time of the thread of this name (schedstat: run, waited, slices); -1: there is none. */
static double used_by(const char *name)
{
    double used = -1;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; tasks && (e = readdir(tasks));) {
        char path[300], comm[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        FILE *f = fopen(path, "re");
        if (!f)
            continue;
        bool it =
            fgets(comm, sizeof comm, f) && !strncmp(comm, name, strlen(name)) && comm[strlen(name)] == '\n';
        fclose(f);
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", e->d_name);
        if (it && (f = fopen(path, "re"))) {
            if (fgets(comm, sizeof comm, f))
                used = strtod(comm, NULL);
            fclose(f);
        }
    }
    if (tasks)
        closedir(tasks);
    return used;
}

int main(void)
{
    pthread_t thread[CONSUMERS];
    for (int i = 0; i < CONSUMERS; i++) {
        rk[i] = lonely_consumer("watchdog");
        pthread_create(&thread[i], NULL, poll_for_ever, rk[i]);
    }
    while (polling < CONSUMERS)
        sleep_us(1000);
    sleep_us(5000000); /* it once looks for handles that it does not know */
    double before = used_by("rdgate");
    int64_t start = now_ns();
    sleep_us(SECONDS * 1000000L);
    double after = used_by("rdgate");
    figure("watchdog_percent", before < 0 ? 0 : (after - before) / (double)(now_ns() - start) * 100);
    _exit(0); /* a hundred consumers take their time to close */
}
