/* HB_ calls on a communicator of the program's own only; with an argument, after HB_Init, without which hopbine
 * never starts. Prints "the sum is right" on rank 0. */
#define HB
#include "program.h"

int main(int argc, char **argv) {
    MPI_Comm own;
    int one = 1, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1) HB_Init();
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    for (int k = 0; k < 3; k++) CALL(Allreduce)(&one, &sum, 1, MPI_INT, MPI_SUM, own);
    EXPECT(sum == size);
    MPI_Comm_free(&own);
    if (rank == 0) puts("the sum is right");
    MPI_Finalize();
    return 0;
}
