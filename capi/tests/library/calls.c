/* Runs every collective in its three forms, also in place, on a communicator and on subcommunicators; then calls that
 * must be refused. Prints "all correct" on rank 0. */
#include "check.h"

#include <string.h>

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %d: not true: %s\n", __FILE__, __LINE__, rank, #condition); \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Checks that a call fails with this code and sets a message. */
#define REFUSED(code, call)                                                                        \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_ != (code) || hopbine_last_error()[0] == 0) {                                     \
            fprintf(stderr, "%s:%d: %s: %s, not %s\n", __FILE__, __LINE__, #call,                  \
                    hopbine_error_name(code_), #code);                                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { MOST = 16, LONG = 3000 };

static int rank, size;
static int64_t send[MOST * LONG], recv[MOST * LONG];

/* Element i of rank r's block for rank to. */
static int64_t value(int r, int to, int64_t i) { return 1000003 * r + 1009 * to + i % 977; }

/* Elsewhere `recv` has nothing that a call gives: no call passes by what the one before it has left. */
static void fill(int64_t *buffer, int64_t count, int blocks) {
    memset(recv, -1, sizeof recv);
    for (int b = 0; b < blocks; b++)
        for (int64_t i = 0; i < count; i++) buffer[b * count + i] = value(rank, b, i);
}

static int64_t total(int to, int64_t i) {
    int64_t sum = 0;
    for (int r = 0; r < size; r++) sum += value(r, to, i);
    return sum;
}

enum form { BLOCKING, NONBLOCKING, PERSISTENT, N_FORMS };

/* Runs one collective in one form. NAME's arguments come without communicator and request. */
#define RUN(form, name, ...)                                                                       \
    do {                                                                                           \
        hopbine_request_t request_ = HOPBINE_REQUEST_NULL;                                         \
        if ((form) == BLOCKING) {                                                                  \
            CHECK(hopbine_##name(__VA_ARGS__, comm));                                              \
        } else if ((form) == NONBLOCKING) {                                                        \
            int done_ = 0;                                                                         \
            CHECK(hopbine_i##name(__VA_ARGS__, comm, &request_));                                  \
            CHECK(hopbine_test(&request_, &done_));                                                \
            EXPECT((done_ != 0) == (request_ == HOPBINE_REQUEST_NULL));                            \
            CHECK(hopbine_wait(&request_));                                                        \
            EXPECT(request_ == HOPBINE_REQUEST_NULL);                                              \
        } else {                                                                                   \
            CHECK(hopbine_##name##_init(__VA_ARGS__, comm, &request_));                            \
            CHECK(hopbine_start(request_));                                                        \
            CHECK(hopbine_wait(&request_));                                                        \
            EXPECT(request_ != HOPBINE_REQUEST_NULL);                                              \
            CHECK(hopbine_request_free(&request_));                                                \
        }                                                                                          \
    } while (0)

static void collectives(hopbine_comm_t comm, enum form form, int64_t count) {
    CHECK(hopbine_comm_rank(comm, &rank));
    CHECK(hopbine_comm_size(comm, &size));
    const int type = HOPBINE_INT64, root = size - 1;
    for (int in_place = 0; in_place < 2; in_place++) {
        int64_t *input = in_place ? recv : send;
        const void *from = in_place ? HOPBINE_IN_PLACE : (void *)send;
        const int is_root = rank == root;

        fill(input, count, 1);
        RUN(form, allreduce, from, recv, count, type, HOPBINE_SUM);
        for (int64_t i = 0; i < count; i++) EXPECT(recv[i] == total(0, i));

        fill(is_root ? input : send, count, 1);
        RUN(form, reduce, is_root ? from : send, recv, count, type, HOPBINE_SUM, root);
        for (int64_t i = 0; is_root && i < count; i++) EXPECT(recv[i] == total(0, i));

        fill(input, count, 1);
        RUN(form, scan, from, recv, count, type, HOPBINE_SUM);
        for (int64_t i = 0; i < count; i++)
            EXPECT(recv[i] == (rank + 1) * value(0, 0, i) + 1000003 * (rank * (rank + 1) / 2));
        fill(input, count, 1);
        RUN(form, exscan, from, rank > 0 || in_place ? recv : NULL, count, type, HOPBINE_SUM);
        for (int64_t i = 0; rank > 0 && i < count; i++)
            EXPECT(recv[i] == rank * value(0, 0, i) + 1000003 * (rank * (rank - 1) / 2));

        fill(input, count, size);
        RUN(form, reduce_scatter_block, from, recv, count, type, HOPBINE_SUM);
        for (int64_t i = 0; i < count; i++) EXPECT(recv[i] == total(rank, i));

        fill(in_place ? recv + rank * count : send, count, 1);
        RUN(form, allgather, from, recv, count, type);
        for (int r = 0; r < size; r++)
            for (int64_t i = 0; i < count; i++) EXPECT(recv[r * count + i] == value(r, 0, i));

        fill(in_place && is_root ? recv + rank * count : send, count, 1);
        RUN(form, gather, is_root ? from : send, recv, count, type, root);
        for (int r = 0; is_root && r < size; r++)
            for (int64_t i = 0; i < count; i++) EXPECT(recv[r * count + i] == value(r, 0, i));

        fill(send, count, size);
        RUN(form, scatter, send, in_place && is_root ? HOPBINE_IN_PLACE : recv, count, type, root);
        const int64_t *mine = in_place && is_root ? send + rank * count : recv;
        for (int64_t i = 0; i < count; i++) EXPECT(mine[i] == value(root, rank, i));

        fill(input, count, size);
        RUN(form, alltoall, from, recv, count, type);
        for (int r = 0; r < size; r++)
            for (int64_t i = 0; i < count; i++) EXPECT(recv[r * count + i] == value(r, rank, i));
    }
    fill(recv, count, 1);
    RUN(form, bcast, recv, count, type, root);
    for (int64_t i = 0; i < count; i++) EXPECT(recv[i] == value(root, 0, i));
    hopbine_request_t request;
    switch (form) {
    case BLOCKING: CHECK(hopbine_barrier(comm)); return;
    case NONBLOCKING: CHECK(hopbine_ibarrier(comm, &request)); break;
    default:
        CHECK(hopbine_barrier_init(comm, &request));
        CHECK(hopbine_start(request));
    }
    CHECK(hopbine_wait(&request));
    CHECK(hopbine_request_free(&request));
}

/* Blocks of r + 1 elements, with a gap behind each. */
static void vectors(hopbine_comm_t comm, enum form form) {
    CHECK(hopbine_comm_rank(comm, &rank));
    CHECK(hopbine_comm_size(comm, &size));
    const int type = HOPBINE_INT64, root = size - 1;
    int64_t counts[MOST], displs[MOST], dense[MOST], to[MOST], to_at[MOST];
    for (int r = 0; r < size; r++) counts[r] = r + 1, displs[r] = r * (r + 3), dense[r] = r * (r + 1) / 2;
    fill(send, rank + 1, 1);
    RUN(form, allgatherv, send, rank + 1, recv, counts, displs, type);
    for (int r = 0; r < size; r++)
        for (int64_t i = 0; i <= r; i++) EXPECT(recv[displs[r] + i] == value(r, 0, i));
    memset(recv, -1, sizeof recv);
    RUN(form, gatherv, send, rank + 1, recv, rank == root ? counts : NULL, rank == root ? displs : NULL, type, root);
    for (int r = 0; rank == root && r < size; r++)
        for (int64_t i = 0; i <= r; i++) EXPECT(recv[displs[r] + i] == value(r, 0, i));
    memset(send, -1, sizeof send);
    RUN(form, scatterv, recv, counts, displs, send, rank + 1, type, root);
    for (int64_t i = 0; i <= rank; i++) EXPECT(send[i] == value(rank, 0, i));
    fill(recv, size * (size + 1) / 2, 1);
    RUN(form, reduce_scatter, HOPBINE_IN_PLACE, recv, counts, type, HOPBINE_SUM);
    for (int64_t i = 0; i <= rank; i++) EXPECT(recv[i] == total(0, dense[rank] + i));
    for (int r = 0; r < size; r++) to[r] = rank + 1, to_at[r] = r * (rank + 2);
    fill(send, size * (rank + 2), 1);
    RUN(form, alltoallv, send, to, to_at, recv, counts, NULL, type);
    for (int r = 0; r < size; r++)
        for (int64_t i = 0; i <= r; i++) EXPECT(recv[dense[r] + i] == value(r, 0, rank * (r + 2) + i));
    /* Only the last rank's block has data; the displacements of empty blocks must be ignored. */
    for (int r = 0; r < size; r++) counts[r] = r == root ? 2 : 0, displs[r] = r == root ? 1 : r % 2 ? -5 : INT64_MAX;
    fill(send, 2, 1);
    RUN(form, allgatherv, send, counts[rank], recv, counts, displs, type);
    for (int64_t i = 0; i < 2; i++) EXPECT(recv[1 + i] == value(root, 0, i));
}

static void put(int64_t *block, int count, int from, int to) {
    for (int64_t i = 0; i < count; i++) block[i] = value(from, to, i);
}

/* Whether a block has this, and nothing has been written behind it. */
static int holds(const int64_t *block, int count, int from, int to) {
    for (int64_t i = 0; i < count; i++)
        if (block[i] != value(from, to, i)) return 0;
    return block[count] == -1;
}

/* Blocks of r + 1 elements, or r + s + 1 between ranks r and s, in reverse order with gaps. */
static void vectors_in_place(hopbine_comm_t comm, enum form form) {
    CHECK(hopbine_comm_rank(comm, &rank));
    CHECK(hopbine_comm_size(comm, &size));
    const int type = HOPBINE_INT64, mine = rank + 1;
    int64_t counts[MOST], displs[MOST];
    for (int r = 0; r < size; r++) counts[r] = r + 1, displs[r] = (size - 1 - r) * 3 * MOST;
    for (int root = 0; root < size; root++) {
        const int is_root = rank == root;
        fill(send, mine, 1);
        if (is_root) put(recv + displs[rank], mine, rank, 0);
        RUN(form, gatherv, is_root ? HOPBINE_IN_PLACE : (void *)send, mine, recv, counts, displs, type, root);
        for (int r = 0; is_root && r < size; r++) EXPECT(holds(recv + displs[r], r + 1, r, 0));
        memset(send, -1, sizeof send);
        for (int r = 0; r < size; r++) put(recv + displs[r], r + 1, rank, r);
        RUN(form, scatterv, recv, counts, displs, is_root ? HOPBINE_IN_PLACE : (void *)send, mine, type, root);
        for (int r = 0; r < size; r++) EXPECT(holds(recv + displs[r], r + 1, rank, r));
        EXPECT(is_root || holds(send, mine, root, rank));
    }
    memset(recv, -1, sizeof recv);
    put(recv + displs[rank], mine, rank, 0);
    RUN(form, allgatherv, HOPBINE_IN_PLACE, mine, recv, counts, displs, type);
    for (int r = 0; r < size; r++) EXPECT(holds(recv + displs[r], r + 1, r, 0));
    memset(recv, -1, sizeof recv);
    for (int r = 0; r < size; r++) counts[r] = r + mine, put(recv + displs[r], r + mine, rank, r);
    RUN(form, alltoallv, HOPBINE_IN_PLACE, NULL, NULL, recv, counts, displs, type);
    for (int r = 0; r < size; r++) EXPECT(holds(recv + displs[r], r + mine, r, rank));
}

/* Several requests at once, waited for together. */
static void several(hopbine_comm_t comm) {
    hopbine_request_t requests[4];
    int64_t sums[3][100];
    CHECK(hopbine_comm_rank(comm, &rank));
    CHECK(hopbine_comm_size(comm, &size));
    for (int r = 0; r < 3; r++) {
        for (int i = 0; i < 100; i++) sums[r][i] = value(rank, r, i);
        CHECK(hopbine_iallreduce(HOPBINE_IN_PLACE, sums[r], 100, HOPBINE_INT64, HOPBINE_SUM, comm,
                                 &requests[r]));
    }
    requests[3] = HOPBINE_REQUEST_NULL;
    CHECK(hopbine_waitall(4, requests));
    for (int r = 0; r < 3; r++)
        for (int i = 0; i < 100; i++) EXPECT(sums[r][i] == total(r, i));
}

static void wrong_calls(hopbine_comm_t comm) {
    double x = 1, y = 2;
    hopbine_request_t request = HOPBINE_REQUEST_NULL, stale;
    hopbine_comm_t other = HOPBINE_COMM_NULL;
    const int n = HOPBINE_DOUBLE, sum = HOPBINE_SUM;
    void *const last = (char *)HOPBINE_IN_PLACE - 7; /* 8 bytes from here wrap around the address space. */
    REFUSED(HOPBINE_ERR_COMM, hopbine_allreduce(&x, &y, 1, n, sum, HOPBINE_COMM_NULL));
    REFUSED(HOPBINE_ERR_COMM, hopbine_allreduce(&x, &y, 1, n, sum, 12345));
    REFUSED(HOPBINE_ERR_COUNT, hopbine_allreduce(&x, &y, -1, n, sum, comm));
    REFUSED(HOPBINE_ERR_COUNT, hopbine_allreduce(&x, &y, INT64_MAX, n, sum, comm));
    REFUSED(HOPBINE_ERR_TYPE, hopbine_allreduce(&x, &y, 1, 99, sum, comm));
    REFUSED(HOPBINE_ERR_OP, hopbine_allreduce(&x, &y, 1, n, 99, comm));
    REFUSED(HOPBINE_ERR_OP, hopbine_allreduce(&x, &y, 1, n, HOPBINE_BXOR, comm));
    /* Repeated, and equal to valid calls except for the error: hopbine keeps the programs of calls that were made
     * twice. */
    for (int round = 0; round < 3; round++) {
        REFUSED(HOPBINE_ERR_BUFFER, hopbine_allreduce(NULL, &y, 1, n, sum, comm));
        REFUSED(HOPBINE_ERR_BUFFER, hopbine_allreduce(&x, NULL, 1, n, sum, comm));
        REFUSED(HOPBINE_ERR_BUFFER, hopbine_allreduce(last, &y, 1, n, sum, comm));
        REFUSED(HOPBINE_ERR_BUFFER, hopbine_allreduce(&x, last, 1, n, sum, comm));
        REFUSED(HOPBINE_ERR_BUFFER, hopbine_allreduce(&x, HOPBINE_IN_PLACE, 1, n, sum, comm));
        REFUSED(HOPBINE_ERR_BUFFER, hopbine_allreduce(&x, &x, 1, n, sum, comm));
        REFUSED(HOPBINE_ERR_BUFFER, hopbine_bcast(HOPBINE_IN_PLACE, 1, n, 0, comm));
        REFUSED(HOPBINE_ERR_ROOT, hopbine_bcast(&x, 1, n, size, comm));
        REFUSED(HOPBINE_ERR_ROOT, hopbine_bcast(&x, 1, n, -1, comm));
        CHECK(hopbine_allreduce(&x, &y, 1, n, sum, comm));
        CHECK(hopbine_bcast(&x, 1, n, 0, comm));
    }
    /* A rank gives itself another number of elements than it takes; blocks that are received share memory. */
    int64_t ones[MOST], more[MOST], places[MOST];
    for (int r = 0; r < size; r++) ones[r] = 1, more[r] = 1 + (r == rank), places[r] = 0;
    REFUSED(HOPBINE_ERR_COUNT, hopbine_alltoallv(send, ones, NULL, recv, more, NULL, n, comm));
    REFUSED(HOPBINE_ERR_COUNT, hopbine_allgatherv(send, 1, recv, more, NULL, n, comm));
    if (size > 1) REFUSED(HOPBINE_ERR_BUFFER, hopbine_allgatherv(send, 1, recv, ones, places, n, comm));
    REFUSED(HOPBINE_ERR_ARG, hopbine_iallreduce(&x, &y, 1, n, sum, comm, NULL));
    REFUSED(HOPBINE_ERR_ARG, hopbine_comm_rank(comm, NULL));
    REFUSED(HOPBINE_ERR_REQUEST, hopbine_start(HOPBINE_REQUEST_NULL));
    REFUSED(HOPBINE_ERR_REQUEST, hopbine_start(comm));
    REFUSED(HOPBINE_ERR_ARG, hopbine_waitall(-1, &request));
    REFUSED(HOPBINE_ERR_STATE, hopbine_init(&other));
    CHECK(hopbine_barrier_init(comm, &request));
    stale = request;
    CHECK(hopbine_request_free(&request));
    EXPECT(request == HOPBINE_REQUEST_NULL);
    REFUSED(HOPBINE_ERR_REQUEST, hopbine_start(stale));
    REFUSED(HOPBINE_ERR_REQUEST, hopbine_wait(&stale));
    CHECK(hopbine_comm_duplicate(comm, &other));
    CHECK(hopbine_barrier(other));
    hopbine_comm_t freed = other;
    CHECK(hopbine_comm_free(&other));
    REFUSED(HOPBINE_ERR_COMM, hopbine_barrier(freed));
    REFUSED(HOPBINE_ERR_COMM, hopbine_comm_free(&freed));
    freed = comm;
    REFUSED(HOPBINE_ERR_COMM, hopbine_comm_free(&freed));
    hopbine_registration_t kept, stale_kept;
    REFUSED(HOPBINE_ERR_BUFFER, hopbine_register(comm, NULL, 8, &kept));
    REFUSED(HOPBINE_ERR_ARG, hopbine_register(comm, &x, -1, &kept));
    REFUSED(HOPBINE_ERR_COMM, hopbine_register(HOPBINE_COMM_NULL, &x, sizeof x, &kept));
    CHECK(hopbine_register(comm, &x, sizeof x, &kept));
    CHECK(hopbine_allreduce(&x, &y, 1, n, sum, comm));
    stale_kept = kept;
    /* A handle of one kind is never valid as another kind, whatever its index. */
    hopbine_registration_t registrations[4], no_registration;
    hopbine_request_t persistent[4], no_request;
    for (int i = 0; i < 4; i++) {
        CHECK(hopbine_allreduce_init(&x, &y, 1, n, sum, comm, &persistent[i]));
        CHECK(hopbine_register(comm, &x, sizeof x, &registrations[i]));
    }
    for (int i = 0; i < 4; i++) {
        no_request = registrations[i], no_registration = persistent[i];
        REFUSED(HOPBINE_ERR_REQUEST, hopbine_request_free(&no_request));
        REFUSED(HOPBINE_ERR_ARG, hopbine_deregister(&no_registration));
    }
    for (int i = 0; i < 4; i++) {
        CHECK(hopbine_request_free(&persistent[i]));
        CHECK(hopbine_deregister(&registrations[i]));
    }
    CHECK(hopbine_deregister(&kept));
    EXPECT(kept == 0);
    REFUSED(HOPBINE_ERR_ARG, hopbine_deregister(&stale_kept));
    CHECK(hopbine_comm_with(comm, "no such algorithm", 0, 0, &other));
    REFUSED(HOPBINE_ERR_ALGORITHM, hopbine_allreduce(&x, &y, 1, n, sum, other));
    CHECK(hopbine_comm_free(&other));
}

/* A sum and a broadcast are repeated on other addresses, with another root, and started; what needs its function's
 * checks is not repeated. Returns a sum of `comm` to be repeated, or null with a report. */
static hopbine_repeated_t *repeated(hopbine_comm_t comm) {
    hopbine_repeated_t *sum, *bcast, *none = NULL;
    hopbine_request_t request = HOPBINE_REQUEST_NULL;
    int64_t x[2] = {rank, 1}, y[2] = {-1, -1};
    const int64_t total = (int64_t)size * (size - 1) / 2;
    CHECK(hopbine_repeat_prepare("hopbine_allreduce", x, y, 1, HOPBINE_INT64, HOPBINE_SUM, 0, comm, &sum));
    CHECK(hopbine_repeat_prepare("hopbine_bcast", NULL, x, 1, HOPBINE_INT64, -1, 0, comm, &bcast));
    /* A report sees every call. */
    EXPECT((sum == NULL) == hopbine_report_wanted() && (bcast == NULL) == hopbine_report_wanted());
    if (!sum) return NULL;
    CHECK(hopbine_repeat(sum, x, y, 0));
    CHECK(hopbine_repeat(sum, x + 1, y + 1, 0));
    EXPECT(y[0] == total && y[1] == size);
    y[0] = -1;
    CHECK(hopbine_repeat_start(sum, x, y, 0, &request));
    CHECK(hopbine_wait(&request));
    EXPECT(y[0] == total);
    EXPECT(hopbine_repeat(sum, x, NULL, 0) == HOPBINE_NOT_REPEATED);
    EXPECT(hopbine_repeat_start(sum, x, x, 0, &request) == HOPBINE_NOT_REPEATED);
    REFUSED(HOPBINE_ERR_ARG, hopbine_repeat_start(sum, x, y, 0, NULL));
    /* Ranks that become the root, or cease to be it, need the function's checks. */
    for (int root = 0; root < size; root++) {
        y[0] = rank == root ? 7 + root : -1;
        const int code = hopbine_repeat(bcast, NULL, y, root);
        EXPECT(code == ((rank == root) == (rank == 0) ? HOPBINE_SUCCESS : HOPBINE_NOT_REPEATED));
        if (code == HOPBINE_NOT_REPEATED) CHECK(hopbine_bcast(y, 1, HOPBINE_INT64, root, comm));
        EXPECT(y[0] == 7 + root);
    }
    EXPECT(hopbine_repeat(bcast, NULL, y, size) == HOPBINE_NOT_REPEATED);
    REFUSED(HOPBINE_ERR_ARG, hopbine_repeat_prepare("hopbine_gatherv", x, y, 1, HOPBINE_INT64, -1, 0, comm, &none));
    REFUSED(HOPBINE_ERR_ARG, hopbine_repeat_prepare(NULL, x, y, 1, HOPBINE_INT64, -1, 0, comm, &none));
    REFUSED(HOPBINE_ERR_TYPE, hopbine_repeat_prepare("hopbine_bcast", NULL, x, 1, -5, -1, 0, comm, &none));
    EXPECT(none == NULL);
    hopbine_repeat_free(bcast);
    hopbine_repeat_free(none);
    return sum;
}

static void count_failures(int code, const char *message, void *argument) {
    if (code != HOPBINE_SUCCESS && message[0] != 0) ++*(int *)argument;
}

int main(void) {
    hopbine_comm_t world, half, row, reversed, all;
    int failures = 0, started, ranks[MOST], n_dims, sizes[7], at[7];
    REFUSED(HOPBINE_ERR_STATE, hopbine_finalize());
    REFUSED(HOPBINE_ERR_STATE, hopbine_barrier(hopbine_comm_world()));
    CHECK(hopbine_init(&world));
    CHECK(hopbine_initialized(&started));
    EXPECT(started == 1 && world == hopbine_comm_world());
    EXPECT(hopbine_timeout() == (getenv("HOPBINE_TIMEOUT") ? 20.5 : 60));
    CHECK(hopbine_comm_size(world, &size));
    EXPECT(size <= MOST);
    for (int form = 0; form < N_FORMS; form++) {
        collectives(world, form, 0);
        collectives(world, form, 5);
        collectives(world, form, LONG);
        vectors(world, form);
        vectors_in_place(world, form);
    }
    several(world);

    CHECK(hopbine_comm_rank(world, &rank));
    const int world_rank = rank, world_size = size;
    CHECK(hopbine_comm_split(world, world_rank % 2, -world_rank, &half));
    CHECK(hopbine_comm_rank(half, &rank));
    CHECK(hopbine_comm_size(half, &size));
    EXPECT(size == (world_size + 1 - world_rank % 2) / 2 && rank == size - 1 - world_rank / 2);
    for (int form = 0; form < N_FORMS; form++) collectives(half, form, 100);
    several(half);
    CHECK(hopbine_comm_split(world, world_rank == 0 ? HOPBINE_UNDEFINED : 7, 0, &row));
    EXPECT((row == HOPBINE_COMM_NULL) == (world_rank == 0));
    if (row != HOPBINE_COMM_NULL) CHECK(hopbine_comm_free(&row));
    for (int r = 0; r < world_size; r++) ranks[r] = world_size - 1 - r;
    CHECK(hopbine_comm_group(world, world_size, ranks, &reversed));
    CHECK(hopbine_comm_rank(reversed, &rank));
    EXPECT(rank == world_size - 1 - world_rank);
    collectives(reversed, BLOCKING, 10);
    CHECK(hopbine_comm_torus(world, 7, &n_dims, sizes, at));
    const int first = 0;
    CHECK(hopbine_comm_sub_box(world, 1, &first, &row));
    CHECK(hopbine_comm_size(row, &size));
    CHECK(hopbine_comm_rank(row, &rank));
    EXPECT(size == sizes[0] && rank == at[0]);
    collectives(row, BLOCKING, 10);

    CHECK(hopbine_comm_rank(world, &rank));
    CHECK(hopbine_comm_size(world, &size));
    wrong_calls(world);
    hopbine_repeated_t *const of_world = repeated(world);
    CHECK(hopbine_comm_split(world, 0, rank, &all));
    hopbine_repeated_t *const of_all = repeated(all);
    CHECK(hopbine_comm_free(&all));
    hopbine_set_error_handler(count_failures, &failures);
    REFUSED(HOPBINE_ERR_COMM, hopbine_barrier(HOPBINE_COMM_NULL));
    EXPECT(failures == 1);
    hopbine_set_error_handler(NULL, NULL);
    REFUSED(HOPBINE_ERR_COMM, hopbine_barrier(HOPBINE_COMM_NULL));
    EXPECT(failures == 1);

    /* Handles that outlive the world are refused, and can be freed. */
    double x = rank, y = 0;
    hopbine_request_t later;
    CHECK(hopbine_allreduce_init(&x, &y, 1, HOPBINE_DOUBLE, HOPBINE_SUM, world, &later));
    EXPECT(!of_all || hopbine_repeat(of_all, &x, &y, 0) == HOPBINE_NOT_REPEATED);
    CHECK(hopbine_finalize());
    EXPECT(!of_world || hopbine_repeat(of_world, &x, &y, 0) == HOPBINE_NOT_REPEATED);
    hopbine_repeat_free(of_world);
    hopbine_repeat_free(of_all);
    REFUSED(HOPBINE_ERR_STATE, hopbine_barrier(world));
    REFUSED(HOPBINE_ERR_STATE, hopbine_barrier(half));
    REFUSED(HOPBINE_ERR_STATE, hopbine_comm_rank(half, &rank));
    REFUSED(HOPBINE_ERR_STATE, hopbine_start(later));
    CHECK(hopbine_request_free(&later));
    CHECK(hopbine_comm_free(&half));
    CHECK(hopbine_comm_free(&reversed));
    CHECK(hopbine_comm_free(&row));
    EXPECT(hopbine_comm_world() == HOPBINE_COMM_NULL);
    REFUSED(HOPBINE_ERR_STATE, hopbine_barrier(reversed));
    if (world_rank == 0) puts("all correct");
    return 0;
}
