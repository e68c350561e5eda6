/*
 * alone: a program without librdkafka tells what it is made of: threads, open files, signal handlers,
 * children.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

static int entries(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    if (!d)
        return -1;
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

int main(int argc, char **argv)
{
    int handlers = 0, status, initial = errno;
    pid_t pid;

    for (int i = 1; i < NSIG; i++) {
        struct sigaction sa;
        if (sigaction(i, NULL, &sa) == 0 && sa.sa_handler != SIG_DFL && sa.sa_handler != SIG_IGN)
            handlers++;
    }
    printf("errno=%d\n", initial);
    printf("handlers=%d\n", handlers);
    printf("files=%d\n", entries("/proc/self/fd"));
    usleep(100000); /* a thread that is started late is still seen */
    printf("threads=%d\n", entries("/proc/self/task"));
    printf("secure=%lu\n", getauxval(AT_SECURE));
    printf("arguments=%d %s\n", argc, argc > 1 ? argv[1] : "");
    fflush(stdout);

    pid = fork();
    if (pid == 0) {
        printf("child_threads=%d\n", entries("/proc/self/task"));
        fflush(stdout);
        _exit(3);
    }
    waitpid(pid, &status, 0);
    printf("child=%d\n", WEXITSTATUS(status));
    return argc > 2 ? atoi(argv[2]) : 0;
}
