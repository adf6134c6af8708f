/* Reductions by MPI_Reduce_local, for operators and types of any kind: user-defined operators, also non-commutative
 * ones, MPI_MINLOC and MPI_MAXLOC. hopbine moves the data. A rank that has the elements of all ranks combines them in
 * the order of ranks: ((a0 op a1) op a2), and so on.
 *
 * Short vectors are gathered on the ranks that need the result. Of a long vector each rank gets one block from every
 * rank, combines these, and sends the result on: as much data as a sum of that length moves. */
#include "job.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of all ranks' vectors together, up to which they are gathered. */
enum { SHORT = 1 << 14 };

/* How elements lie in memory. Bytes of one element go from `first` to before `past`: its data, and its extent, whose
 * holes a program's operator may write when it assigns whole structures. */
struct layout {
    MPI_Datatype type;
    struct type is;
    MPI_Aint extent, first, past;
};

/* Memory for elements with their extent; the first element begins at `at`. */
struct room {
    void *memory;
    char *at;
};

static int open_room(struct room *room, const struct layout *of, MPI_Count n) {
    const MPI_Aint step = of->extent < 0 ? -of->extent : of->extent;
    const MPI_Aint before = of->extent < 0 ? (n > 0 ? n - 1 : 0) * step : 0;
    room->memory = calloc((size_t)(of->past - of->first + (n > 0 ? n - 1 : 0) * step + 1), 1);
    if (room->memory) room->at = (char *)room->memory + before - of->first;
    return room->memory != NULL;
}

/* inout = in op inout */
static int combine(const struct layout *of, MPI_Op op, char *in, char *inout, MPI_Count n) {
    for (MPI_Count done = 0; done < n; done += INT_MAX) {
        const int now = n - done < INT_MAX ? (int)(n - done) : INT_MAX;
        const int code = PMPI_Reduce_local(in + done * of->extent, inout + done * of->extent, now, of->type, op);
        if (code != MPI_SUCCESS) return code;
    }
    return MPI_SUCCESS;
}

/* Combines row 0 with row 1, the result with row 2, and so on up to row `last`. Each row r then holds the combination
 * of ranks 0 to r. Rows hold `n` elements without holes; elements with holes lie in the two rooms meanwhile. */
static int fold(const struct layout *of, MPI_Op op, char *rows, MPI_Count n, int last, const struct room rooms[2]) {
    const MPI_Count bytes = n * of->is.bytes;
    int code = MPI_SUCCESS;
    if (of->is.contiguous) {
        for (int r = 1; code == MPI_SUCCESS && r <= last; r++)
            code = combine(of, op, rows + (r - 1) * bytes, rows + r * bytes, n);
        return code;
    }
    int good = pack_or_unpack(rows, rooms[0].at, n, of->type, of->is.bytes, 1);
    for (int r = 1; good && code == MPI_SUCCESS && r <= last; r++) {
        char *const before = rooms[(r - 1) % 2].at, *const here = rooms[r % 2].at;
        good = pack_or_unpack(rows + r * bytes, here, n, of->type, of->is.bytes, 1);
        if (good) code = combine(of, op, before, here, n);
        good = good && pack_or_unpack(rows + r * bytes, here, n, of->type, of->is.bytes, 0);
    }
    return good ? code : MPI_ERR_INTERN;
}

