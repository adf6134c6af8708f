/* Lists that mix requests of collectives and of messages, persistent, active, inactive and null ones, completed by
 * every call that takes a list. Checks which requests are reported done, their statuses, and their handles. Runs with
 * MPI alone, and under the preload library, where hopbine serves the collectives. With an argument also persistent
 * collectives, which some MPIs themselves fail at. Prints "every list is right" on rank 0. */
#include "program.h"

#include <string.h>

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAS_PERSISTENT 1
#else
#define HAS_PERSISTENT 0
#endif

enum { NULL_FIRST, IDLE_RECV, SUM, RECV, SEND, KEPT_RECV, KEPT_SEND, BARRIER, IDLE_SUM, KEPT_SUM, NULL_LAST, N };
enum how { WAITALL, TESTALL, WAITANY, TESTANY, WAITSOME, TESTSOME, WAIT, TEST, HOWS };
enum { TAG = 40, KEPT_TAG = 41, ROUNDS = 30 };

static int with_persistent, next, previous, kept_in, kept_out, kept_from, kept_to, in, out, from[2], to[2];
static MPI_Request requests[N];

static int is_null(int at) { return requests[at] == MPI_REQUEST_NULL; }
static int is_kept(int at) {
    return at == KEPT_RECV || at == KEPT_SEND || (with_persistent && at == KEPT_SUM);
}
/* Whether a request is active, and so must be reported done once. */
static int is_active(int at) { return is_kept(at) || at == SUM || at == RECV || at == SEND || at == BARRIER; }

static void prepare(void) {
    for (int at = 0; at < N; at++) requests[at] = MPI_REQUEST_NULL;
    MPI_Recv_init(&kept_from, 1, MPI_INT, next, KEPT_TAG, MPI_COMM_WORLD, &requests[KEPT_RECV]);
    MPI_Send_init(&kept_to, 1, MPI_INT, previous, KEPT_TAG, MPI_COMM_WORLD, &requests[KEPT_SEND]);
    MPI_Recv_init(NULL, 0, MPI_INT, next, KEPT_TAG + 1, MPI_COMM_WORLD, &requests[IDLE_RECV]);
#if HAS_PERSISTENT
    if (!with_persistent) return;
    MPI_Allreduce_init(&kept_in, &kept_out, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[KEPT_SUM]);
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[IDLE_SUM]);
#endif
}

static void start(int round) {
    in = rank + round, out = -1, from[0] = from[1] = kept_from = -1;
    to[0] = to[1] = kept_to = kept_in = 1000 * rank + round, kept_out = -1;
    MPI_Irecv(from, 2, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &requests[RECV]);
    MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[SUM]);
    MPI_Startall(2, &requests[KEPT_RECV]);
    if (with_persistent) MPI_Start(&requests[KEPT_SUM]);
    MPI_Isend(to, 2, MPI_INT, previous, TAG, MPI_COMM_WORLD, &requests[SEND]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[BARRIER]);
}

/* Checks a request at its first report as done. */
static void note(int at, int *is_done, const MPI_Request *before, const MPI_Status *status) {
    int n = -1;
    EXPECT(at >= 0 && at < N);
    EXPECT(is_active(at) && !is_done[at]);
    is_done[at] = 1;
    EXPECT(is_kept(at) ? requests[at] == before[at] : is_null(at));
    if (status == MPI_STATUS_IGNORE || (at != RECV && at != KEPT_RECV)) return;
    MPI_Get_count(status, MPI_INT, &n);
    EXPECT(status->MPI_SOURCE == next && status->MPI_TAG == (at == RECV ? TAG : KEPT_TAG) && n == (at == RECV ? 2 : 1));
}

static void note_all(int *is_done, const MPI_Request *before, const MPI_Status *statuses) {
    for (int at = 0; at < N; at++)
        if (is_active(at)) note(at, is_done, before, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[at]);
}

static void end(enum how how, int ignores) {
    int is_done[N] = {0}, places[N], n_left = 0, n = 0, at = -1, flag = 0;
    MPI_Request before[N];
    MPI_Status all[N], one, *const statuses = ignores ? MPI_STATUSES_IGNORE : all;
    MPI_Status *const status = ignores ? MPI_STATUS_IGNORE : &one;
    memcpy(before, requests, sizeof before);
    for (int i = 0; i < N; i++) n_left += is_active(i);
    for (int i = 0; i < N && (how == WAIT || how == TEST); i++) {
        if (!is_active(i)) continue;
        if (how == WAIT) MPI_Wait(&requests[i], status);
        else for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, status);
        note(i, is_done, before, status);
    }
    while (n_left > 0 && how < WAIT) {
        if (how == WAITALL) MPI_Waitall(N, requests, statuses), flag = 1;
        if (how == TESTALL) MPI_Testall(N, requests, &flag, statuses);
        if (how == TESTALL && !flag) EXPECT(memcmp(before, requests, sizeof before) == 0);
        if (how <= TESTALL && flag) note_all(is_done, before, statuses), n_left = 0;
        if (how == WAITANY) MPI_Waitany(N, requests, &at, status), flag = 1;
        if (how == TESTANY) MPI_Testany(N, requests, &at, &flag, status);
        if ((how == WAITANY || how == TESTANY) && flag) note(at, is_done, before, status), n_left--;
        if (how == WAITSOME) MPI_Waitsome(N, requests, &n, places, statuses);
        if (how == TESTSOME) MPI_Testsome(N, requests, &n, places, statuses);
        if (how != WAITSOME && how != TESTSOME) continue;
        EXPECT(n >= (how == WAITSOME) && n <= n_left);
        for (int k = 0; k < n; k++) note(places[k], is_done, before, ignores ? MPI_STATUS_IGNORE : &statuses[k]);
        n_left -= n;
    }
}

