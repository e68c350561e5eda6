/* Somebody else's preload library: counts rd_kafka_consumer_poll and hands it on with RTLD_NEXT. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long calls;

void *rd_kafka_consumer_poll(void *rk, int timeout_ms)
{
    static void *(*next)(void *, int);
    if (!next && !(next = dlsym(RTLD_NEXT, "rd_kafka_consumer_poll")))
        abort();
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    return next(rk, timeout_ms);
}

__attribute__((destructor)) static void tell(void)
{
    fprintf(stderr, "count: %lu polls\n", calls);
}
