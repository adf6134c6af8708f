/* HB_ calls, some served by hopbine and some passed to MPI, for a report that counts them: 3 allreduces of one int on
 * a communicator that the program made, 5 on a communicator of one rank, and 7 alltoallw without data. Prints "all
 * are made" on rank 0. */
#define HB
#include "program.h"

enum { MOST_RANKS = 16 };

int main(int argc, char **argv) {
    MPI_Comm own;
    int one = 1, sum = 0;
    static const int nothing[MOST_RANKS];
    MPI_Datatype types[MOST_RANKS];
    MPI_Init(&argc, &argv);
    HB_Init();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(size <= MOST_RANKS);
    for (int r = 0; r < size; r++) types[r] = MPI_INT;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    for (int k = 0; k < 3; k++) CALL(Allreduce)(&one, &sum, 1, MPI_INT, MPI_SUM, own);
    EXPECT(sum == size);
    for (int k = 0; k < 5; k++) CALL(Allreduce)(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    EXPECT(sum == 1);
    for (int k = 0; k < 7; k++) CALL(Alltoallw)(&one, nothing, nothing, types, &sum, nothing, nothing, types, own);
    MPI_Comm_free(&own);
    if (rank == 0) puts("all are made");
    MPI_Finalize();
    return 0;
}
