/* A library that is loaded after MPI_Init, in a scope of its own, and what it is linked to: MPI's Fortran procedures
 * (PROCEDURES). */
void mpi_barrier_f08_(void);

#ifdef PROCEDURES
#include <stdio.h>

void mpi_barrier_f08_(void) { puts("Fortran's barrier"); }
#else
void late(void);
void late(void) {
    for (int call = 0; call < 2; call++) mpi_barrier_f08_();
}
#endif
