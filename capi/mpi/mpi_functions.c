/* Looks up MPI's own functions. See interposed.h. */
#define _GNU_SOURCE
#include "interposed.h"

#include "common.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *(*finder)(const char *name);

void hopbine_find_by(void *(*find)(const char *name)) { finder = find; }

static void *find_named(const char *name) {
    if (finder) return finder(name);
    void *const next = dlsym(RTLD_NEXT, name);
    /* If MPI precedes this library in the search order, RTLD_NEXT finds nothing. That happens only if this library
     * interposes none of the names that are looked up. */
    return next ? next : dlsym(RTLD_DEFAULT, name);
}

void *find_mpi_function(const char *name) {
    void *const found = find_named(name);
    if (found || !strstr(name, "_init")) return found;
    /* Open MPI 4 has the persistent collectives as an extension. */
    char extension[80];
    snprintf(extension, sizeof extension, "PMPIX%s", name + strlen("PMPI"));
    return find_named(extension);
}

void *mpi_function(const char *name) {
    void *const found = find_mpi_function(name);
    if (found) return found;
    fprintf(stderr, "hopbine: the MPI library has no %s\n", name);
    abort();
}
