/*
 * host FILE [THREADS]: opens a module from that many threads at once and calls its run() when all are back.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char *file;

static void *open_it(void *unused)
{
    (void)unused;
    void *module = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!module)
        printf("not ok: %s\n", dlerror());
    return module ? dlsym(module, "run") : NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[16];
    void *run = NULL, *other;
    int n = argc > 2 ? atoi(argv[2]) : 1;
    char *words[] = {argv[0], NULL};
    if (argc < 2 || n > 16)
        return 2;
    file = argv[1];
    for (int i = 1; i < n; i++)
        if (pthread_create(&threads[i], NULL, open_it, NULL))
            return 2;
    run = open_it(NULL);
    for (int i = 1; i < n; i++)
        if (pthread_join(threads[i], &other) || other != run)
            return 1;
    return run ? ((int (*)(int, char **))run)(1, words) : 1;
}
