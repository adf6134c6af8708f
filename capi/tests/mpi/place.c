/* Checks that hopbine places ranks as capi/tests/mpi/fjmpi.c says, which is loaded first. */
#include <hopbine_mpi.h>
#include <mpi.h>

#include <hopbine.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, size, n, sizes[7], at[7];
    MPI_Init(&argc, &argv);
    HB_Init();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    hopbine_comm_torus(hopbine_comm_world(), 7, &n, sizes, at);
    const int on_node = size / 6, node = rank / on_node;
    int good = n == (on_node > 1 ? 3 : 2) && sizes[0] == 3 && sizes[1] == 2;
    good = good && at[0] == 2 - node % 3 && at[1] == 1 - node / 3 && (n == 2 || at[2] == rank % on_node);
    if (!good) {
        fprintf(stderr, "rank %d is at %d,%d in %dx%d of %d dimensions\n", rank, at[0], at[1], sizes[0], sizes[1], n);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    int all = 0;
    HB_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (all != size * (size - 1) / 2) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Finalize();
    if (rank == 0) puts("placed as Fujitsu MPI says");
    return 0;
}
