/* Threads that call collectives at the same time, each on its own communicator, while another thread exchanges
 * messages, and communicators are made and freed. Runs with MPI alone, under the preload library, and, compiled with
 * -DHB, through HB_ calls; with `late` the threads' first calls start hopbine. Prints "no thread in another's way" on
 * rank 0. */
#include "program.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 3, ROUNDS = 60, MOST = 16, LONG = 20000 };

struct work {
    int number;
    MPI_Comm comm;
};

static void round_of(MPI_Comm comm, int number, int round, int n) {
    double *in = calloc(LONG, sizeof(double)), *out = calloc(LONG, sizeof(double));
    int all[MOST], turned[MOST], root = (round + number) % size;
    for (int i = 0; i < n; i++) in[i] = rank + i + 7 * number + round;
    CALL(Allreduce)(in, out, n, MPI_DOUBLE, MPI_SUM, comm);
    for (int i = 0; i < n; i++) EXPECT(out[i] == size * (i + 7 * number + round) + size * (size - 1) / 2);
    CALL(Bcast)(in, n, MPI_DOUBLE, root, comm);
    for (int i = 0; i < n; i++) EXPECT(in[i] == root + i + 7 * number + round);
    int mine = 100 * number + rank;
    CALL(Allgather)(&mine, 1, MPI_INT, all, 1, MPI_INT, comm);
    CALL(Alltoall)(all, 1, MPI_INT, turned, 1, MPI_INT, comm);
    for (int r = 0; r < size; r++) EXPECT(all[r] == 100 * number + r && turned[r] == 100 * number + rank);
    struct { double x; int at; } pair = {(rank + round) % size, rank}, best;
    CALL(Allreduce)(&pair, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
    EXPECT(best.x == size - 1 && (best.at + round) % size == size - 1);
    free(in);
    free(out);
}

static void *collectives(void *argument) {
    const struct work *work = argument;
    for (int round = 0; round < ROUNDS; round++) {
        round_of(work->comm, work->number, round, round % 7 == 0 ? LONG : 1 + 13 * (round % 5));
        if (round % 20 == 0) {
            MPI_Comm copy;
            MPI_Comm_dup(work->comm, &copy);
            round_of(copy, work->number + THREADS, round, 10);
            MPI_Comm_free(&copy);
        }
    }
    return NULL;
}

#ifdef OPEN_MPI
static void *first_call(void *comm) {
    MPI_Barrier(*(MPI_Comm *)comm);
    return NULL;
}

/* The first call on a communicator ends at another time on each rank, while each makes another communicator of it. */
static void make_beside_first_calls(void) {
    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        MPI_Request request;
        MPI_Comm copy, made;
        int sum;
        MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        pthread_create(&thread, NULL, first_call, &copy);
        for (volatile int i = 0; i < 3000 * (round + 17 * rank % 40); i++) continue;
        MPI_Comm_create_group(copy, all, round, &made);
        CALL(Allreduce)(&round, &sum, 1, MPI_INT, MPI_SUM, made);
        EXPECT(sum == size * round);
        pthread_join(thread, NULL);
        MPI_Comm_free(&made);
        MPI_Comm_free(&copy);
    }
    MPI_Group_free(&all);
}
#endif

/* A ring of messages of all lengths. */
static void messages(MPI_Comm comm) {
    static int out[LONG], in[LONG];
    for (int round = 0; round < ROUNDS; round++) {
        const int n = round % 5 == 0 ? LONG : round;
        for (int i = 0; i < n; i++) out[i] = 1000 * rank + i;
        const int before = (rank + size - 1) % size;
        MPI_Sendrecv(out, n, MPI_INT, (rank + 1) % size, round, in, n, MPI_INT, before, round, comm, MPI_STATUS_IGNORE);
        for (int i = 0; i < n; i++) EXPECT(in[i] == 1000 * before + i);
    }
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(provided == MPI_THREAD_MULTIPLE);
#ifdef HB
    if (argc == 1) HB_Init();
#endif
    pthread_t threads[THREADS];
    struct work work[THREADS];
    for (int t = 0; t < THREADS; t++) {
        work[t].number = t;
        MPI_Comm_dup(MPI_COMM_WORLD, &work[t].comm);
    }
    for (int t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, collectives, &work[t]);
    messages(MPI_COMM_WORLD);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        MPI_Comm_free(&work[t].comm);
    }
    /* MPICH 4.0 itself ends by a signal in MPI_Comm_create_group beside a barrier. */
#ifdef OPEN_MPI
    make_beside_first_calls();
#endif
    MPI_Finalize();
    if (rank == 0) puts("no thread in another's way");
    return 0;
}
