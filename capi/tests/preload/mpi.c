/* A stand-in for an MPI library of the family that has FAMILY_FUNCTION: it defines some of MPI's names and prints its
 * calls. */
#include <stdio.h>

int MPI_Init(int *argc, char ***argv);
int PMPI_Init(int *argc, char ***argv) { return argc && argv ? 0 : 1; }
int MPI_Init(int *argc, char ***argv) { return PMPI_Init(argc, argv); }

#ifdef FAMILY_FUNCTION
void FAMILY_FUNCTION(void);
void FAMILY_FUNCTION(void) {}
#endif

/* More arguments than registers. */
int PMPI_Alltoallw(long a, long b, long c, long d, long e, long f, long g, long h, long i);
int PMPI_Alltoallw(long a, long b, long c, long d, long e, long f, long g, long h, long i) {
    printf("MPI's: %ld %ld %ld %ld %ld %ld %ld %ld %ld\n", a, b, c, d, e, f, g, h, i);
    return 7;
}

int MPI_Alltoallw(long a, long b, long c, long d, long e, long f, long g, long h, long i);
int MPI_Alltoallw(long a, long b, long c, long d, long e, long f, long g, long h, long i) {
    return PMPI_Alltoallw(a, b, c, d, e, f, g, h, i);
}
