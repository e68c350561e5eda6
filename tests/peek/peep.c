/*
 * peep.c: preloaded into somebody else's program: looks at all of its threads once they have come to rest,
 * and says what they sleep in. PEEP_THREADS: how many must be asleep in a futex before it counts. Ends the
 * program.
 */
#include "peek.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int me;
static struct {
    int futex, mutex, other;
} now;

static void look(void)
{
    DIR *dir = opendir("/proc/self/task");
    memset(&now, 0, sizeof(now));
    for (struct dirent *e; dir && (e = readdir(dir));) {
        int tid = (int)strtol(e->d_name, NULL, 10);
        struct seen_thread t;
        if (tid <= 0 || tid == me)
            continue;
        peek_thread(tid, &t);
        if (t.sleep == SLEEP_MUTEX)
            now.mutex++;
        else if (t.sleep == SLEEP_FUTEX)
            now.futex++;
        else
            now.other++;
    }
    if (dir)
        closedir(dir);
}

static void breathe(void)
{
    struct timespec t = {0, 1000000};
    nanosleep(&t, NULL);
}

static void *peep(void *p)
{
    int wanted = *(int *)p, still = 0, mutexes = 0, looks = 0;
    me = (int)syscall(SYS_gettid);
    for (int i = 0; i < 20000 && still < 100; i++) { /* at rest: so many looks in a row */
        look();
        still = now.futex + now.mutex >= wanted ? still + 1 : 0;
        breathe();
    }
    for (; still >= 100 && looks < 500; looks++) {
        look();
        mutexes += now.mutex;
        if (looks % 16 == 0)
            breathe();
    }
    printf("looks %d mutexes %d futexes %d others %d\n", looks, mutexes, now.futex, now.other);
    fflush(stdout);
    _exit(looks ? 0 : 1);
}

__attribute__((constructor)) static void start(void)
{
    static int wanted;
    pthread_t t;
    const char *threads = getenv("PEEP_THREADS");
    if (!threads)
        return;
    wanted = (int)strtol(threads, NULL, 10);
    unsetenv("PEEP_THREADS"); /* not for its children */
    peek_start();
    pthread_create(&t, NULL, peep, &wanted);
}
