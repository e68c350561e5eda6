/*
 * start: does nothing, for the time that it takes to start. Of librdkafka it has all that one has whoever
 * calls it; with -DALONE nothing, though it asks libc for the same.
 */
#ifdef ALONE
#    include <netdb.h>
#    include <pthread.h>
#    include <stdlib.h>
#    include <sys/socket.h>
static void *volatile asked[] = {(void *)getaddrinfo, (void *)getnameinfo,    (void *)sendmsg,
                                 (void *)recvmsg,     (void *)pthread_create, (void *)pthread_setname_np,
                                 (void *)rand_r};
int main(void)
{
    return !asked[0];
}
#else
#    include <librdkafka/rdkafka.h>
int main(void)
{
    return rd_kafka_version() == 0;
}
#endif
