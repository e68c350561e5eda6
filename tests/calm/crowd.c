/*
 * crowd single|threads
 * 100 000 messages in six partitions, three processes of one group. Each consumer is used by one thread or by
 * three: one polls, one commits, one pauses, resumes and asks for positions. Every message must come once.
 */
#include "calm.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#define MEMBERS    3
#define PARTITIONS 6
#define MESSAGES   100000

static int in_partition(int p)
{
    return MESSAGES / PARTITIONS + (p < MESSAGES % PARTITIONS);
}

/* A member */

static rd_kafka_t *rk;
static rd_kafka_topic_partition_list_t *mine;
static int64_t next_offset[PARTITIONS];
static atomic_int messages, doubled, gaps, rebalances, calls;
static atomic_bool finished;

static void rebalance_cb(rd_kafka_t *h, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *l, void *o)
{
    (void)o;
    if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        if (mine)
            rd_kafka_topic_partition_list_destroy(mine);
        mine = rd_kafka_topic_partition_list_copy(l);
        rd_kafka_assign(h, l);
        say("assigned %d", l->cnt);
    } else {
        rd_kafka_assign(h, NULL);
        if (!finished)
            say("assigned 0");
    }
    if (messages)
        rebalances++;
}

static bool complete(void)
{
    if (!mine)
        return false;
    for (int i = 0; i < mine->cnt; i++)
        if (next_offset[mine->elems[i].partition] < in_partition(mine->elems[i].partition))
            return false;
    return true;
}

static void poller(struct thread *t)
{
    (void)t;
    while (!complete()) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 100);
        if (!m)
            continue;
        if (m->err) {
            die("message: %s", rd_kafka_message_errstr(m));
        } else if (m->offset < next_offset[m->partition]) {
            doubled++;
        } else {
            if (m->offset > next_offset[m->partition])
                gaps++;
            next_offset[m->partition] = m->offset + 1;
        }
        messages++;
        rd_kafka_message_destroy(m);
    }
    finished = true;
}

static void committer(struct thread *t)
{
    (void)t;
    while (!finished) {
        rd_kafka_resp_err_t e = rd_kafka_commit(rk, NULL, 0);
        if (e && e != RD_KAFKA_RESP_ERR__NO_OFFSET)
            die("commit: %s", rd_kafka_err2name(e));
        calls++;
        usleep(5000);
    }
}

static void pauser(struct thread *t)
{
    (void)t;
    for (int i = 0; !finished; i++) {
        rd_kafka_topic_partition_list_t *l = NULL, *p;
        if (rd_kafka_assignment(rk, &l))
            die("assignment");
        if (l->cnt) {
            const rd_kafka_topic_partition_t *x = &l->elems[i % l->cnt];
            p = one(x->partition, 0);
            if (rd_kafka_position(rk, p) || rd_kafka_pause_partitions(rk, p) ||
                rd_kafka_resume_partitions(rk, p))
                die("pause");
            calls += 3;
            rd_kafka_topic_partition_list_destroy(p);
        }
        rd_kafka_topic_partition_list_destroy(l);
        usleep(20000);
    }
}

static int member(bool threads)
{
    struct thread p, c, s;
    char byte;
    rd_kafka_conf_t *conf =
        consumer_conf("crowd", "session.timeout.ms", "6000", "heartbeat.interval.ms", "500", NULL);

    rd_kafka_conf_set_rebalance_cb(conf, rebalance_cb);
    rk = consumer_new(conf);
    subscribe(rk);
    start(&p, poller, NULL, 0);
    if (threads) {
        start(&c, committer, NULL, 0);
        start(&s, pauser, NULL, 0);
    }
    join(&p, 120000);
    if (threads) {
        join(&c, 60000);
        join(&s, 60000);
    }
    say("done %d %d %d %d %d", messages, doubled, gaps, rebalances, calls);
    /* leave together: nobody's leaving gives another one partitions */
    if (read(0, &byte, 1) < 0)
        die("no parent");
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    if (mine)
        rd_kafka_topic_partition_list_destroy(mine);
    return 0;
}