/* Checks a list without active requests, and an empty list. */
static void expect_nothing(void) {
    for (int n = 0; n <= N; n += N) {
        int at = 0, n_done = 0, flag = 0, places[N];
        MPI_Status statuses[N];
        MPI_Waitall(n, requests, statuses);
        MPI_Testall(n, requests, &flag, statuses);
        EXPECT(flag);
        MPI_Waitany(n, requests, &at, statuses);
        EXPECT(at == MPI_UNDEFINED);
        at = flag = 0;
        MPI_Testany(n, requests, &at, &flag, statuses);
        EXPECT(flag && at == MPI_UNDEFINED);
        MPI_Waitsome(n, requests, &n_done, places, MPI_STATUSES_IGNORE);
        EXPECT(n_done == MPI_UNDEFINED);
        n_done = 0;
        MPI_Testsome(n, requests, &n_done, places, statuses);
        EXPECT(n_done == MPI_UNDEFINED);
    }
    MPI_Status status;
    int flag = 0, n = -1;
    MPI_Request none = MPI_REQUEST_NULL;
    MPI_Request_get_status(none, &flag, &status);
    MPI_Get_count(&status, MPI_INT, &n);
    EXPECT(flag && n == 0);
}

/* One of two requests, a message or a collective, can complete only after the other has been seen done. Rank 0 waits,
 * and then lets rank 1 complete the remaining one. */
static void one_first(int is_message_first, enum how how) {
    MPI_Request two[2], copy;
    int at = -1, n = 0, places[2], flag = 0, answer = 0;
    if (rank == 0) {
        MPI_Irecv(&answer, 1, MPI_INT, 1, TAG + 2, MPI_COMM_WORLD, &two[0]);
        MPI_Ibarrier(MPI_COMM_WORLD, &two[1]);
        copy = two[!is_message_first];
        if (how == WAITANY) MPI_Waitany(2, two, &at, MPI_STATUS_IGNORE);
        while (how == TESTANY && !flag) MPI_Testany(2, two, &at, &flag, MPI_STATUS_IGNORE);
        if (how == WAITSOME) MPI_Waitsome(2, two, &n, places, MPI_STATUSES_IGNORE);
        while (how == TESTSOME && n == 0) MPI_Testsome(2, two, &n, places, MPI_STATUSES_IGNORE);
        if (how == TESTALL) {
            /* MPI_Request_get_status has seen it done, which does not free it. */
            while (!flag) MPI_Request_get_status(copy, &flag, MPI_STATUS_IGNORE);
            for (int i = 0; i < 100; i++) {
                MPI_Testall(2, two, &flag, MPI_STATUSES_IGNORE);
                EXPECT(!flag && two[!is_message_first] == copy && two[is_message_first] != MPI_REQUEST_NULL);
            }
            MPI_Wait(&two[!is_message_first], MPI_STATUS_IGNORE);
        } else {
            if (how == WAITSOME || how == TESTSOME) at = n == 1 ? places[0] : -1;
            EXPECT(at == !is_message_first && two[at] == MPI_REQUEST_NULL);
        }
        EXPECT(answer == is_message_first);
        MPI_Send(NULL, 0, MPI_INT, 1, TAG + 3, MPI_COMM_WORLD);
        MPI_Waitany(2, two, &at, MPI_STATUS_IGNORE);
        EXPECT(at == is_message_first && answer == 1 && two[0] == two[1]);
        return;
    }
    const int one = 1;
    MPI_Request barrier = MPI_REQUEST_NULL;
    /* The other ranks do not delay the end of rank 0's barrier. */
    if (rank != 1 || !is_message_first) MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    if (rank == 1 && is_message_first) MPI_Send(&one, 1, MPI_INT, 0, TAG + 2, MPI_COMM_WORLD);
    if (rank == 1 && !is_message_first) MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Recv(NULL, 0, MPI_INT, 0, TAG + 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1 && is_message_first) MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    if (rank == 1 && !is_message_first) MPI_Send(&one, 1, MPI_INT, 0, TAG + 2, MPI_COMM_WORLD);
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size, previous = (rank + size - 1) % size;
    with_persistent = argc > 1 && HAS_PERSISTENT;
    MPI_Barrier(MPI_COMM_WORLD);
    prepare();
    expect_nothing();
    for (int round = 0; round < ROUNDS; round++) {
        for (int how = 0; how < 2 * HOWS; how++) {
            start(round);
            end(how % HOWS, how / HOWS);
            EXPECT(out == size * round + size * (size - 1) / 2);
            EXPECT(from[0] == 1000 * next + round && from[1] == from[0] && kept_from == from[0]);
            EXPECT(!with_persistent || kept_out == 1000 * (size - 1) + round);
        }
        expect_nothing();
        for (int how = TESTALL; how <= TESTSOME; how++) one_first(round % 2, how);
    }
    /* Lists without active requests, while another request is active. */
    MPI_Request beside;
    MPI_Ibarrier(MPI_COMM_WORLD, &beside);
    expect_nothing();
    MPI_Wait(&beside, MPI_STATUS_IGNORE);
    for (int at = 0; at < N; at++)
        if (!is_null(at)) MPI_Request_free(&requests[at]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) puts("every list is right");
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
