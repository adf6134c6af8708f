/* Many active requests at once, more than a window of them, on communicators with different first ranks. Collectives
 * and lengths are random, the same on all ranks; every element is checked. Ranks take turns at coming late. crowd
 * [SEED [ROUNDS]] */
#include "program.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMMS = 3, REQUESTS = 150, KINDS = 6 };

/* One call. A block has `count` numbers, or, in an alltoallv, block_of() numbers for each rank. */
struct call {
    MPI_Comm comm;
    int kind, rank, size, root, count, tag;
    int *lists;
    double *send, *recv;
};

static unsigned state;

static int chance(int below) {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return (int)(state % (unsigned)below);
}

/* Element `at` of rank `from`'s data for rank `to`: small, so that sums are exact. */
static double value(const struct call *call, int from, int to, int at) {
    return (call->tag * 7 + from * 5 + to * 3 + at) % 101;
}

static int block_of(const struct call *call, int from, int to) {
    return (from + to + call->tag) % 3 == 0 ? 0 : call->count + from + 2 * to;
}

static void start(struct call *call, MPI_Request *request) {
    const int p = call->size, me = call->rank, n = call->count;
    int sent = 0, received = 0, *lists = call->lists = malloc(4 * (size_t)p * sizeof *lists);
    for (int r = 0; r < p; r++) {
        lists[r] = block_of(call, me, r), lists[p + r] = sent, sent += lists[r];
        lists[2 * p + r] = block_of(call, r, me), lists[3 * p + r] = received, received += lists[2 * p + r];
    }
    const size_t room = (size_t)(sent > received ? sent : received) + (size_t)p * (size_t)n + 1;
    double *const send = call->send = malloc(room * sizeof *send), *const recv = call->recv = malloc(room * sizeof *recv);
    for (size_t i = 0; i < room; i++) recv[i] = -1;
    const MPI_Comm comm = call->comm;
    switch (call->kind) {
    case 0:
        for (int i = 0; i < n; i++) send[i] = value(call, me, 0, i);
        CALL(Iallreduce)(send, recv, n, MPI_DOUBLE, MPI_SUM, comm, request);
        break;
    case 1:
        for (int i = 0; i < n; i++) recv[i] = me == call->root ? value(call, me, 0, i) : -1;
        CALL(Ibcast)(recv, n, MPI_DOUBLE, call->root, comm, request);
        break;
    case 2:
        for (int i = 0; i < n; i++) send[i] = value(call, me, 0, i);
        CALL(Iallgather)(send, n, MPI_DOUBLE, recv, n, MPI_DOUBLE, comm, request);
        break;
    case 3:
        for (int r = 0; r < p; r++)
            for (int i = 0; i < n; i++) send[r * n + i] = value(call, me, r, i);
        CALL(Ialltoall)(send, n, MPI_DOUBLE, recv, n, MPI_DOUBLE, comm, request);
        break;
    case 4:
        for (int r = 0; r < p; r++)
            for (int i = 0; i < lists[r]; i++) send[lists[p + r] + i] = value(call, me, r, i);
        CALL(Ialltoallv)(send, lists, lists + p, MPI_DOUBLE, recv, lists + 2 * p, lists + 3 * p, MPI_DOUBLE, comm, request);
        break;
    default:
        for (int i = 0; i < n; i++) send[i] = value(call, me, 0, i);
        CALL(Ireduce)(send, recv, n, MPI_DOUBLE, MPI_SUM, call->root, comm, request);
    }
}

static void check(struct call *call) {
    const int p = call->size, me = call->rank, n = call->count, *lists = call->lists;
    const double *const recv = call->recv;
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int r = 0; r < p; r++) sum += value(call, r, 0, i);
        if (call->kind == 0 || (call->kind == 5 && me == call->root)) EXPECT(recv[i] == sum);
        if (call->kind == 1) EXPECT(recv[i] == value(call, call->root, 0, i));
        for (int r = 0; r < p; r++) {
            if (call->kind == 2) EXPECT(recv[r * n + i] == value(call, r, 0, i));
            if (call->kind == 3) EXPECT(recv[r * n + i] == value(call, r, me, i));
        }
    }
    for (int r = 0; r < p && call->kind == 4; r++)
        for (int i = 0; i < lists[2 * p + r]; i++) EXPECT(recv[lists[3 * p + r] + i] == value(call, r, me, i));
    free(call->lists), free(call->send), free(call->recv);
}

int main(int argc, char **argv) {
    static struct call calls[REQUESTS];
    static MPI_Request requests[REQUESTS];
    MPI_Comm comms[COMMS] = {MPI_COMM_WORLD};
    int provided;
    /* Without MPI_THREAD_MULTIPLE, MPI serves requests if hopbine's messages go over MPI. */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
#ifdef HB
    HB_Init();
#endif
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    state = 2463534242u + (argc > 1 ? (unsigned)atoi(argv[1]) : 1);
    const int rounds = argc > 2 ? atoi(argv[2]) : 4;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[2]);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < REQUESTS; i++) {
            struct call *const call = &calls[i];
            static const int most[] = {2, 300, 3000, 20000, 60000};
            *call = (struct call){.comm = comms[chance(COMMS)], .kind = chance(KINDS), .root = chance(size), .tag = i};
            call->count = chance(most[chance(5)]);
            if (call->kind >= 2 && call->kind <= 4) call->count /= size;
            MPI_Comm_rank(call->comm, &call->rank);
            MPI_Comm_size(call->comm, &call->size);
            if (chance(40) == 0 && chance(size) == rank) usleep(2000);
            start(call, &requests[i]);
            if (chance(10) == 0) {
                int is_done;
                const int earlier = chance(i + 1);
                MPI_Test(&requests[earlier], &is_done, MPI_STATUS_IGNORE);
            }
        }
        MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < REQUESTS; i++) check(&calls[i]);
    }
    MPI_Comm_free(&comms[1]), MPI_Comm_free(&comms[2]);
    MPI_Finalize();
    if (rank == 0) printf("%d requests at a time, %d times: all correct\n", REQUESTS, rounds);
    return 0;
}
