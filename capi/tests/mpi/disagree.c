/* Rank 2 sends as many elements to rank 0 as the first argument says, rank 0 expects as many as the second says. Rank
 * 0 must get an error, no other rank except perhaps rank 2 may get one, no rank may hang, memory behind the last
 * block must stay unchanged, and the next call must be served. */
#include <hopbine_mpi.h>
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, size, error, class = MPI_SUCCESS;
    if (argc < 3) return 2;
    MPI_Init(&argc, &argv);
    HB_Init();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    enum { GUARD = 10 };
    int *sent = malloc(4 * (size_t)size * sizeof *sent), *taken = sent + size, *from = taken + size, *to = from + size;
    for (int r = 0; r < size; r++) sent[r] = taken[r] = 3;
    if (rank == 2) sent[0] = atoi(argv[1]);
    if (rank == 0) taken[2] = atoi(argv[2]);
    int all_sent = 0, all_taken = 0;
    for (int r = 0; r < size; r++) {
        from[r] = all_sent, to[r] = all_taken;
        all_sent += sent[r], all_taken += taken[r];
    }
    double *send = calloc((size_t)all_sent + 1, sizeof *send), *recv = malloc(((size_t)all_taken + GUARD) * sizeof *recv);
    for (int i = 0; i < all_taken + GUARD; i++) recv[i] = 77;
    /* Enough short sends for hopbine to have timed MPI's sends (src/endpoint/mpi/lengths.rs). */
    for (int i = 0; i < 40; i++) HB_Barrier(MPI_COMM_WORLD);
    error = HB_Alltoallv(send, sent, from, MPI_DOUBLE, recv, taken, to, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Error_class(error, &class);
    if (rank == 0 ? class != MPI_ERR_TRUNCATE : class != MPI_SUCCESS && (rank != 2 || class != MPI_ERR_TRUNCATE))
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = all_taken; i < all_taken + GUARD; i++)
        if (recv[i] != 77) MPI_Abort(MPI_COMM_WORLD, 3);
    int one = 1, ones = 0;
    if (HB_Allreduce(&one, &ones, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 4);
    MPI_Finalize();
    if (rank == 0 && ones == size) printf("%s sent, %s expected: told, and served after it\n", argv[1], argv[2]);
    return ones == size ? 0 : 1;
}
