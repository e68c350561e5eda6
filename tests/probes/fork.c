/*
 * fork WHAT: a child touches its parent's consumer, whose threads it does not have. Plain librdkafka waits
 * for them for ever, or aborts. The child must come back; the parent, polling all the while, must not notice.
 */
#include "probe.h"
#include <signal.h>
#include <sys/wait.h>

enum { MESSAGES = 20 };

static rd_kafka_t *rk;
static atomic_int got;
static atomic_bool stop;

static void *poller(void *arg)
{
    while (!stop)
        if (poll_once(rk, 200))
            got++;
    return arg;
}

static void touch(const char *what)
{
    if (!strcmp(what, "assignment")) {
        rd_kafka_topic_partition_list_t *list = NULL;
        expect(rd_kafka_assignment(rk, &list), "the child has an assignment");
        expect(!list, "the child has a list");
    } else if (!strcmp(what, "commit")) {
        expect(commit_at(rk, "t", 1, 0), "the child has committed");
    } else if (!strcmp(what, "close")) {
        expect(rd_kafka_consumer_close(rk), "the child has closed");
    } else if (!strcmp(what, "poll")) {
        expect(!poll_once(rk, -1), "the child has got a message");
    } else if (!strcmp(what, "destroy")) {
        rd_kafka_destroy(rk);
    } else if (!strcmp(what, "destroy_flags")) {
        rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    } else {
        probe_fail("do not know %s", what);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "assignment";
    struct worker w;
    struct mock mock;
    mock_open(&mock);
    mock_topic(&mock, "t", 1);
    mock_produce(&mock, "t", 0, MESSAGES);
    rd_kafka_conf_t *conf = consumer_conf(mock.bootstraps);
    conf_set(conf, "fetch.wait.max.ms", "10");
    rk = consumer_new(conf);
    assign_all(rk, "t", 1);
    start(&w, poller, NULL);
    eventually(got == MESSAGES, "%d of %d messages", (int)got, MESSAGES);

    step("fork");
    pid_t child = fork();
    if (child == 0) {
        touch(what);
        _exit(0);
    }
    int status = 0;
    if (!within(patience_ms(), waitpid(child, &status, WNOHANG) == child)) {
        kill(child, SIGKILL);
        probe_fail("the child's %s did not return", what);
    }
    expect(!WIFSIGNALED(status), "the child's %s died of signal %d", what, WTERMSIG(status));
    expect(WEXITSTATUS(status) == 0, "the child's %s was wrong", what);

    step("go on as before");
    mock_produce(&mock, "t", 0, MESSAGES);
    eventually(got == 2 * MESSAGES, "%d of %d messages", (int)got, 2 * MESSAGES);
    stop = true;
    join(&w, "the poll");
    expect_err(commit_at(rk, "t", 1, 0), RD_KAFKA_RESP_ERR_NO_ERROR);
    step("close");
    expect_err(rd_kafka_consumer_close(rk), RD_KAFKA_RESP_ERR_NO_ERROR);
    step("destroy");
    rd_kafka_destroy(rk);
    mock_close(&mock);
    probe_ok("the child came back and the parent went on");
}
