/*
 * signals poll    a thread in consumer_poll(1500) gets fifty signals while another thread calls: it stays its
 * time signals wait    a thread in consumer_poll(-1) and one in a call behind a long call get signals:
 * handlers run at once, not when the call is over, and nothing is cut short
 */
#include "calm.h"
#include <signal.h>

static rd_kafka_t *rk;
static _Atomic pid_t handled_by;
static atomic_int handled;

static void handler(int sig)
{
    (void)sig;
    handled_by = (pid_t)syscall(SYS_gettid);
    handled++;
}

/* Send a signal to the thread and see it handled there. */
static void poke(struct thread *t)
{
    int before = handled;
    if (pthread_kill(t->id, SIGUSR1))
        die("no thread to signal");
    UNTIL(handled > before, 20000);
    if (handled_by != t->tid)
        die("handled by another thread");
}

static void call(void)
{
    rd_kafka_topic_partition_list_t *l = one(0, 1);
    rd_kafka_resp_err_t e = rd_kafka_committed(rk, l, 10000);
    if (e)
        die("committed: %s", rd_kafka_err2name(e));
    rd_kafka_topic_partition_list_destroy(l);
}

static void poller(struct thread *t)
{
    double t0 = now_ms();
    rd_kafka_message_t *m;
    int e;

    here(t);
    m = rd_kafka_consumer_poll(rk, t->n);
    e = errno;
    say("poll=%s", m ? "message" : rd_kafka_err2name(rd_kafka_last_error()));
    say("poll_errno=%s", m ? "-" : errno_name(e));
    say("poll_ms=%d", (int)(now_ms() - t0));
    if (m)
        rd_kafka_message_destroy(m);
}

static void holder(struct thread *t)
{
    int64_t lo, hi;
    here(t);
    rd_kafka_resp_err_t e = rd_kafka_query_watermark_offsets(rk, TOPIC, 0, &lo, &hi, 30000);
    say("holder=%s", rd_kafka_err2name(e));
}

static void waiter(struct thread *t)
{
    here(t);
    while (!t->n)
        call();
}

int main(int argc, char **argv)
{
    struct sigaction sa = {.sa_handler = handler};
    struct thread p, h, w;
    bool wait = argc > 1 && !strcmp(argv[1], "wait");

    sigaction(SIGUSR1, &sa, NULL); /* without SA_RESTART: the strictest */
    mock_start(1);
    rk = consumer_new(consumer_conf("signals", NULL));
    assign(rk, 1);
    warm(rk, 1);
    warm_commit(rk);

    start(&p, poller, NULL, wait ? -1 : 1500);
    UNTIL(settled(p.tid), 10000);
    if (wait) {
        mock_answer(LIST_OFFSETS, 2, RD_KAFKA_RESP_ERR_NO_ERROR, 4000);
        start(&h, holder, NULL, 0);
        UNTIL(mock_unused(LIST_OFFSETS) == 0, 10000);
        start(&w, waiter, NULL, 0);
        UNTIL(settled(w.tid), 10000);
        for (int i = 0; i < 20; i++) {
            poke(&p);
            poke(&h);
            poke(&w);
        }
        say("holder_inside=%d", !h.done);
        say("poll_inside=%d", !p.done);
        join(&h, 30000);
        w.n = 1;
        join(&w, 30000);
        produce(0, 1);
    } else {
        for (int i = 0; i < 50 && !p.done; i++) {
            double next = now_ms() + 20;
            poke(&p);
            call();
            while (now_ms() < next)
                nap();
        }
    }
    join(&p, 30000);
    say("handled=%d", handled);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    mock_stop();
    return 0;
}
