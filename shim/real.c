/*
 * real.c: finds the true function of each call, per librdkafka. The only file besides lookup.c that talks to
 * the loader. It must never open a library (only RTLD_NOLOAD) but what the application is opening, never hold
 * a lock while in the loader, and never be entered from the watchdog.
 */
#include "real.h"
#include "elf.h"
#include "lock.h"
#include "lookup.h"
#include "notes.h"

#include <errno.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/* The oldest version of dlsym that glibc's ABI promise keeps (glibc dlfcn/Versions). */
#if defined(__x86_64__)
#    define BASE_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#    define BASE_VERSION "GLIBC_2.17"
#else
#    error "lookup_<arch>.S and the base version of dlsym are missing for this architecture"
#endif

void *(*rdg_real_dlsym)(void *, const char *);
void *(*rdg_real_dlopen)(const char *, int);
static int (*cancel)(unsigned long);

static struct library libraries[LIBRARIES];
static _Atomic int libraries_known;
static struct lock sighting;

/* Which library a return address calls; written once, never changed. A full table only costs a lookup. */
#define CALLERS 1024
static struct caller {
    _Atomic uintptr_t address;
    _Atomic(const struct library *) library;
} callers[CALLERS];

int real_start(void)
{
    if (rdg_real_dlsym)
        return 0;
    void *(*s)(void *, const char *) =
        (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", BASE_VERSION);
    if (!s)
        return -1;
    rdg_real_dlopen = (void *(*)(const char *, int))s(RTLD_NEXT, "dlopen");
    cancel = (int (*)(unsigned long))s(RTLD_NEXT, "pthread_cancel");
    rdg_real_dlsym = s;
    return 0;
}

void *real_dlsym(void *handle, const char *name)
{
    return rdg_real_dlsym ? rdg_real_dlsym(handle, name) : NULL;
}

int real_pthread_cancel(unsigned long thread)
{
    if (!cancel)
        real_start();
    return cancel ? cancel(thread) : ENOSYS;
}

int library_count(void)
{
    return atomic_load_explicit(&libraries_known, memory_order_acquire);
}

const struct library *library_at(int i)
{
    return &libraries[i];
}

void library_by_name(const struct library *lib)
{
    if (!libraries[lib - libraries].by_name) {
        libraries[lib - libraries].by_name = true;
        report_reached(lib);
    }
}

const struct library *library_inside(const void *return_address)
{
    uintptr_t a = (uintptr_t)return_address;
    int n = library_count();
    for (int i = 0; i < n; i++)
        if (a - libraries[i].from < libraries[i].to - libraries[i].from)
            return library_owns(&libraries[i], return_address) ? &libraries[i] : NULL;
    return NULL;
}

static const struct library *known(const void *map)
{
    int n = library_count();
    for (int i = 0; i < n; i++)
        if (libraries[i].map == map)
            return &libraries[i];
    return NULL;
}

static struct library *added(const struct library *made)
{
    struct library *lib = NULL;
    lock_take(&sighting);
    int n = library_count();
    if (!known(made->map) && n < LIBRARIES) {
        lib = &libraries[n];
        memcpy(lib, made, sizeof(*lib));
        atomic_store_explicit(&libraries_known, n + 1, memory_order_release);
    }
    lock_drop(&sighting);
    return lib;
}

const struct library *library_add(const struct library *made)
{
    return added(made);
}

void library_move(const struct library *lib, void *const calls[CALL_COUNT])
{
    memcpy(libraries[lib - libraries].calls, calls, sizeof(lib->calls));
}

bool library_known(const struct link_map *map)
{
    return known(map) != NULL;
}

bool real_is_open(const char *file)
{
    void *handle = rdg_real_dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    if (handle)
        dlclose(handle);
    return handle != NULL;
}

const struct link_map *real_open(const char *file, int flags)
{
    struct link_map *map = NULL;
    void *handle = rdg_real_dlopen(file, flags | RTLD_NODELETE);
    return handle && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? map : NULL;
}

void library_withdraw(const struct library *lib)
{
    struct library *mine = &libraries[lib - libraries];
    mine->patched = mine->hidden = false;
    mine->from = mine->to = 0;
    mine->map = NULL;
}

const struct link_map *real_executable(void)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1((void *)real_start, &info, (void **)&map, RTLD_DL_LINKMAP))
        return NULL;
    while (map && map->l_prev)
        map = map->l_prev;
    return map;
}

void *real_unwinder(const void *address, const char *name)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return NULL;
    return elf_function(map, name);
}

static bool is_ours(const void *address)
{
    Dl_info here, there;
    return dladdr((void *)real_start, &here) && dladdr(address, &there) && here.dli_fbase == there.dli_fbase;
}

/* Another preload behind us in the global scope wants to see the calls too: keep the chain that the loader
 * would have made, function by function. */
