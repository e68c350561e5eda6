/*
 * findings.c: rdgate run --exit-code (findings.h). The parent stays, waits, and counts what the flight files
 * say; it must pass on signals and the way in which the program ended.
 */
#include "findings.h"
#include "cli.h"
#include "flight.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t child;

static void pass_on(int number)
{
    if (child > 0)
        kill(child, number);
}

/* Where flight files are anyway, so that ps and top find them. */
static bool base_directory(char *to, size_t size)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    for (int i = 0; i < 2; i++) {
        struct stat s;
        if (i == 0 && (!runtime || runtime[0] != '/'))
            continue;
        if (i == 0)
            snprintf(to, size, "%s/rdgate", runtime);
        else
            snprintf(to, size, "/dev/shm/rdgate-%u", (unsigned)geteuid());
        mkdir(to, 0700);
        if (lstat(to, &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid() && !(s.st_mode & 077))
            return true;
    }
    return false;
}

/* The directory and the flight files in it. */
static void take_away(const char *directory)
{
    DIR *d = opendir(directory);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(directory);
}

/* What killed runs have left: run.PID.XXXXXX */
static void sweep(const char *base)
{
    DIR *d = opendir(base);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[PATH_MAX];
        long pid = strncmp(e->d_name, "run.", 4) == 0 ? strtol(e->d_name + 4, NULL, 10) : 0;
        if (pid > 0 && pid <= INT_MAX && kill((pid_t)pid, 0) < 0 && errno == ESRCH &&
            snprintf(path, sizeof(path), "%s/%s", base, e->d_name) < (int)sizeof(path))
            take_away(path);
    }
    if (d)
        closedir(d);
}

static bool private_directory(char *to, size_t size)
{
    char base[PATH_MAX - 64];
    if (!base_directory(base, sizeof(base)))
        return false;
    sweep(base);
    snprintf(to, size, "%s/run.%d.XXXXXX", base, (int)getpid());
    return mkdtemp(to) != NULL;
}

struct count {
    uint64_t findings;
    int files;
};

static void count_file(const char *path, struct count *c)
{
    struct flight f;
    char why[FLIGHT_WHY];
    if (!flight_open_file(&f, path, why)) {
        fprintf(stderr, "rdgate run: %s\n", why);
        return;
    }
    c->findings += f.file->header.findings;
    c->files++;
    flight_shut(&f);
}

static struct count count_all(const char *directory)
{
    struct count c = {0, 0};
    DIR *d = opendir(directory);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[PATH_MAX];
        if (e->d_name[0] != '.' &&
            snprintf(path, sizeof(path), "%s/%s", directory, e->d_name) < (int)sizeof(path))
            count_file(path, &c);
    }
    if (d)
        closedir(d);
    return c;
}

/* Ends as the program did, without a core of our own. */
static void end_by(int number)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(number, SIG_DFL);
    raise(number);
}

int run_for_findings(char **argv, int code)
{
    static const int passed[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};
    char directory[PATH_MAX];
    int status;
    if (!private_directory(directory, sizeof(directory)) || setenv("RDGATE_FLIGHT", directory, 1) ||
        setenv("RDGATE_FLIGHT_KEEP", "1", 1)) {
        fprintf(
            stderr,
            "rdgate run: --exit-code has no place for flight files: neither XDG_RUNTIME_DIR nor /dev/shm\n");
        return EXIT_NOT_RUN;
    }
    pid_t pid = fork();
    if (pid == 0) {
        execvp(argv[0], argv);
        int e = errno;
        fprintf(stderr, "rdgate run: %s: %s\n", argv[0], strerror(e));
        _exit(e == ENOENT ? EXIT_NO_PROGRAM : EXIT_NOT_RUN);
    }
    child = pid;
    signal(SIGINT, SIG_IGN); /* the terminal sends these to both */
    signal(SIGQUIT, SIG_IGN);
    for (size_t i = 0; i < sizeof(passed) / sizeof(*passed); i++)
        signal(passed[i], pass_on);
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            pid = -1;
    child = 0;
    struct count c = count_all(directory);
    take_away(directory);
    if (pid < 0) {
        fprintf(stderr, "rdgate run: %s\n", strerror(errno));
        return EXIT_NOT_RUN;
    }
    if (WIFSIGNALED(status))
        end_by(WTERMSIG(status));
    if (!c.files && WEXITSTATUS(status) < EXIT_NOT_RUN)
        fputs("rdgate run: no consumer was seen: the program made none, or its calls do not come through "
              "rdgate\n",
              stderr);
    if (c.findings && !WEXITSTATUS(status)) {
        fprintf(stderr, "rdgate run: %" PRIu64 " finding%s: exit code %d\n", c.findings,
                c.findings == 1 ? "" : "s", code);
        return code;
    }
    return WEXITSTATUS(status);
}
