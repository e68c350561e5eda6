/*
 * forks: a program with a consumer in use starts children in every way there is; they leave the consumer
 * alone. The children end as they should and the consumer does not notice.
 */
#include "calm.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static rd_kafka_t *rk;
static atomic_bool stop;

static void poller(struct thread *t)
{
    rd_kafka_message_t *m;
    here(t);
    m = rd_kafka_consumer_poll(rk, -1);
    say("poll=%s", m && !m->err ? "message" : "nothing");
    if (m)
        rd_kafka_message_destroy(m);
}

static void caller(struct thread *t)
{
    here(t);
    for (; !stop; t->n++) {
        rd_kafka_topic_partition_list_t *l = one(0, 1);
        if (rd_kafka_committed(rk, l, 10000) || rd_kafka_position(rk, l))
            die("committed");
        rd_kafka_topic_partition_list_destroy(l);
    }
}

static int ended(pid_t pid)
{
    int status = -1;
    double deadline = now_ms() + 20000;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (now_ms() > deadline)
            die("child %d does not end", (int)pid);
        nap();
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int main(void)
{
    char *args[] = {"sh", "-c", "exit 4", NULL}, line[32];
    int forked = 0, exited = 0, executed = 0, spawned = 0, opened = 0, run = 0;
    struct thread p, c;
    pid_t pid;
    FILE *f;

    mock_start(1);
    rk = consumer_new(consumer_conf("forks", NULL));
    assign(rk, 1);
    warm(rk, 1);
    warm_commit(rk);
    start(&p, poller, NULL, 0);
    start(&c, caller, NULL, 0);
    UNTIL(settled(p.tid), 10000);

    for (int i = 0; i < 10; i++) {
        fflush(NULL);
        if ((pid = fork()) == 0)
            _exit(2);
        forked += ended(pid) == 2;
        /* exit runs destructors and atexit functions in the child */
        if ((pid = fork()) == 0)
            exit(3);
        exited += ended(pid) == 3;
        if ((pid = fork()) == 0) {
            execv("/bin/sh", args);
            _exit(127);
        }
        executed += ended(pid) == 4;
        if (posix_spawn(&pid, "/bin/sh", NULL, NULL, args, environ))
            die("posix_spawn");
        spawned += ended(pid) == 4;
        f = popen("echo child", "r");
        opened += f && fgets(line, sizeof line, f) && !strcmp(line, "child\n") && pclose(f) == 0;
        run += system("exit 5") == 5 << 8;
    }
    say("forked=%d", forked);
    say("exited=%d", exited);
    say("executed=%d", executed);
    say("spawned=%d", spawned);
    say("opened=%d", opened);
    say("run=%d", run);
    stop = true;
    join(&c, 30000);
    say("poll_inside=%d", !p.done);
    produce(0, 1);
    join(&p, 30000);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    mock_stop();
    return 0;
}
