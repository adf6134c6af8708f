/* Makes hopbine's communicators from MPI's (hopbine_comm_from_mpi): of all ranks, of halves in another order, of one
 * rank. Other communicators than intracommunicators must be refused with a reason. Before hopbine has started
 * (HOPBINE_START=call), the communicator of all ranks comes first. Prints "all sums are right" on rank 0. */
#include "program.h"

#include <hopbine_mpi.h>
#include <string.h>

static void sum(MPI_Comm of) {
    hopbine_comm_t comm = HOPBINE_COMM_NULL;
    int at, n, theirs;
    EXPECT(hopbine_comm_from_mpi(of, &comm) == HOPBINE_SUCCESS);
    MPI_Comm_rank(of, &theirs);
    EXPECT(hopbine_comm_rank(comm, &at) == HOPBINE_SUCCESS && at == theirs);
    MPI_Comm_size(of, &theirs);
    EXPECT(hopbine_comm_size(comm, &n) == HOPBINE_SUCCESS && n == theirs);
    int64_t mine = at + 1, all = 0;
    EXPECT(hopbine_allreduce(&mine, &all, 1, HOPBINE_INT64, HOPBINE_SUM, comm) == HOPBINE_SUCCESS);
    EXPECT(all == (int64_t)n * (n + 1) / 2);
    EXPECT(hopbine_comm_free(&comm) == HOPBINE_SUCCESS);
}

static void refused(MPI_Comm of, const char *reason) {
    hopbine_comm_t comm = 1;
    EXPECT(hopbine_comm_from_mpi(of, &comm) != HOPBINE_SUCCESS && comm == HOPBINE_COMM_NULL);
    EXPECT(strstr(hopbine_last_error(), reason));
}

int main(int argc, char **argv) {
    MPI_Comm half, between;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    if (argc > 1) refused(half, "has not been started");
    sum(MPI_COMM_WORLD);
    sum(half);
    sum(MPI_COMM_SELF);
    refused(MPI_COMM_NULL, "MPI_COMM_NULL");
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, size - 1 - (size + rank) % 2, 7, &between);
    refused(between, "an intercommunicator");
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
    if (rank == 0) puts("all sums are right");
    MPI_Finalize();
    return 0;
}
