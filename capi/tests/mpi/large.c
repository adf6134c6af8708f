/* HB_Allgatherv_c and the other large-count vector forms, served by MPI: on an intercommunicator. Lists are as long
 * as the remote group; some only the root has, and some are not read. Blocking and by requests. Prints "all correct"
 * on rank 0. */
#define HB
#include "program.h"

#include <stdlib.h>

/* The value that rank r of the world sends to rank `to` of the remote group. */
static int gift(int r, int to) { return 100 * r + to; }

/* Sizes of this group and of the remote one, and the world ranks of their first ranks. */
static int n, n_others, first, first_other;

static MPI_Count *counts_of(MPI_Count count) {
    MPI_Count *list = malloc((size_t)n_others * sizeof *list);
    for (int r = 0; r < n_others; r++) list[r] = count;
    return list;
}

/* Displacements in descending order. */
static MPI_Aint *backwards(int each) {
    MPI_Aint *list = malloc((size_t)n_others * sizeof *list);
    for (int r = 0; r < n_others; r++) list[r] = (MPI_Aint)(n_others - 1 - r) * each;
    return list;
}

/* Makes a call, blocking or non-blocking, and completes it. */
#define EACH(is_request, Name, name, ...)                                                          \
    do {                                                                                           \
        MPI_Request request;                                                                       \
        if (!(is_request)) HB_##Name##_c(__VA_ARGS__);                                             \
        else HB_I##name##_c(__VA_ARGS__, &request), MPI_Wait(&request, MPI_STATUS_IGNORE);         \
    } while (0)

int main(int argc, char **argv) {
    MPI_Comm group, between;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    HB_Init();
    /* One group is the first rank, the other one all further ranks. */
    const int is_first = rank == 0;
    n = is_first ? 1 : size - 1, n_others = size - n, first = is_first ? 0 : 1, first_other = is_first ? 1 : 0;
    const int mine = rank - first, root = is_first ? MPI_ROOT : 0;
    MPI_Comm_split(MPI_COMM_WORLD, is_first, rank, &group);
    MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, first_other, 0, &between);
    /* Counts that must not be read are too large for an int. */
    MPI_Count *const counts = counts_of(1), *const unread = counts_of((MPI_Count)1 << 40);
    MPI_Aint *const back = backwards(1), *const bytes = backwards(sizeof(int));
    MPI_Datatype *const types = malloc((size_t)n_others * sizeof *types);
    int *const gifts = malloc((size_t)n_others * sizeof *gifts), *const got = malloc((size_t)n_others * sizeof *got);
    int *const all_gifts = malloc((size_t)size * sizeof *all_gifts);
    for (int r = 0; r < n_others; r++) gifts[n_others - 1 - r] = gift(rank, r), types[r] = MPI_INT;
    for (int is_request = 0; is_request < 2; is_request++) {
        for (int r = 0; r < n_others; r++) got[r] = -1;
        EACH(is_request, Alltoallv, alltoallv, gifts, counts, back, MPI_INT, got, counts, back, MPI_INT, between);
        for (int r = 0; r < n_others; r++) EXPECT(got[n_others - 1 - r] == gift(first_other + r, mine));
        for (int r = 0; r < n_others; r++) got[r] = -1;
        EACH(is_request, Alltoallw, alltoallw, gifts, counts, bytes, types, got, counts, bytes, types, between);
        for (int r = 0; r < n_others; r++) EXPECT(got[n_others - 1 - r] == gift(first_other + r, mine));
        /* The first rank gathers from the others, and scatters to them. */
        for (int r = 0; r < n_others; r++) got[r] = -1;
        EACH(is_request, Gatherv, gatherv, &rank, 1, MPI_INT, got, is_first ? counts : unread, back, MPI_INT, root, between);
        for (int r = 0; r < n_others; r++) EXPECT(got[n_others - 1 - r] == (is_first ? first_other + r : -1));
        EACH(is_request, Scatterv, scatterv, gifts, is_first ? counts : unread, back, MPI_INT, got, 1, MPI_INT, root,
             between);
        EXPECT(is_first || got[0] == gift(0, mine));
        /* As many blocks as this group has ranks: the sum of the remote ranks' contributions. */
        for (int r = 0; r < size; r++) all_gifts[r] = rank;
        MPI_Count each[size];
        for (int r = 0; r < n; r++) each[r] = is_first ? n_others : 1;
        EACH(is_request, Reduce_scatter, reduce_scatter, all_gifts, got, each, MPI_INT, MPI_SUM, between);
        EXPECT(got[0] == (is_first ? size * (size - 1) / 2 : 0));
        /* In place, the send arguments are not read. */
        int own = 7;
        const MPI_Count one = 1;
        const MPI_Aint here = 0;
        EACH(is_request, Alltoallv, alltoallv, MPI_IN_PLACE, unread, back, MPI_DATATYPE_NULL, &own, &one, &here, MPI_INT,
             MPI_COMM_SELF);
        EXPECT(own == 7);
    }
    free(counts), free(unread), free(back), free(bytes), free(types), free(gifts), free(got), free(all_gifts);
    MPI_Comm_free(&between);
    MPI_Comm_free(&group);
    if (rank == 0) puts("all correct");
    MPI_Finalize();
    return 0;
}
