/* Communicators as a program on several hosts makes them: one per host, one across the hosts, and one in reverse
 * order. On each: calls of all lengths in a row, from several threads at once, and repeated making and freeing. The
 * same program runs with MPI alone and under the preload library. The argument is the length of the longest vector in
 * MiB. Prints "all groups are right" on rank 0. */
#include "program.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 4, THREADS = 3, ROUNDS = 20 };
static const int lengths[] = {1, 70000, 3, 5000, 1, 4097, 0, 20000, 2, 9};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths, LONGEST = 70000 };

static double value(int r, int i) { return 3 * r + i % 1000; }

/* Calls of all lengths, long ones after short ones; `shift` makes the data of different calls differ. */
static void row(MPI_Comm comm, int shift) {
    int me, n_ranks;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n_ranks);
    double *in = malloc(LONGEST * sizeof *in), *out = malloc((size_t)n_ranks * LONGEST * sizeof *out);
    EXPECT(in && out);
    for (int k = 0; k < N_LENGTHS; k++) {
        const int n = lengths[(k + shift) % N_LENGTHS], root = (k + shift) % n_ranks, part = n / n_ranks;
        for (int i = 0; i < n; i++) in[i] = value(me, i) + shift;
        CALL(Allreduce)(in, out, n, MPI_DOUBLE, MPI_SUM, comm);
        for (int i = 0; i < n; i++)
            EXPECT(out[i] == n_ranks * (value(0, i) + shift) + 3 * (n_ranks * (n_ranks - 1) / 2));
        CALL(Allgather)(in, n, MPI_DOUBLE, out, n, MPI_DOUBLE, comm);
        for (int r = 0; r < n_ranks; r++)
            for (int i = 0; i < n; i++) EXPECT(out[(size_t)r * n + i] == value(r, i) + shift);
        CALL(Alltoall)(in, part, MPI_DOUBLE, out, part, MPI_DOUBLE, comm);
        for (int r = 0; r < n_ranks; r++)
            for (int i = 0; i < part; i++) EXPECT(out[r * part + i] == value(r, me * part + i) + shift);
        CALL(Bcast)(in, n, MPI_DOUBLE, root, comm);
        for (int i = 0; i < n; i++) EXPECT(in[i] == value(root, i) + shift);
    }
    free(in);
    free(out);
}

static void make(MPI_Comm comms[KINDS]) {
    int in_host;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comms[0]);
    MPI_Comm_rank(comms[0], &in_host);
    MPI_Comm_split(MPI_COMM_WORLD, in_host, rank, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[2]);
    /* The last rank is not in comms[3]. */
    MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1 ? MPI_UNDEFINED : 7, rank, &comms[3]);
}

static void groups(void) {
    static const int orders[][KINDS] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}};
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm comms[KINDS];
        make(comms);
        for (int k = 0; k < KINDS; k++) {
            int sum, one = 1, n_ranks;
            if (comms[k] == MPI_COMM_NULL) continue;
            MPI_Comm_size(comms[k], &n_ranks);
            CALL(Allreduce)(&one, &sum, 1, MPI_INT, MPI_SUM, comms[k]);
            EXPECT(sum == n_ranks);
            if (round < 3) row(comms[k], round);
        }
        for (int k = 0; k < KINDS; k++) {
            MPI_Comm *comm = &comms[orders[round % 3][k]];
            if (*comm != MPI_COMM_NULL) MPI_Comm_free(comm);
        }
    }
}

static void *threaded(void *comm) {
    for (int k = 0; k < 3; k++) row(*(MPI_Comm *)comm, k);
    return NULL;
}

/* Each thread has a communicator of its own: of the host, across hosts, or of all ranks. */
static void threads(void) {
    pthread_t thread[THREADS];
    MPI_Comm comms[KINDS];
    make(comms);
    for (int t = 0; t < THREADS; t++) pthread_create(&thread[t], NULL, threaded, &comms[t]);
    for (int t = 0; t < THREADS; t++) pthread_join(thread[t], NULL);
    for (int k = 0; k < KINDS; k++)
        if (comms[k] != MPI_COMM_NULL) MPI_Comm_free(&comms[k]);
}

static void longest(size_t bytes) {
    const int n = (int)(bytes / sizeof(double)), part = n / size;
    double *in = malloc(bytes), *out = malloc(bytes);
    EXPECT(in && out);
    for (int i = 0; i < n; i++) in[i] = value(rank, i);
    CALL(Allreduce)(in, out, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) EXPECT(out[i] == size * value(0, i) + 3 * (size * (size - 1) / 2));
    CALL(Alltoall)(in, part, MPI_DOUBLE, out, part, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < part; i++) EXPECT(out[r * part + i] == value(r, rank * part + i));
    CALL(Bcast)(in, n, MPI_DOUBLE, size - 1, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) EXPECT(in[i] == value(size - 1, i));
    free(in);
    free(out);
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    row(MPI_COMM_WORLD, 0);
    groups();
    if (provided == MPI_THREAD_MULTIPLE) threads();
    if (argc > 1) longest((size_t)atoi(argv[1]) << 20);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) puts("all groups are right");
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
