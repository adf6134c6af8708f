/* libhopbine_preload.so: one library to preload (LD_PRELOAD) for any MPI. It is not linked to an MPI itself.
 *
 * It defines the names of the calls that hopbine serves (slots.h). At the first call it finds out which MPI the
 * caller has (mpi.c), and loads the library built for that MPI, lib/hopbine/VARIANT/libhopbine_mpi.so, which gets
 * this and all further calls. If there is none for that MPI, it prints so, and calls go to MPI. A program without MPI
 * never calls it. */
#define _GNU_SOURCE
#include "mpi.h"
#include "slots.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* This library's directory, as an absolute path: the program may change its working directory later. */
static char directory[PATH_MAX];

__attribute__((constructor)) static void find_directory(void) {
    Dl_info own;
    if (!dladdr((void *)find_directory, &own) || !realpath(own.dli_fname, directory)) return;
    *strrchr(directory, '/') = 0;
}

/* Only the first rank prints: all ranks have the same message. */
static void say(const struct mpi *mpi, const char *but, const char *why) {
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t at = 0; at < sizeof ranks / sizeof *ranks; at++) {
        const char *const rank = getenv(ranks[at]);
        if (rank && strcmp(rank, "0") != 0) return;
    }
    fprintf(stderr, "hopbine: the program has %s (%s), %s%s: MPI serves all calls\n", mpi->name, mpi->path, but, why);
}

/* Loads the library built for this MPI. If there is none, or it cannot be loaded, prints so and returns null. */
static void *load_variant(const struct mpi *mpi) {
    char path[PATH_MAX + 64];
    if (!mpi->variant) return say(mpi, "which is of no kind that hopbine knows", ""), NULL;
    snprintf(path, sizeof path, "%s/hopbine/%s/libhopbine_mpi.so", directory, mpi->variant);
    if (access(path, F_OK) != 0) return say(mpi, "for which there is no ", path), NULL;
    /* The variant finds MPI's functions in the global scope. The MPI of a program's extension may be in a local
     * scope: it is promoted. */
    if (mpi->handle) dlopen(mpi->path, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
    void *const variant = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!variant) say(mpi, "and what is built for that cannot be loaded: ", dlerror());
    return variant;
}

/* A marker. The library that serves the calls finds this symbol, and then leaves all cores to the program. */
__attribute__((visibility("default"))) extern const int hopbine_is_preloaded;
const int hopbine_is_preloaded = 1;

static struct mpi mpi;

static void *find_of_mpi(const char *name) { return find_in(&mpi, name); }

static void fill_slots(const void *caller) {
    mpi = mpi_of(caller);
    void *const variant = load_variant(&mpi);
    void (*find_by)(void *(*)(const char *)) = NULL;
    if (variant) find_by = (__typeof__(find_by))dlsym(variant, "hopbine_find_by");
    if (find_by) find_by(find_of_mpi);
    for (struct slot *slot = first_slot; slot < end_of_slots; slot++) {
        void *to = find_by ? dlsym(variant, slot->name) : NULL;
        /* RTLD_NEXT, so that tools which interpose MPI still get the calls. */
        if (!to) to = find_by ? find_of_mpi(slot->name) : dlsym(RTLD_NEXT, slot->name);
        if (!to) to = find_of_mpi(slot->name);
        if (to) __atomic_store_n(&slot->to, to, __ATOMIC_RELEASE);
    }
}

void *hopbine_first_call(struct slot *slot, const void *caller) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int is_filled;
    pthread_mutex_lock(&lock);
    if (!is_filled) fill_slots(caller);
    is_filled = 1;
    pthread_mutex_unlock(&lock);
    void *to = __atomic_load_n(&slot->to, __ATOMIC_ACQUIRE);
    if (to != slot->first) return to;
    /* A library that was loaded later, in a scope of its own, may have brought the function: Fortran's procedures. */
    to = find_seen_by(caller, slot->name);
    if (to) return __atomic_store_n(&slot->to, to, __ATOMIC_RELEASE), to;
    fprintf(stderr, "hopbine: the program calls %s, which its MPI (%s) does not have\n", slot->name, mpi.path);
    abort();
}
