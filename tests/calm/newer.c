/*
 * newer: functions that the build header does not know, where the loaded librdkafka has them. A share
 * consumer is made and destroyed; an offset is stored by message. What a library lacks, it lacks with the
 * shim, too.
 */
#include "calm.h"
#include <dlfcn.h>

typedef rd_kafka_error_t *store_f(rd_kafka_message_t *);
typedef void *share_new_f(rd_kafka_conf_t *, char *, size_t);
typedef rd_kafka_error_t *share_destroy_f(void *);

static void *ask(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    printf("%s=%s\n", name, found ? "there" : "missing");
    return found;
}

int main(void)
{
    char why[256] = "";
    store_f *store = (store_f *)ask("rd_kafka_offset_store_message");
    share_new_f *share_new = (share_new_f *)ask("rd_kafka_share_consumer_new");
    share_destroy_f *share_destroy = (share_destroy_f *)ask("rd_kafka_share_destroy");
    ask("rd_kafka_consumer_poll");
    ask("rd_kafka_nonsense");
    if (store) {
        rd_kafka_message_t m;
        memset(&m, 0, sizeof m);
        m.err = RD_KAFKA_RESP_ERR__STATE;
        rd_kafka_error_t *e = store(&m);
        printf("store=%s\n", e ? rd_kafka_error_name(e) : "NULL");
        rd_kafka_error_destroy(e);
    }
    if (share_new && share_destroy) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_conf_set(conf, "group.id", "share", why, sizeof why);
        rd_kafka_conf_set(conf, "bootstrap.servers", "127.0.0.1:1", why, sizeof why);
        rd_kafka_conf_set(conf, "log_level", "0", why, sizeof why);
        void *share = share_new(conf, why, sizeof why);
        printf("share=%s\n", share ? "made" : why);
        if (share)
            printf("destroyed=%s\n", share_destroy(share) ? "no" : "yes");
    }
    return 0;
}
