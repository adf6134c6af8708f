/* A library that is loaded before a program, beside hopbine's. Says so at the end of a program of MPI's. */
#include <mpi.h>

#include <stdio.h>

__attribute__((destructor)) static void say(void) {
    int is_there = 0;
    PMPI_Initialized(&is_there);
    if (is_there) fputs("the other library is there\n", stderr);
}
