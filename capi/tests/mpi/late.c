/* One rank comes to MPI_Finalize seconds after the others, whose HOPBINE_TIMEOUT is shorter. Prints "all have ended" on
 * that rank, and nothing else. */
#include "program.h"

#include <unistd.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CALL(Barrier)(MPI_COMM_WORLD);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == size - 1) sleep(5);
    MPI_Finalize();
    if (rank == size - 1) puts("all have ended");
    return 0;
}
