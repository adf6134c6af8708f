/* Many requests under way together: MPI_Iallreduce of 8 bytes, so many times, and one MPI_Waitall for all of
 * them; microseconds per request, of the best of so many rounds. Plain and under libhopbine_preload.so, in turn:
 *
 *     mpicc -O2 benches/requests.c -o requests
 *     mpirun -n 2 ./requests 1000 50; LD_PRELOAD=PREFIX/lib/libhopbine_preload.so mpirun -n 2 ./requests 1000 50
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 1000, rounds = argc > 2 ? atoi(argv[2]) : 50;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double *const in = calloc((size_t)n, sizeof *in), *const out = calloc((size_t)n, sizeof *out);
    MPI_Request *const requests = malloc((size_t)n * sizeof *requests);
    double best = 1e9, best_start = 0;
    for (int round = 0; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        for (int i = 0; i < n; i++)
            MPI_Iallreduce(in + i, out + i, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, requests + i);
        const double started = MPI_Wtime();
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        const double time = MPI_Wtime() - begin;
        if (time < best) best = time, best_start = started - begin;
    }
    if (rank == 0) printf("%d at once: %.3f us each, %.3f until all are started\n", n, best * 1e6 / n, best_start * 1e6 / n);
    free(in), free(out), free(requests);
    MPI_Finalize();
    return 0;
}