/* The parent: broker, producer and referee */

struct child {
    pid_t pid;
    int in, assigned;
    FILE *out;
    bool done;
    int result[5];
};

static void spawn(struct child *c, const char *mode)
{
    int in[2], out[2];

    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        die("pipe");
    c->pid = fork();
    if (c->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execl("/proc/self/exe", "crowd", "member", mode, bootstrap, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    c->in = in[1];
    c->out = fdopen(out[0], "r");
    setvbuf(c->out, NULL, _IONBF, 0);
}

/* One line from any child, or the end of the program */
static void line(struct child *c)
{
    struct pollfd p[MEMBERS];
    char text[128];

    for (int i = 0; i < MEMBERS; i++)
        p[i] = (struct pollfd){.fd = fileno(c[i].out), .events = POLLIN};
    if (poll(p, MEMBERS, 60000) <= 0)
        die("the members say nothing for 60 s");
    for (int i = 0; i < MEMBERS; i++) {
        if (!p[i].revents)
            continue;
        if (!fgets(text, sizeof text, c[i].out))
            die("member %d is gone", i);
        if (sscanf(text, "assigned %d", &c[i].assigned) == 1)
            continue;
        if (sscanf(text, "done %d %d %d %d %d", &c[i].result[0], &c[i].result[1], &c[i].result[2],
                   &c[i].result[3], &c[i].result[4]) == 5)
            c[i].done = true;
        else
            die("member %d: %s", i, text);
    }
}

static void produce_all(void)
{
    for (int i = 0; i < MESSAGES; i++) {
        rd_kafka_resp_err_t e;
        while ((e = rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(TOPIC), RD_KAFKA_V_PARTITION(i % PARTITIONS),
                                      RD_KAFKA_V_VALUE("twenty bytes of data", 20),
                                      RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END)) ==
               RD_KAFKA_RESP_ERR__QUEUE_FULL)
            rd_kafka_poll(producer, 10);
        if (e)
            die("produce: %s", rd_kafka_err2str(e));
        /* in portions, so that the members do other things beside polling */
        if ((i + 1) % (MESSAGES / 25) == 0) {
            if (rd_kafka_flush(producer, 60000))
                die("flush timed out");
            usleep(30000);
        }
    }
}

int main(int argc, char **argv)
{
    struct child c[MEMBERS] = {0};
    int sum[5] = {0}, bad = 0;
    double t0;

    if (argc == 4 && !strcmp(argv[1], "member")) {
        bootstrap = argv[3];
        return member(!strcmp(argv[2], "threads"));
    }
    if (argc != 2)
        die("crowd single|threads");

    t0 = now_ms();
    mock_start(PARTITIONS);
    mock_group_delay(3000);
    for (int i = 0; i < MEMBERS; i++)
        spawn(&c[i], argv[1]);
    while (c[0].assigned != 2 || c[1].assigned != 2 || c[2].assigned != 2)
        line(c);
    say("settled_ms=%d", (int)(now_ms() - t0));
    t0 = now_ms();
    produce_all();
    while (!c[0].done || !c[1].done || !c[2].done)
        line(c);
    for (int i = 0; i < MEMBERS; i++)
        for (int k = 0; k < 5; k++)
            sum[k] += c[i].result[k];
    say("messages=%d", sum[0]);
    say("doubled=%d", sum[1]);
    say("gaps=%d", sum[2]);
    say("rebalances=%d", sum[3]);
    say("calls=%d", sum[4]);
    say("ms=%d", (int)(now_ms() - t0));

    for (int i = 0; i < MEMBERS; i++)
        close(c[i].in);
    for (int i = 0; i < MEMBERS; i++) {
        int status;
        waitpid(c[i].pid, &status, 0);
        bad += status != 0;
    }
    say("bad_exits=%d", bad);
    mock_stop();
    return 0;
}
