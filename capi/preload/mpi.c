/* See mpi.h. */
#define _GNU_SOURCE
#include "mpi.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Families of MPI handles, each with a function that only its libraries have. MPICH's and Open MPI's headers make
 * programs refer to that function, so derivatives have it, too. Tools that interpose MPI have none of these
 * functions. */
static const struct family {
    const char *name, *variant, *function, *file;
} families[] = {
    /* MPICH's library for its own handles has this function, too, hence the file name. Open MPI 6's ABI library is a
     * layer over Open MPI's own library. */
    {"an MPI of the standard ABI", "abi", "PMPI_Abi_get_version", "libmpi_abi."},
    {"Open MPI", "openmpi", "OMPI_C_MPI_DUP_FN", ""},
    {"MPICH", "mpich", "MPIR_Dup_fn", ""},
    {"an MPI", NULL, "PMPI_Init", ""},
};

/* Finds a function as a library sees it: first in the global scope behind this library, then among the caller's own
 * dependencies, such as those of a Python extension. */
static void *find_for(void *caller, const char *name) {
    void *const found = dlsym(RTLD_NEXT, name);
    return found || !caller ? found : dlsym(caller, name);
}

static void *library_of(const void *address) {
    Dl_info of;
    struct link_map *map = NULL;
    if (!dladdr1(address, &of, (void **)&map, RTLD_DL_LINKMAP) || !map || !*map->l_name) return NULL;
    return dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
}

static const char *file_of(const char *path) {
    const char *const slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

struct mpi mpi_of(const void *caller) {
    void *const library = library_of(caller);
    for (size_t at = 0; at < sizeof families / sizeof *families; at++) {
        const struct family *const family = &families[at];
        const void *const function = find_for(library, family->function);
        Dl_info of;
        if (!function || !dladdr(function, &of)) continue;
        if (strncmp(file_of(of.dli_fname), family->file, strlen(family->file)) != 0) continue;
        void *const handle = library_of(function);
        return (struct mpi){family->name, family->variant, handle ? of.dli_fname : "the program", handle};
    }
    return (struct mpi){"no MPI", NULL, "none was found", NULL};
}

void *find_seen_by(const void *caller, const char *name) { return find_for(library_of(caller), name); }

void *find_in(const struct mpi *mpi, const char *name) {
    void *own = mpi->handle ? dlsym(mpi->handle, name) : NULL;
    if (own) return own;
    /* Fortran's procedures are in other libraries. A tool may interpose one, but not its name with a P, which is in the
     * same library. */
    char with_p[80];
    snprintf(with_p, sizeof with_p, "p%s", name);
    void *const fortran = library_of(dlsym(RTLD_NEXT, with_p));
    own = fortran ? dlsym(fortran, name) : NULL;
    return own ? own : dlsym(RTLD_NEXT, name);
}
