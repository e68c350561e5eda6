/*
 * restless: a library whose constructor starts a thread, and a timer that signals every 100 us for a while,
 * both before anything of the program or of the shim runs.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static _Atomic int signals;

static void count(int signal)
{
    (void)signal;
    signals++;
}

static void *work(void *unused)
{
    while (signals < 1000)
        usleep(1000);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    printf("# restless: done\n");
    fflush(stdout);
    return unused;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    if (pthread_create(&thread, NULL, work, NULL))
        abort();
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 100}, {0, 100}}, NULL);
}
