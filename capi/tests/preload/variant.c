/* A stand-in for libhopbine_mpi.so: it prints one call and passes it on. */
#include <stdio.h>

/* Found in the global scope, like an MPI's constants. */
void FAMILY_FUNCTION(void);

static void *(*find)(const char *name);
void hopbine_find_by(void *(*given)(const char *name));
void hopbine_find_by(void *(*given)(const char *name)) { find = given; }

int MPI_Alltoallw(long a, long b, long c, long d, long e, long f, long g, long h, long i);
int MPI_Alltoallw(long a, long b, long c, long d, long e, long f, long g, long h, long i) {
    int (*const next)(long, long, long, long, long, long, long, long, long) =
        (int (*)(long, long, long, long, long, long, long, long, long))find("PMPI_Alltoallw");
    FAMILY_FUNCTION();
    puts("served");
    return next(a, b, c, d, e, f, g, h, i);
}
