/* Calls with lists of counts, all with blocks of 300 bytes, for a report by size: also in place, where a rank passes
 * no count of its own, and in one round without anything of rank 0's. Prints "all are made" on rank 0. */
#include "program.h"

enum { MOST_RANKS = 16, BYTES = 300 };

int main(int argc, char **argv) {
    static char send[MOST_RANKS * BYTES], recv[MOST_RANKS * BYTES];
    int counts[MOST_RANKS], given[MOST_RANKS], taken[MOST_RANKS], places[MOST_RANKS];
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(size <= MOST_RANKS);
    for (int r = 0; r < size; r++) counts[r] = BYTES, places[r] = r * BYTES;
    for (int round = 0; round < 3; round++) {
        const int is_in_place = rank == 0 && round < 2;
        for (int r = 0; r < size; r++) {
            given[r] = rank == 0 && round == 2 ? 0 : BYTES;
            taken[r] = r == 0 && round == 2 ? 0 : BYTES;
        }
        MPI_Alltoallv(send, given, places, MPI_BYTE, recv, taken, places, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_BYTE, recv, counts, places, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Ialltoallv(send, given, places, MPI_BYTE, recv, taken, places, MPI_BYTE, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Allgatherv(send, given[0], MPI_BYTE, recv, taken, places, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, recv, counts, places, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Gatherv(is_in_place ? MPI_IN_PLACE : send, rank ? BYTES : 0, MPI_BYTE, recv, taken, places, MPI_BYTE, 0, MPI_COMM_WORLD);
        MPI_Scatterv(send, taken, places, MPI_BYTE, is_in_place ? MPI_IN_PLACE : recv, rank ? BYTES : 0, MPI_BYTE, 0, MPI_COMM_WORLD);
        MPI_Reduce_scatter(send, recv, taken, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    }
    if (rank == 0) puts("all are made");
    MPI_Finalize();
    return 0;
}
