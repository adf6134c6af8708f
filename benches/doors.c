/* What a door costs: nanoseconds per call of MPI_Allreduce of 8 bytes, on MPI_COMM_SELF, which hopbine
 * passes on, and on MPI_COMM_WORLD. Plain and under libhopbine_mpi.so, in turn:
 *
 *     mpicc -O2 benches/doors.c -o doors
 *     for i in 1 2 3 4 5; do mpirun -n 2 ./doors; LD_PRELOAD=PREFIX/lib/libhopbine_mpi.so mpirun -n 2 ./doors; done
 */
#include <mpi.h>
#include <stdio.h>

static double each(MPI_Comm comm, int calls) {
    double one = 1, sum;
    for (int i = 0; i < calls / 10; i++) MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    const double began = MPI_Wtime();
    for (int i = 0; i < calls; i++) MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    return 1e9 * (MPI_Wtime() - began) / calls;
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const double alone = each(MPI_COMM_SELF, 2000000), together = each(MPI_COMM_WORLD, 200000);
    if (rank == 0) printf("alone %.1f ns, together %.1f ns\n", alone, together);
    MPI_Finalize();
    return 0;
}
