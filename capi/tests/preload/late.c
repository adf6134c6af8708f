/* A library that is loaded after MPI_Init, in a scope of its own; what it is linked to, MPI's Fortran procedures
 * (PROCEDURES); and a tool that interposes them (TOOL). */
#include <stdio.h>

void mpi_barrier_f08_(void);

#ifdef PROCEDURES
void pmpi_barrier_f08_(void);
void pmpi_barrier_f08_(void) { puts("Fortran's barrier"); }
void mpi_barrier_f08_(void) { pmpi_barrier_f08_(); }
#elif defined TOOL
void mpi_barrier_f08_(void) { puts("a tool's barrier"); }
#else
void late(void);
void late(void) {
    for (int call = 0; call < 2; call++) mpi_barrier_f08_();
}
#endif
