/* Programs of another MPI than the one that this library was built for. See doors.h. */
#define _GNU_SOURCE
#include "doors.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each header refers to a function of its own library, which its derivatives have, too. */
static const struct family {
    const char *name, *function;
} open_mpi = {"Open MPI", "OMPI_C_MPI_DUP_FN"}, mpich = {"MPICH", "MPIR_Dup_fn"};

#ifdef OPEN_MPI
static const struct family *const own = &open_mpi, *const other = &mpich;
#else
static const struct family *const own = &mpich, *const other = &open_mpi;
#endif

/* The order of the libraries does not tell whose MPI_Init the program calls: that of this library may come before. */
int has_other_mpi(void) { return dlsym(RTLD_DEFAULT, other->function) != NULL; }

void say_other_mpi(const char *consequence) {
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t at = 0; at < sizeof ranks / sizeof *ranks; at++) {
        const char *const rank = getenv(ranks[at]);
        if (rank && strcmp(rank, "0") != 0) return;
    }
    fprintf(stderr, "hopbine: this library was built for %s, and the program has %s: %s\n", own->name, other->name,
            consequence);
}
