/* MPI's own work beside collectives that hopbine serves, under the preload library. (1) A message that was sent
 * before a collective is seen by the first test after it, although hopbine's calls make no progress on MPI. (2) A
 * rank that waits in a collective serves other ranks that lock its window, or send messages which it receives later.
 * Prints "all seen" on rank 0. Some MPIs fail at (1) without hopbine: the standard lets programs test again. */
#include "program.h"

#include <string.h>

/* MPI_Request_get_status_all and so on. */
#define HAS_STATUS_OF_SEVERAL (MPI_VERSION * 10 + MPI_SUBVERSION >= 41)

enum { ROUNDS = 50, FEW = 6, WORDS = 4000, LONG = 1 << 20 };

/* Rank 1 sends n messages to rank 0. */
static void send(int n) {
    for (int i = 0; rank == 1 && i < n; i++) MPI_Send(&i, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
}

/* Rank 0 receives one. */
static void receive(int want) {
    int got;
    MPI_Recv(&got, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT(got == want);
}

/* Synchronises all ranks by a collective of any form. */
static void meet(int round) {
    int one = 1, sum, all[64];
    MPI_Request request;
    switch (round % 4) {
    case 0: MPI_Barrier(MPI_COMM_WORLD); break;
    case 1: MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); break;
    case 2: MPI_Allgather(&one, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD); break;
    default:
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void probes(int round) {
    int flag = 0;
    MPI_Message message;
    send(1);
    meet(round);
    if (rank == 0) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        EXPECT(flag);
        receive(0);
    }
    send(1);
    meet(round);
    if (rank == 0) {
        MPI_Improbe(1, 3, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
        EXPECT(flag);
        MPI_Mrecv(&flag, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    }
    /* Until all messages are received. */
    send(FEW);
    meet(round);
    for (int n = 0; rank == 0; n++) {
        MPI_Iprobe(1, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        EXPECT(flag == (n < FEW));
        if (!flag) break;
        receive(n);
    }
    meet(round);
}

static void tests(int round, int how) {
    int got, at, done = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) MPI_Irecv(&got, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
    send(1);
    meet(round);
    if (rank != 0) return;
    switch (how) {
    case 0: MPI_Test(&request, &done, MPI_STATUS_IGNORE); break;
    case 1: MPI_Testany(1, &request, &at, &done, MPI_STATUS_IGNORE); break;
    case 2: MPI_Testsome(1, &request, &done, &at, MPI_STATUSES_IGNORE); break;
    case 3: MPI_Testall(1, &request, &done, MPI_STATUSES_IGNORE); break;
    case 4: MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE); break;
#if HAS_STATUS_OF_SEVERAL
    case 5: MPI_Request_get_status_all(1, &request, &done, MPI_STATUSES_IGNORE); break;
    case 6: MPI_Request_get_status_any(1, &request, &at, &done, MPI_STATUS_IGNORE); break;
    case 7: MPI_Request_get_status_some(1, &request, &done, &at, MPI_STATUSES_IGNORE); break;
#endif
    }
    EXPECT(done == 1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void exposure(int round, MPI_Win win, const int *mine, MPI_Group first, MPI_Group second) {
    int flag = 0;
    if (rank == 0) MPI_Win_post(second, 0, win);
    if (rank == 1) {
        MPI_Win_start(first, 0, win);
        MPI_Put(&round, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Win_complete(win);
    }
    meet(round);
    if (rank != 0) return;
    MPI_Win_test(win, &flag);
    EXPECT(flag && *mine == round);
}

/* Rank 0 waits in a collective while the others need its progress. */
static void served(int round, MPI_Win win, int *mine) {
    static int words[WORDS], long_one[LONG];
    int before;
    MPI_Request request = MPI_REQUEST_NULL;
    memset(mine, 0, WORDS * sizeof *mine);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) MPI_Isend(long_one, LONG, MPI_INT, 1, 4, MPI_COMM_WORLD, &request);
    if (rank == 1) MPI_Recv(long_one, LONG, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; rank != 0 && i < ROUNDS; i++) {
        const int one = 1;
        for (int w = 0; w < WORDS; w++) words[w] = 1;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Accumulate(words, WORDS, MPI_INT, 0, 0, WORDS, MPI_INT, MPI_SUM, win);
        MPI_Win_unlock(0, win);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Fetch_and_op(&one, &before, MPI_INT, 0, WORDS, MPI_SUM, win);
        MPI_Win_flush(0, win);
        MPI_Get(words, WORDS, MPI_INT, 0, 0, WORDS, MPI_INT, win);
        MPI_Win_unlock(0, win);
        EXPECT(before >= i && words[WORDS - 1] > i);
    }
    meet(round);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    EXPECT(rank != 0 || mine[7] == ROUNDS * (size - 1));
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static int window[WORDS + 1];
    const int zero = 0, one = 1;
    MPI_Win win;
    MPI_Group all, first, second;
    MPI_Win_create(window, sizeof window, sizeof *window, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &zero, &first);
    MPI_Group_incl(all, 1, &one, &second);
    for (int round = 0; round < ROUNDS; round++) {
        probes(round);
        for (int how = 0; how < (HAS_STATUS_OF_SEVERAL ? 8 : 5); how++) tests(round, how);
        exposure(round, win, window, first, second);
    }
    for (int round = 0; round < 4; round++) served(round, win, window);
    MPI_Group_free(&all), MPI_Group_free(&first), MPI_Group_free(&second);
    MPI_Win_free(&win);
    MPI_Finalize();
    if (rank == 0) puts("all seen");
    return 0;
}
