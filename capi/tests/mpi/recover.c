/* Mismatched calls. A rank that gets other data than it expects must get an error, every rank must return from the
 * call, nothing may be written behind a buffer, and the next call must be served normally. On the world's
 * communicator and on others, with short and long data. Then the same with error handlers that do not return. */
#include "program.h"

#include <setjmp.h>
#include <stdlib.h>

enum { LONG = 20000, GUARD = 64 };
static int *send, *recv;
static const char *where;

/* Checks a call's code; `elements` is the length that this rank expects, `must` whether it has to get an error. */
static void check(const char *what, int code, int elements, int must) {
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    if (must ? class != MPI_ERR_TRUNCATE : class != MPI_ERR_TRUNCATE && class != MPI_SUCCESS) {
        fprintf(stderr, "%s, %s, rank %d: error class %d\n", where, what, rank, class);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = elements; i < elements + GUARD; i++)
        if (recv[i] != 77) {
            fprintf(stderr, "%s, %s, rank %d: written behind the buffer\n", where, what, rank);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
}

static void goes_on(const char *what, MPI_Comm comm) {
    int mine[3] = {rank, 1, 2}, sums[3] = {0, 0, 0}, from = rank;
    int error = CALL(Allreduce)(mine, sums, 3, MPI_INT, MPI_SUM, comm);
    if (error == MPI_SUCCESS) error = CALL(Bcast)(&from, 1, MPI_INT, size - 1, comm);
    if (error != MPI_SUCCESS || sums[0] != size * (size - 1) / 2 || sums[1] != size || from != size - 1) {
        fprintf(stderr, "%s, after %s, rank %d: error %d, sums %d %d %d, %d\n", where, what, rank, error,
                sums[0], sums[1], sums[2], from);
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
    for (int i = 0; i < size * LONG + GUARD; i++) recv[i] = 77;
}

/* Rank 0 passes the length `n`, all others `m`. */
static void all(MPI_Comm comm, int n, int m) {
    const int mine = rank == 0 ? n : m;
    check("bcast", CALL(Bcast)(recv, mine, MPI_INT, 0, comm), mine, rank != 0);
    goes_on("bcast", comm);
    check("reduce", CALL(Reduce)(send, recv, mine, MPI_INT, MPI_SUM, 0, comm), rank == 0 ? mine : 0, rank == 0);
    goes_on("reduce", comm);
    check("allreduce", CALL(Allreduce)(send, recv, mine, MPI_INT, MPI_SUM, comm), mine, 1);
    goes_on("allreduce", comm);
    check("operators", CALL(Allreduce)(send, recv, m, MPI_INT, rank == 0 ? MPI_MAX : MPI_SUM, comm), m, 1);
    goes_on("operators", comm);
    check("gather", CALL(Gather)(send, m, MPI_INT, recv, mine, MPI_INT, 0, comm), size * mine, rank == 0 && n != m);
    goes_on("gather", comm);
    check("scatter", CALL(Scatter)(send, n, MPI_INT, recv, mine, MPI_INT, 0, comm), mine, rank != 0);
    goes_on("scatter", comm);
    check("allgather", CALL(Allgather)(send, mine, MPI_INT, recv, mine, MPI_INT, comm), size * mine, 1);
    goes_on("allgather", comm);
    check("alltoall", CALL(Alltoall)(send, mine, MPI_INT, recv, mine, MPI_INT, comm), size * mine, 1);
    goes_on("alltoall", comm);
}

/* Rank 0's block for itself has another length on its send side than on its receive side, which must not affect other
 * ranks. */
static void own(MPI_Comm comm, int m) {
    int *const counts = malloc(3 * (size_t)size * sizeof *counts), *const others = counts + size, *const places = others + size;
    for (int r = 0; r < size; r++) counts[r] = others[r] = m, places[r] = r * m;
    const int is_wrong = rank == 0;
    others[rank] += is_wrong;
    check("own of allgatherv", CALL(Allgatherv)(send, m + is_wrong, MPI_INT, recv, counts, places, MPI_INT, comm), size * m,
          is_wrong);
    goes_on("own of allgatherv", comm);
    check("own of gatherv", CALL(Gatherv)(send, m - is_wrong, MPI_INT, recv, counts, places, MPI_INT, 0, comm),
          rank == 0 ? size * m : 0, is_wrong);
    goes_on("own of gatherv", comm);
    check("own of scatterv", CALL(Scatterv)(send, counts, places, MPI_INT, recv, m - is_wrong, MPI_INT, 0, comm),
          m - is_wrong, is_wrong);
    goes_on("own of scatterv", comm);
    check("own of alltoallv",
          CALL(Alltoallv)(send, others, places, MPI_INT, recv, counts, places, MPI_INT, comm), size * m, is_wrong);
    goes_on("own of alltoallv", comm);
    free(counts);
}

/* MPI has to refuse a type that is not committed. */
static void uncommitted(MPI_Comm comm) {
    MPI_Datatype pairs;
    int class = MPI_SUCCESS;
    MPI_Type_vector(2, 1, 2, MPI_INT, &pairs);
    const int error = CALL(Bcast)(recv, 1, pairs, 0, comm);
    if (error != MPI_SUCCESS) MPI_Error_class(error, &class);
    if (class != MPI_ERR_TYPE) {
        fprintf(stderr, "%s, uncommitted, rank %d: error class %d\n", where, rank, class);
        MPI_Abort(MPI_COMM_WORLD, 6);
    }
    MPI_Type_free(&pairs);
    goes_on("uncommitted", comm);
}

/* The handle of no communicator, under Open MPI and MPICH, which raise its errors on one of these communicators. */
static const MPI_Comm invalid = (MPI_Comm)0;
static void handle_invalid(MPI_Errhandler handler) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
}

static int n_told;
static void tell(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    n_told++;
}

/* The error of an invalid communicator is raised once. */
static void told_once(void) {
    MPI_Errhandler handler;
    int class = MPI_SUCCESS;
    MPI_Comm_create_errhandler(tell, &handler);
    handle_invalid(handler);
    MPI_Error_class(CALL(Bcast)(recv, 1, MPI_INT, 0, invalid), &class);
    EXPECT(class == MPI_ERR_COMM && n_told == 1);
    handle_invalid(MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
}

static jmp_buf back;

static void leap(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    longjmp(back, 1);
}

/* Calls on one rank with an error handler that does not return, like one that throws. */
static void leaps(void) {
    MPI_Errhandler handler;
    MPI_Comm alone, made;
    MPI_Request request;
    const int kept = 1;
    where = "leaps";
    MPI_Comm_dup(MPI_COMM_SELF, &alone);
    MPI_Comm_create_errhandler(leap, &handler);
    MPI_Comm_set_errhandler(alone, handler);
    handle_invalid(handler);
    for (volatile int wrong = 0; rank == 0 && wrong < 7; wrong++) {
        if (setjmp(back) != 0) continue;
        if (wrong == 0) CALL(Bcast)(recv, -1, MPI_INT, 0, alone);
        if (wrong == 1) CALL(Bcast)(recv, 1, MPI_INT, 5, alone);
        if (wrong == 2) CALL(Allreduce)(send, recv, 1, MPI_INT, MPI_OP_NULL, alone);
        if (wrong == 3) MPI_Cart_sub(alone, &kept, &made);
        if (wrong == 4) CALL(Bcast)(recv, 1, MPI_INT, 0, invalid);
        if (wrong == 5) CALL(Ibcast)(recv, 1, MPI_INT, 0, invalid, &request);
        if (wrong == 6) made = MPI_COMM_WORLD, MPI_Comm_free(&made);
        fprintf(stderr, "the handler was not called for %d\n", wrong);
        MPI_Abort(MPI_COMM_WORLD, 5);
    }
    goes_on("handlers that leap", MPI_COMM_WORLD);
    handle_invalid(MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&alone);
}

static int leap_once(MPI_Comm comm, int key, void *value, void *extra) {
    static int has_leapt;
    (void)comm, (void)key, (void)value, (void)extra;
    if (!has_leapt++) longjmp(back, 1);
    return MPI_SUCCESS;
}

/* A delete callback that does not return on one rank; the next communicator may have the handle. */
static void leaps_from_free(void) {
    static MPI_Comm made, again;
    int key;
    where = "leaps from free";
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leap_once, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    again = made;
    if (rank == 0 && setjmp(back) == 0) {
        MPI_Comm_set_attr(made, key, NULL);
        MPI_Comm_free(&made);
        EXPECT(!"the callback was called");
    }
    MPI_Comm_free(&again);
    MPI_Comm_free_keyval(&key);
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    goes_on("a callback that leaps", made);
    MPI_Comm_free(&made);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm copy, turned, of[3];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    send = calloc((size_t)size * LONG, sizeof *send);
    recv = malloc(((size_t)size * LONG + GUARD) * sizeof *recv);
    for (int i = 0; i < size * LONG + GUARD; i++) recv[i] = 77;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    of[0] = MPI_COMM_WORLD, of[1] = copy, of[2] = turned;
    for (int c = 0; c < 3; c++) {
        static const char *const names[3] = {"world", "copy", "turned"};
        where = names[c];
        MPI_Comm_set_errhandler(of[c], MPI_ERRORS_RETURN);
        MPI_Comm_rank(of[c], &rank);
        goes_on("nothing", of[c]);
        /* With less than one element per rank, an algorithm may use other messages than with more: on the world's
         * communicator they are then written to a board, or are not cut. */
        const int few = c == 0 ? 1 : size, many = 2 * size + 2;
        all(of[c], few, many);
        all(of[c], many, few);
        own(of[c], 3);
        own(of[c], LONG / 2);
        uncommitted(of[c]);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    told_once();
    leaps();
    leaps_from_free();
    MPI_Comm_free(&copy);
    MPI_Comm_free(&turned);
    MPI_Finalize();
    if (rank == 0) printf("all that does not fit was told, and all went on\n");
    return 0;
}
