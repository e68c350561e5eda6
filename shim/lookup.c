/*
 * lookup.c: the C half of dlsym and dlopen. Called by every program that asks the loader for anything, so it
 * answers "not ours" at once for every name that does not begin with rd_kafka_, and leaves dlerror() alone.
 */
#include "lookup.h"
#include "patch.h"
#include "real.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern const void *const rdg_wrappers[CALL_COUNT];

/* Programs ask whether librdkafka is there, and whether it knows a function: our wrapper must not say yes for
 * it. */
static void *in_scope(const char *name, int call, const void *caller)
{
    const struct library *lib = library_for_caller(caller);
    if (lib && lib->calls[call])
        return NULL;
    void *other = rdg_real_dlsym(RTLD_NEXT, name); /* sets dlerror() */
    return other ? other : NOT_THERE;
}

void *rdg_lookup(void *handle, const char *name, const void *caller)
{
    if (!rdg_real_dlsym)
        real_start(); /* another library's early constructor */
    if (!name || strncmp(name, "rd_kafka_", 9) != 0)
        return NULL;
    for (int i = 0; i < CALL_COUNT; i++) {
        if (strcmp(name, rdg_calls[i].name) != 0)
            continue;
        if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) {
            const struct library *callers = library_for_caller(caller);
            if (!callers || !callers->hidden)
                return in_scope(name, i, caller);
            /* His own copy has no name that could be found; there may be another one, behind us. */
            handle = RTLD_NEXT;
            if (!rdg_real_dlsym(handle, name))
                return NOT_THERE;
        }
        /* With an explicit handle the answer does not depend on the caller (glibc elf/dl-sym.c). */
        void *found = rdg_real_dlsym(handle, name);
        const struct library *lib = found ? library_of(found) : NULL;
        if (!lib)
            return found; /* no librdkafka, or another interposer; NULL asks once more, for the true dlerror()
                           */
        library_by_name(lib);
        if (rdg_calls[i].class == PASS || rdg_calls[i].class == BIRTH) {
            void *own = odd_entry(i, (int)(lib - library_at(0)));
            if (own)
                return own;
            if (rdg_calls[i].class == PASS)
                return found;
        }
        return (void *)rdg_wrappers[i];
    }
    return NULL;
}

/* Does this file speak of librdkafka, by a needed library or by symbols of its own? */
static int speaks_of_librdkafka(const char *file)
{
    if (!strchr(file, '/'))
        return strstr(file, "rdkafka") != NULL; /* the loader will search; only the name is known */
    int yes = 0;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED) {
            yes =
                memmem(p, (size_t)st.st_size, "rdkafka", 7) || memmem(p, (size_t)st.st_size, "rd_kafka_", 9);
            munmap(p, (size_t)st.st_size);
        }
    }
    close(fd);
    return yes;
}

int rdg_open_flags(const char *file, int flags)
{
    if (!rdg_real_dlopen)
        real_start();
    if (file && strchr(file, '/') && !strchr(file, '$') && !(flags & RTLD_NOLOAD))
        patch_module(file, flags);
    /* PHP opens its extensions with DEEPBIND, which binds them past every preload. For everything that has
     * nothing to do with librdkafka the flag is the application's business. */
    if (!(flags & RTLD_DEEPBIND) || !file)
        return flags;
    int saved = errno;
    if (speaks_of_librdkafka(file))
        flags &= ~RTLD_DEEPBIND;
    errno = saved;
    return flags;
}
