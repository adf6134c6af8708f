/* Many requests under way together: MPI_Iallreduce of 8 bytes, so many times, ended by one MPI_Waitall, or by the calls
 * of other names (wait, test, waitany, testany, waitsome, testsome, testall), one name after the other; `persistent`
 * starts requests of MPI_Allreduce_init by MPI_Startall, where the library has it; microseconds per request, of the
 * median and of the best of so many rounds. Plain and under libhopbine_preload.so, in turn:
 *
 *     mpicc -O2 benches/requests.c -o requests
 *     mpirun -n 2 ./requests 1000 50 waitall waitany
 *     LD_PRELOAD=PREFIX/lib/libhopbine_preload.so mpirun -n 2 ./requests 1000 50 waitall waitany
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Some libraries have it whatever version of MPI their header states: null in others. */
#pragma weak MPI_Allreduce_init
#pragma weak PMPI_Allreduce_init
int MPI_Allreduce_init(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info, MPI_Request *);
int PMPI_Allreduce_init(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info, MPI_Request *);

static int n, *places;
static MPI_Request *requests;

static void end_all(const char *how) {
    int at, flag = 0, n_done, n_left = n;
    if (strcmp(how, "waitall") == 0) MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    if (strcmp(how, "testall") == 0)
        while (!flag) MPI_Testall(n, requests, &flag, MPI_STATUSES_IGNORE);
    if (strcmp(how, "waitany") == 0)
        for (; n_left > 0; n_left--) MPI_Waitany(n, requests, &at, MPI_STATUS_IGNORE);
    if (strcmp(how, "testany") == 0)
        for (; n_left > 0; n_left -= flag) MPI_Testany(n, requests, &at, &flag, MPI_STATUS_IGNORE);
    if (strcmp(how, "waitsome") == 0)
        for (; n_left > 0; n_left -= n_done) MPI_Waitsome(n, requests, &n_done, places, MPI_STATUSES_IGNORE);
    if (strcmp(how, "testsome") == 0)
        for (; n_left > 0; n_left -= n_done) MPI_Testsome(n, requests, &n_done, places, MPI_STATUSES_IGNORE);
    if (strcmp(how, "wait") == 0)
        for (int i = 0; i < n; i++) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    if (strcmp(how, "test") == 0)
        for (int i = 0; i < n; i++)
            for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(int rounds, const char *how, const double *in, double *out, double *times) {
    const double each = 1e6 / n;
    double best_start = 1e9;
    const int is_persistent = strcmp(how, "persistent") == 0;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (is_persistent && !PMPI_Allreduce_init) {
        if (rank == 0) printf("this MPI has no MPI_Allreduce_init\n");
        return;
    }
    for (int i = 0; is_persistent && i < n; i++)
        MPI_Allreduce_init(in + i, out + i, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, requests + i);
    for (int round = 0; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        if (is_persistent) MPI_Startall(n, requests);
        for (int i = 0; !is_persistent && i < n; i++)
            MPI_Iallreduce(in + i, out + i, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, requests + i);
        const double started = MPI_Wtime() - begin;
        end_all(is_persistent ? "waitall" : how);
        times[round] = MPI_Wtime() - begin;
        if (started < best_start) best_start = started;
    }
    for (int i = 0; is_persistent && i < n; i++) MPI_Request_free(&requests[i]);
    qsort(times, (size_t)rounds, sizeof *times, compare);
    if (rank == 0)
        printf("%d at once, %s: median %.3f us each, best %.3f, %.3f until all are started\n", n, how, times[rounds / 2] * each,
               times[0] * each, best_start * each);
}

int main(int argc, char **argv) {
    n = argc > 1 ? atoi(argv[1]) : 1000;
    const int rounds = argc > 2 ? atoi(argv[2]) : 50;
    MPI_Init(&argc, &argv);
    double *const in = calloc((size_t)n, sizeof *in), *const out = calloc((size_t)n, sizeof *out);
    double *const times = calloc((size_t)rounds, sizeof *times);
    requests = malloc((size_t)n * sizeof *requests);
    places = malloc((size_t)n * sizeof *places);
    if (argc < 4) measure(rounds, "waitall", in, out, times);
    for (int a = 3; a < argc; a++) measure(rounds, argv[a], in, out, times);
    free(in), free(out), free(times), free(requests), free(places);
    MPI_Finalize();
    return 0;
}
