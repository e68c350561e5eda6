/* A plugin linked with librdkafka: consumes three messages, beside a thread that calls, and says whose it
 * got. */
#include "../calm.h"

const char *whose(void);
const char *whose(void)
{
    return "plugin";
}

static rd_kafka_t *rk;

static void caller(struct thread *t)
{
    here(t);
    for (int i = 0; i < 20; i++) {
        rd_kafka_topic_partition_list_t *l = one(0, 1);
        rd_kafka_position(rk, l);
        rd_kafka_committed(rk, l, 10000);
        rd_kafka_topic_partition_list_destroy(l);
    }
}

int run(void);
int run(void)
{
    struct thread t;
    int n = 0;

    mock_start(1);
    rk = consumer_new(consumer_conf("plugin", NULL));
    assign(rk, 1);
    warm(rk, 1);
    warm_commit(rk);
    start(&t, caller, NULL, 0);
    produce(0, 3);
    while (n < 3) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 30000);
        if (!m)
            die("no message");
        n++;
        rd_kafka_message_destroy(m);
    }
    join(&t, 30000);
    say("close=%s", rd_kafka_err2name(rd_kafka_consumer_close(rk)));
    rd_kafka_destroy(rk);
    mock_stop();
    say("version=%x", rd_kafka_version());
    say("whose=%s", whose());
    return n;
}
