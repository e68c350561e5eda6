/*
 * events io|cb N
 * The application is told that its consumer queue has something: by a byte in a pipe or by a callback. N
 * calls beside a blocked poll may each cost it one such word, not more, and a message still brings one.
 */
#include "calm.h"
#include <fcntl.h>
#include <poll.h>

static rd_kafka_t *rk;
static atomic_int callbacks;
static int fd[2];

static void event_cb(rd_kafka_t *h, void *opaque)
{
    (void)h, (void)opaque;
    callbacks++;
}

static void poller(struct thread *t)
{
    rd_kafka_message_t *m;
    here(t);
    m = rd_kafka_consumer_poll(rk, 3000);
    say("poll=%s", m ? "message" : "null");
    if (m)
        rd_kafka_message_destroy(m);
}

/* Words since the last look */
static int words(bool io)
{
    char buf[4096];
    ssize_t n, sum = 0;
    if (!io)
        return atomic_exchange(&callbacks, 0);
    while ((n = read(fd[0], buf, sizeof buf)) > 0)
        sum += n;
    return (int)sum;
}

int main(int argc, char **argv)
{
    bool io = argc > 1 && !strcmp(argv[1], "io");
    int n = argc > 2 ? atoi(argv[2]) : 50, calls, got = 0;
    rd_kafka_queue_t *q;
    rd_kafka_message_t *m;
    struct thread t;

    if (pipe2(fd, O_NONBLOCK | O_CLOEXEC))
        die("pipe");
    mock_start(1);
    rk = consumer_new(consumer_conf("events", NULL));
    q = rd_kafka_queue_get_consumer(rk);
    assign(rk, 1);
    warm(rk, 1);
    warm_commit(rk);
    if (io)
        rd_kafka_queue_io_event_enable(q, fd[1], "!", 1);
    else
        rd_kafka_queue_cb_event_enable(q, event_cb, NULL);

    start(&t, poller, NULL, 0);
    UNTIL(settled(t.tid), 10000);
    words(io);
    for (calls = 0; calls < n; calls++) {
        rd_kafka_topic_partition_list_t *l = one(0, 1);
        UNTIL(asleep(t.tid) || t.done, 10000);
        if (t.done)
            break;
        if (rd_kafka_committed(rk, l, 10000))
            die("committed");
        rd_kafka_topic_partition_list_destroy(l);
    }
    say("calls=%d", calls);
    join(&t, 30000);
    got = words(io);
    say("words=%d", got);
    say("too_many=%d", got > calls ? got - calls : 0);

    /* three messages one by one, each announced to an application that sleeps until it is told */
    for (int i = 0; i < 3; i++) {
        produce(0, 1);
        if (io) {
            struct pollfd p = {.fd = fd[0], .events = POLLIN};
            if (poll(&p, 1, 30000) != 1)
                die("message %d was not announced", i);
        } else {
            UNTIL(callbacks > 0, 30000);
        }
        words(io);
        m = rd_kafka_consumer_poll(rk, 0);
        if (!m || m->err)
            die("announced, not there");
        rd_kafka_message_destroy(m);
        /* served until empty: announces again */
        while ((m = rd_kafka_consumer_poll(rk, 0)))
            rd_kafka_message_destroy(m);
    }
    say("announced=3");

    if (io)
        rd_kafka_queue_io_event_enable(q, -1, NULL, 0);
    else
        rd_kafka_queue_cb_event_enable(q, NULL, NULL);
    rd_kafka_queue_destroy(q);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    mock_stop();
    return 0;
}
