/*
 * host PLUGIN BOOTSTRAP TOPIC MESSAGES: knows nothing of Kafka, and opens a plugin that does with the flags
 * PHP uses for its extensions: deep binding, which hides every preloaded symbol.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    void *plugin = dlopen(argv[1], RTLD_LAZY | RTLD_GLOBAL | RTLD_DEEPBIND);
    if (!plugin)
        return fprintf(stderr, "%s\n", dlerror()), 1;
    int (*run)(const char *, const char *, int) = dlsym(plugin, "plugin_run");
    return run ? run(argv[2], argv[3], atoi(argv[4])) : 1;
}
