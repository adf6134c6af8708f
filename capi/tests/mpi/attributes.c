/* Attributes of the program's, which MPI copies and deletes with communicators. A delete callback makes a collective on
 * the communicator that is being freed; calls on the next ones, which may have its handle, have the right results.
 * hopbine, also if it starts late (HOPBINE_START=call), copies no attribute of MPI_COMM_WORLD. Prints "each is deleted
 * once" on rank 0. */
#include "program.h"

static int n_deleted;

/* The value is the sum that the ranks of the communicator must get. */
static int delete(MPI_Comm comm, int key, void *value, void *extra) {
    int one = 1, sum = 0;
    (void)key, (void)extra;
    for (int call = 0; call < 2; call++) {
        CALL(Allreduce)(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        EXPECT(sum == *(int *)value);
    }
    n_deleted++;
    return MPI_SUCCESS;
}

/* Makes a communicator of every kind, and frees it. */
static void make_and_free(MPI_Comm from, int kind) {
    MPI_Comm made, half;
    MPI_Request request;
    int n, one = 1, sum = 0, first = rank;
    if (kind % 2) MPI_Comm_dup(from, &made);
    else MPI_Comm_idup(from, &made, &request), MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (kind >= 2) CALL(Allreduce)(&one, &sum, 1, MPI_INT, MPI_SUM, made);
    if (kind >= 4) MPI_Comm_disconnect(&made);
    else MPI_Comm_free(&made);
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, 0, &half);
    MPI_Comm_size(half, &n);
    CALL(Allreduce)(&one, &sum, 1, MPI_INT, MPI_SUM, half);
    EXPECT(sum == n);
    CALL(Bcast)(&first, 1, MPI_INT, 0, half);
    EXPECT(first == (rank > 0));
    MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
    enum { KINDS = 6, ROUNDS = 5 };
    MPI_Comm from;
    int key, of_world, is_set;
    int *kept;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete, &key, NULL);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete, &of_world, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, of_world, &size);
    CALL(Barrier)(MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &from);
    MPI_Comm_set_attr(from, key, &size);
    for (int round = 0; round < ROUNDS; round++)
        for (int kind = 0; kind < KINDS; kind++) make_and_free(from, kind);
    EXPECT(n_deleted == ROUNDS * KINDS);
    MPI_Comm_free(&from);
    MPI_Comm_get_attr(MPI_COMM_WORLD, of_world, &kept, &is_set);
    EXPECT(is_set && kept == &size && n_deleted == ROUNDS * KINDS + 1);
    MPI_Finalize();
    if (n_deleted > ROUNDS * KINDS + 2) return 1;
    if (rank == 0) puts("each is deleted once");
    return 0;
}
