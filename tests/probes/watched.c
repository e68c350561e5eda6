/*
 * watched: the watchdog's thread is there as long as a consumer is, takes no signals, is made again in a
 * forked child, and does not keep a process alive whose main thread has ended.
 */
#include "probe.h"

#include <dirent.h>
#include <sys/wait.h>

/* The signal mask of the thread `rdgate`, or -1: there is none. */
static long long blocked(void)
{
    long long mask = -1;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; tasks && (e = readdir(tasks));) {
        char path[300], line[256];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        FILE *f = fopen(path, "r");
        bool it = f && fgets(line, sizeof line, f) && !strcmp(line, "Name:\trdgate\n");
        while (it && fgets(line, sizeof line, f))
            if (!strncmp(line, "SigBlk:", 7))
                mask = (long long)(strtoull(line + 7, NULL, 16) & 0x7fffffff);
        if (f)
            fclose(f);
    }
    if (tasks)
        closedir(tasks);
    return mask;
}

static void *last_thread(void *arg)
{
    rd_kafka_t *rk = consumer_new(consumer_conf(NOWHERE));
    poll_once(rk, 10);
    rd_kafka_destroy(rk);
    return arg;
}

int main(void)
{
    bool shim = getenv("LD_PRELOAD") != NULL;
    expect(blocked() == -1, "it is there without a consumer");
    rd_kafka_t *rk = consumer_new(consumer_conf(NOWHERE)), *other = consumer_new(consumer_conf(NOWHERE));
    expect(!shim || within(5000, blocked() != -1), "there is no watchdog");
    /* All of 1 to 31 but KILL and STOP, which nobody can block. */
    expect(!shim || blocked() == (0x7fffffff & ~(1 << 8) & ~(1 << 18)), "signals come to it: %llx",
           blocked());
    rd_kafka_destroy(other);
    expect(!shim || blocked() != -1, "it went with the first of two consumers");

    step("fork");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        rd_kafka_t *mine = consumer_new(consumer_conf(NOWHERE));
        bool there = !shim || within(5000, blocked() != -1);
        rd_kafka_destroy(mine);
        _exit(there && blocked() == -1 ? 0 : 1);
    }
    int status = -1;
    eventually(waitpid(child, &status, WNOHANG) == child, "the child did not end");
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "no watchdog in the child, or it stayed: %x",
           status);
    rd_kafka_destroy(rk);
    expect(blocked() == -1, "it is still there without a consumer");

    step("the main thread ends");
    printf("ok watched\n");
    fflush(stdout);
    static struct worker w; /* outlives this thread */
    start(&w, last_thread, NULL);
    pthread_detach(w.thread);
    pthread_exit(NULL);
}
