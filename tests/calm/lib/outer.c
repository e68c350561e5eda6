/* A plugin with RUNPATH=$ORIGIN/deep that opens its sibling there: only the caller's own RUNPATH finds it. */
#include <dlfcn.h>
#include <stdio.h>

static int call(const char *how, void *h)
{
    int (*answer)(void);
    if (!h) {
        printf("%s=%s\n", how, dlerror());
        return -1;
    }
    *(void **)&answer = dlsym(h, "answer");
    printf("%s=%d\n", how, answer ? answer() : -2);
    return dlclose(h);
}

int run(void);
int run(void)
{
    int r = 0;
    r += call("by name", dlopen("sibling.so", RTLD_NOW));
    r += call("by name, lazy and global", dlopen("sibling.so", RTLD_LAZY | RTLD_GLOBAL));
    r += call("by name, deepbind", dlopen("sibling.so", RTLD_NOW | RTLD_DEEPBIND));
    r += call("by origin", dlopen("$ORIGIN/deep/sibling.so", RTLD_NOW));
    r += call("by origin, deepbind",
              dlopen("$ORIGIN/deep/sibling.so", RTLD_LAZY | RTLD_GLOBAL | RTLD_DEEPBIND));
    r += call("by dlmopen", dlmopen(LM_ID_BASE, "sibling.so", RTLD_NOW));
    call("missing", dlopen("missing-sibling.so", RTLD_NOW));
    call("missing, deepbind", dlopen("missing-sibling.so", RTLD_NOW | RTLD_DEEPBIND));
    return r;
}
