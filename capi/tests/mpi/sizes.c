/* Calls with lists of counts, all with blocks of 300 bytes, for a report by size: also in place, where a rank passes
 * no count of its own. Prints "all are made" on rank 0. */
#include "program.h"

enum { MOST_RANKS = 16, BYTES = 300 };

int main(int argc, char **argv) {
    static char send[MOST_RANKS * BYTES], recv[MOST_RANKS * BYTES];
    int counts[MOST_RANKS], places[MOST_RANKS];
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(size <= MOST_RANKS);
    for (int r = 0; r < size; r++) counts[r] = BYTES, places[r] = r * BYTES;
    for (int round = 0; round < 3; round++) {
        MPI_Alltoallv(send, counts, places, MPI_BYTE, recv, counts, places, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_BYTE, recv, counts, places, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Ialltoallv(send, counts, places, MPI_BYTE, recv, counts, places, MPI_BYTE, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Allgatherv(send, BYTES, MPI_BYTE, recv, counts, places, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, recv, counts, places, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Gatherv(rank ? send : MPI_IN_PLACE, rank ? BYTES : 0, MPI_BYTE, recv, counts, places, MPI_BYTE, 0, MPI_COMM_WORLD);
        MPI_Scatterv(send, counts, places, MPI_BYTE, rank ? recv : MPI_IN_PLACE, rank ? BYTES : 0, MPI_BYTE, 0, MPI_COMM_WORLD);
        MPI_Reduce_scatter(send, recv, counts, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    }
    if (rank == 0) puts("all are made");
    MPI_Finalize();
    return 0;
}