int serve_ordered(struct call *call, const struct state *state, int *code, int *error) {
    const enum collective c = call->collective;
    const int size = state->size, rank = state->rank;
    struct layout of = {.type = call->recv_type};
    MPI_Aint lower, true_lower, true_extent;
    if (!query_type(of.type, &of.is) || of.is.bytes == 0) return call->reason = "no data", 0;
    PMPI_Type_get_extent(of.type, &lower, &of.extent);
    PMPI_Type_get_true_extent(of.type, &true_lower, &true_extent);
    of.first = lower < true_lower ? lower : true_lower;
    of.past = lower + of.extent > true_lower + true_extent ? lower + of.extent : true_lower + true_extent;
    /* Length of each rank's block: as the call says, or an even part of the vector. */
    MPI_Count n = call->recv_count;
    int64_t *counts = NULL;
    if (c == REDUCE_SCATTER) {
        n = 0;
        counts = counts_of(call, size, error);
        if (!counts) return 1;
    } else if (c == REDUCE_SCATTER_BLOCK) {
        n *= size;
    }
    /* In bytes: each rank's block in the vector, and each row of `rows`. */
    int64_t *const lengths = malloc(4 * (size_t)size * sizeof *lengths);
    if (!lengths) {
        free(counts);
        return *error = MPI_ERR_NO_MEM, 1;
    }
    int64_t *const starts = lengths + size, *const own = starts + size, *const row_starts = own + size;
    int64_t at = 0;
    for (int r = 0; r < size; r++) {
        const int64_t elements = counts ? counts[r] : n / size + (r < n % size);
        lengths[r] = elements * of.is.bytes;
        starts[r] = at;
        at += lengths[r];
    }
    const int64_t bytes = at, mine = lengths[rank];
    n = bytes / of.is.bytes;
    for (int r = 0; r < size; r++) own[r] = mine, row_starts[r] = r * mine;
    free(counts);

    /* The input as a row without holes, which this rank then sends. */
    char *const from = call->send == MPI_IN_PLACE ? call->recv : (char *)call->send;
    const int gives_result = c != REDUCE || rank == call->root;
    const int scatters = c == REDUCE_SCATTER || c == REDUCE_SCATTER_BLOCK;
    const int is_short = !scatters && bytes * size <= SHORT;
    char *const row = malloc((size_t)bytes + 1);
    char *const rows = malloc((size_t)(is_short ? bytes * size : mine * size) + 1);
    char *result = NULL;
    /* All memory is there before the first message, so that a rank without any has not begun the call. */
    struct room rooms[2] = {{NULL, NULL}, {NULL, NULL}};
    const MPI_Count combined_here = is_short ? n : mine / of.is.bytes;
    int good = row && rows;
    for (int i = 0; i < 2 && good && !of.is.contiguous; i++) good = open_room(&rooms[i], &of, combined_here);
    good = good && pack_or_unpack(row, from, n, of.type, of.is.bytes, 0);
    *code = HOPBINE_SUCCESS;
    if (!good) {
        *error = MPI_ERR_NO_MEM;
    } else if (is_short) {
        *code = c == REDUCE ? hopbine_gather(row, rows, bytes, HOPBINE_UINT8, call->root, state->comm)
                            : hopbine_allgather(row, rows, bytes, HOPBINE_UINT8, state->comm);
        if (*code == HOPBINE_SUCCESS && gives_result) *error = fold(&of, call->op, rows, n, size - 1, rooms);
        const int which = c == SCAN ? rank : c == EXSCAN ? rank - 1 : size - 1;
        if (gives_result && which >= 0) result = rows + which * bytes;
    } else {
        *code = hopbine_alltoallv(row, lengths, starts, rows, own, row_starts, HOPBINE_UINT8, state->comm);
        if (*code == HOPBINE_SUCCESS) *error = fold(&of, call->op, rows, combined_here, size - 1, rooms);
        char *const combined = rows + (size - 1) * mine;
        const int is_well = *code == HOPBINE_SUCCESS && *error == MPI_SUCCESS;
        if (scatters) {
            result = combined;
        } else if (is_well && c == ALLREDUCE) {
            *code = hopbine_allgatherv(combined, mine, result = row, lengths, starts, HOPBINE_UINT8, state->comm);
        } else if (is_well && c == REDUCE) {
            *code = hopbine_gatherv(combined, mine, row, lengths, starts, HOPBINE_UINT8, call->root, state->comm);
            if (gives_result) result = row;
        } else if (is_well) {
            /* Each rank gets its own prefix of each block; for an exclusive scan, the prefix of the rank before it. */
            if (c == EXSCAN) memmove(rows + mine, rows, (size_t)((size - 1) * mine));
            *code = hopbine_alltoallv(rows, own, row_starts, row, lengths, starts, HOPBINE_UINT8, state->comm);
            if (c == SCAN || rank > 0) result = row;
        }
    }
    const MPI_Count results = scatters ? mine / of.is.bytes : n;
    if (result && *code == HOPBINE_SUCCESS && *error == MPI_SUCCESS &&
        !pack_or_unpack(result, call->recv, results, of.type, of.is.bytes, 1))
        *error = MPI_ERR_INTERN;
    free(row);
    free(rows);
    free(rooms[0].memory);
    free(rooms[1].memory);
    free(lengths);
    return 1;
}
