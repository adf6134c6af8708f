/* The last rank ends without a word. The others' next call has the class of a lost rank. They end alike: MPI_Finalize
 * would wait. Prints "the loss is told" on rank 0. */
#include "program.h"

#include <unistd.h>

int main(int argc, char **argv) {
    int one = 1, sum = 0, class = MPI_SUCCESS;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CALL(Barrier)(MPI_COMM_WORLD);
    if (rank == size - 1) _exit(0);
    MPI_Error_class(CALL(Allreduce)(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), &class);
    EXPECT(class == MPIX_ERR_PROC_FAILED);
    if (rank == 0) puts("the loss is told");
    fflush(stdout);
    _exit(0);
}
