/*
 * lto: what link-time optimisation leaves of librdkafka, for the eye: its names are there, but some are
 * clones and the functions that matter are gone into their callers.
 */
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

#define LEFT(name)                                                                                           \
    __attribute__((noinline, noclone)) int name(int x);                                                      \
    int name(int x)                                                                                          \
    {                                                                                                        \
        return x + __LINE__;                                                                                 \
    }
LEFT(rd_kafka_assign)
LEFT(rd_kafka_commit)
LEFT(rd_kafka_conf_get)
LEFT(rd_kafka_conf_new)
LEFT(rd_kafka_consumer_close)
LEFT(rd_kafka_version)
LEFT(rd_kafka_subscribe)
__attribute__((noinline)) int private(int x) __asm__("rd_kafka_destroy_app.lto_priv.0");
int private(int x)
{
    return rd_kafka_assign(x) + rd_kafka_commit(x) + rd_kafka_conf_get(x) + rd_kafka_conf_new(x) +
           rd_kafka_consumer_close(x) + rd_kafka_version(x) + rd_kafka_subscribe(x);
}

int main(void)
{
    volatile int one = 1;
    /* as librdkafka does, it resolves names and starts threads with names */
    printf("# %p %p %p %p %p %p\n", (void *)getaddrinfo, (void *)getnameinfo, (void *)sendmsg,
           (void *)recvmsg, (void *)pthread_create, (void *)pthread_setname_np);
    printf("ok %s\n", private(one) ? "it ran" : "");
    return 0;
}