static void chain(struct library *lib)
{
    void *global = rdg_real_dlsym(RTLD_NEXT, "rd_kafka_version");
    if (!global || global != (void *)lib->h_rd_kafka_version)
        return;
    for (int i = 0; i < CALL_COUNT; i++) {
        if (!lib->calls[i])
            continue;
        void *next = rdg_real_dlsym(RTLD_NEXT, rdg_calls[i].name);
        if (next && next != lib->calls[i] && !is_ours(next))
            lib->calls[i] = next;
    }
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const struct library *sight(const struct link_map *map, const void *base)
{
    const struct library *seen = known(map);
    if (seen)
        return seen;
    /* Recognised by its symbols, not by its file name. */
    if (!elf_function(map, "rd_kafka_new") || !elf_function(map, "rd_kafka_version"))
        return NULL;
    struct library lib;
    memset(&lib, 0, sizeof(lib));
    for (int i = 0; i < CALL_COUNT; i++)
        lib.calls[i] = elf_function(map, rdg_calls[i].name);
#define X(name) lib.h_##name = (__typeof__(lib.h_##name))elf_function(map, #name);
    FOR_HELPERS(X)
#undef X
    if (!lib.h_rd_kafka_conf_get || !lib.rd_kafka_destroy || elf_range(base, map->l_addr, &lib.from, &lib.to))
        return NULL;
    chain(&lib);
    lib.map = map;
    lib.version = lib.h_rd_kafka_version() >> 8;
    const char *words = lib.h_rd_kafka_version_str ? lib.h_rd_kafka_version_str() : "?";
    strncat(lib.text, words, sizeof(lib.text) - 1);
    strncat(lib.path, map->l_name && *map->l_name ? map->l_name : "the executable", sizeof(lib.path) - 1);
    /* An addon that has librdkafka inside mixes the binding's code with the library's: there a return address
     * tells nothing, and a call of the library to itself is recognised by depth alone. */
    const char *soname = elf_soname(map);
    lib.shared = strncmp(last_part(lib.path), "librdkafka", 10) == 0 ||
                 (soname && strncmp(soname, "librdkafka", 10) == 0);

    lock_take(&sighting);
    seen = known(map);
    int n = library_count();
    if (!seen && n < LIBRARIES) {
        memcpy(&libraries[n], &lib, sizeof(lib));
        atomic_store_explicit(&libraries_known, n + 1, memory_order_release);
    }
    lock_drop(&sighting);
    if (seen)
        return seen;
    if (n == LIBRARIES)
        return NULL;
    /* Its functions are called as long as we live; an application that closes it must not unmap it. */
    if (map->l_name && *map->l_name && rdg_real_dlopen)
        rdg_real_dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    report_library(&libraries[n]);
    return &libraries[n];
}

const struct library *library_of(const void *address)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!address || !dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return NULL;
    return sight(map, info.dli_fbase);
}

/* What the loader would have bound, had we not been there. */
static const struct library *resolve(const void *return_address)
{
    /* Who has a copy inside calls that one. */
    int n = library_count();
    for (int i = 0; i < n; i++)
        if (libraries[i].patched &&
            (uintptr_t)return_address - libraries[i].from < libraries[i].to - libraries[i].from)
            return &libraries[i];
    /* An executable that exports its own copy comes before us in the global scope. */
    void *first = rdg_real_dlsym(RTLD_DEFAULT, "rd_kafka_new");
    const struct library *lib = first && !is_ours(first) ? library_of(first) : NULL;
    if (!lib)
        lib = library_of(rdg_real_dlsym(RTLD_NEXT, "rd_kafka_new"));
    if (lib)
        return lib;
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1(return_address, &info, (void **)&map, RTLD_DL_LINKMAP) && map) {
        lib = sight(map, info.dli_fbase); /* an addon with its own copy */
        if (lib)
            return lib;
        void *scope =
            rdg_real_dlopen(map->l_name && *map->l_name ? map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
        if (scope) {
            void *found = rdg_real_dlsym(scope, "rd_kafka_new");
            dlclose(scope);
            if (found && !is_ours(found))
                lib = library_of(found);
            if (lib)
                return lib;
        }
    }
    /* libffi, a JIT, a relative path after chdir: the last library that was asked for by name, or the only
     * one. */
    n = library_count();
    for (int i = n; i-- > 0;)
        if (libraries[i].by_name)
            return &libraries[i];
    if (n)
        return &libraries[0];
    while (map && map->l_prev)
        map = map->l_prev;
    for (; map; map = map->l_next) {
        void *found = elf_function(map, "rd_kafka_new");
        if (found && !is_ours(found) && (lib = library_of(found)))
            return lib;
    }
    return NULL;
}

const struct library *library_for_caller(const void *return_address)
{
    uintptr_t a = (uintptr_t)return_address;
    struct caller *slot = &callers[(a >> 2) * 2654435761u % CALLERS];
    uintptr_t there = atomic_load_explicit(&slot->address, memory_order_acquire);
    if (there == a) {
        const struct library *lib = atomic_load_explicit(&slot->library, memory_order_acquire);
        if (lib)
            return lib;
    }
    if (real_start())
        return NULL;
    const struct library *lib = resolve(return_address);
    if (lib && there == 0 && atomic_compare_exchange_strong(&slot->address, &there, a))
        atomic_store_explicit(&slot->library, lib, memory_order_release);
    return lib;
}

const struct library *library_called(const void *return_address)
{
    const struct library *lib = library_inside(return_address);
    return lib ? lib : library_for_caller(return_address);
}
