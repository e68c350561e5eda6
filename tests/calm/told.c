/*
 * told fd | cb [TIMEOUT]: an application that polls only when librdkafka has told it to, by a byte in a pipe
 * or a callback, until there is nothing more; with timeout 0, or another. That is told once, when the queue
 * was empty before. It comes while another thread's long call is in front of the poll: what the poll does not
 * bring then comes never.
 *
 *   got=N        messages that came
 *   long_calls=N how many of the other thread's calls were inside when a message was sent
 */
#include "calm.h"

#define ROUNDS 4

static rd_kafka_t *rk;
static int fds[2];
static int timeout_ms;
static atomic_int got;
static atomic_bool stop;

static void on_event(rd_kafka_t *handle, void *opaque)
{
    (void)handle, (void)opaque;
    if (write(fds[1], "x", 1) != 1)
        die("pipe");
}

static void consumer(struct thread *t)
{
    char told;
    here(t);
    while (read(fds[0], &told, 1) == 1 && !stop) {
        rd_kafka_message_t *m;
        while ((m = rd_kafka_consumer_poll(rk, timeout_ms))) {
            if (!m->err)
                got++;
            rd_kafka_message_destroy(m);
        }
    }
}

static void caller(struct thread *t)
{
    int64_t lo, hi;
    here(t);
    (void)rd_kafka_query_watermark_offsets(rk, TOPIC, 0, &lo, &hi, 60000);
}

int main(int argc, char **argv)
{
    bool by_fd = argc > 1 && !strcmp(argv[1], "fd");
    struct thread a, b;
    rd_kafka_queue_t *q;
    int long_calls = 0;

    timeout_ms = argc > 2 ? atoi(argv[2]) : 0;
    if (pipe(fds))
        die("pipe");
    mock_start(2);
    rk = consumer_new(consumer_conf("told", NULL));
    assign(rk, 2);
    warm(rk, 2);
    q = rd_kafka_queue_get_consumer(rk);
    if (by_fd)
        rd_kafka_queue_io_event_enable(q, fds[1], "x", 1);
    else
        rd_kafka_queue_cb_event_enable(q, on_event, NULL);
    start(&a, consumer, NULL, 0);
    for (int i = 0; i < ROUNDS; i++) {
        mock_answer(LIST_OFFSETS, 2, RD_KAFKA_RESP_ERR_NO_ERROR, 300);
        start(&b, caller, NULL, 0);
        UNTIL(mock_unused(LIST_OFFSETS) == 0, 10000);
        produce(1, 1);
        long_calls += !b.done;
        join(&b, 30000);
        UNTIL(got > i, 10000);
    }
    stop = true;
    on_event(rk, NULL);
    join(&a, 10000);
    say("got=%d", got);
    say("long_calls=%d", long_calls);
    if (by_fd)
        rd_kafka_queue_io_event_enable(q, -1, NULL, 0);
    else
        rd_kafka_queue_cb_event_enable(q, NULL, NULL);
    rd_kafka_queue_destroy(q);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    mock_stop();
    return 0;
}
