/* What the interposed calls cost and save, in nanoseconds per call: MPI_Allreduce of 8 bytes on MPI_COMM_SELF, which
 * hopbine passes on; on MPI_COMM_WORLD; and MPI_Iallreduce with MPI_Wait, of a few sizes, one at a time
 * and eight under way together. Plain and under libhopbine_preload.so, in turn:
 *
 *     mpicc -O2 benches/interposed.c -o interposed
 *     for i in 1 2 3 4 5; do
 *       mpirun -n 2 ./interposed
 *       LD_PRELOAD=PREFIX/lib/libhopbine_preload.so mpirun -n 2 ./interposed
 *     done
 */
#include <mpi.h>
#include <stdio.h>

enum { AT_ONCE = 8, MOST = 32768 };
static double in[AT_ONCE][MOST], out[AT_ONCE][MOST];

static void blocking(MPI_Comm comm, int n, int calls) {
    for (int i = 0; i < calls; i++) MPI_Allreduce(in[0], out[0], n, MPI_DOUBLE, MPI_SUM, comm);
}

static void one_request(MPI_Comm comm, int n, int calls) {
    MPI_Request request;
    for (int i = 0; i < calls; i++) {
        MPI_Iallreduce(in[0], out[0], n, MPI_DOUBLE, MPI_SUM, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void many_requests(MPI_Comm comm, int n, int calls) {
    MPI_Request requests[AT_ONCE];
    for (int i = 0; i < calls; i += AT_ONCE) {
        for (int j = 0; j < AT_ONCE; j++)
            MPI_Iallreduce(in[j], out[j], n, MPI_DOUBLE, MPI_SUM, comm, &requests[j]);
        MPI_Waitall(AT_ONCE, requests, MPI_STATUSES_IGNORE);
    }
}

static double each(void (*make)(MPI_Comm, int, int), MPI_Comm comm, int n, int calls) {
    make(comm, n, calls / 10);
    const double began = MPI_Wtime();
    make(comm, n, calls);
    return 1e9 * (MPI_Wtime() - began) / calls;
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const double alone = each(blocking, MPI_COMM_SELF, 1, 2000000), together = each(blocking, MPI_COMM_WORLD, 1, 200000);
    if (rank == 0) printf("alone %.1f ns, together %.1f ns", alone, together);
    static const int sizes[] = {1, 1024, MOST};
    for (int at = 0; at < 3; at++) {
        const int n = sizes[at], calls = n == 1 ? 80000 : n == 1024 ? 16000 : 800;
        const double request = each(one_request, MPI_COMM_WORLD, n, calls);
        const double requests = each(many_requests, MPI_COMM_WORLD, n, calls);
        if (rank == 0) printf("; %d B: a request %.0f ns, of eight %.0f ns", 8 * n, request, requests);
    }
    if (rank == 0) printf("\n");
    MPI_Finalize();
    return 0;
}
