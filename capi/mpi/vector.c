/* The vector forms: blocks of any size, at any place, of any type.
 *
 * As everywhere, ranks may describe the same data by different types, so blocks go as bytes, and
 * what does not lie in memory as it is sent is packed into a row of its own. */
#include "doors.h"

#include <stdlib.h>

/* One side of a call: where its blocks are in the caller's buffer, and in bytes as hopbine gets
 * them. */
struct rows {
    char *buffer;
    MPI_Datatype type;
    MPI_Aint extent;
    MPI_Count each;
    /* The caller's, in elements. */
    const void *counts, *displs;
    int is_wide;
    /* A row for all blocks, one after the other, if they must be packed. */
    char *copy;
    /* In bytes, by rank. */
    int64_t *bytes, *starts;
    int n;
};

static MPI_Count count_at(const struct rows *rows, int at) {
    return rows->is_wide ? ((const MPI_Count *)rows->counts)[at] : ((const int *)rows->counts)[at];
}

static MPI_Aint displ_at(const struct rows *rows, int at) {
    return rows->is_wide ? ((const MPI_Aint *)rows->displs)[at] : ((const int *)rows->displs)[at];
}

/* Reads the lists; returns what is wrong with them, or MPI_SUCCESS. */
static int open_rows(struct rows *rows, int n) {
    struct type type;
    MPI_Aint lower;
    if (!rows->counts || !rows->displs) return MPI_ERR_ARG;
    if (!look_at_type(rows->type, &type)) return MPI_ERR_TYPE;
    PMPI_Type_get_extent(rows->type, &lower, &rows->extent);
    rows->each = type.bytes;
    rows->n = n;
    rows->bytes = malloc(2 * (size_t)n * sizeof *rows->bytes);
    if (!rows->bytes) return MPI_ERR_NO_MEM;
    rows->starts = rows->bytes + n;
    int packs = !type.contiguous;
    int64_t all = 0;
    for (int r = 0; r < n; r++) {
        if (count_at(rows, r) < 0) return MPI_ERR_COUNT;
        packs |= count_at(rows, r) > 0 && displ_at(rows, r) < 0;
        all += rows->bytes[r] = count_at(rows, r) * rows->each;
    }
    for (int r = 0, first = 1; r < n; r++) {
        const int64_t before = first ? 0 : rows->starts[r - 1] + rows->bytes[r - 1];
        rows->starts[r] = packs ? before : rows->bytes[r] > 0 ? displ_at(rows, r) * rows->extent : 0;
        first = 0;
    }
    if (packs && !(rows->copy = malloc(all > 0 ? (size_t)all : 1))) return MPI_ERR_NO_MEM;
    return MPI_SUCCESS;
}

/* Packs or unpacks one block, if it must be. */
static int move(const struct rows *rows, int r, int is_back) {
    if (!rows->copy || rows->bytes[r] == 0) return 1;
    char *const loose = rows->buffer + displ_at(rows, r) * rows->extent;
    return copy_loose(rows->copy + rows->starts[r], loose, count_at(rows, r), rows->type, rows->each, is_back);
}

static int move_all(const struct rows *rows, int is_back) {
    for (int r = 0; r < rows->n; r++)
        if (!move(rows, r, is_back)) return 0;
    return 1;
}

/* This rank's only block as a list of one. */
struct only {
    MPI_Count count;
    MPI_Aint displ;
};

static struct rows only_row(struct only *only, void *buffer, MPI_Count count, MPI_Datatype type) {
    *only = (struct only){count, 0};
    return (struct rows){.buffer = buffer, .type = type, .counts = &only->count, .displs = &only->displ, .is_wide = 1};
}

static void *data(const struct rows *rows) { return rows->copy ? rows->copy : rows->buffer; }

int serve_vector(struct call *call, hopbine_comm_t comm, int rank, int size, int *code) {
    const enum collective c = call->collective;
    const int is_root = rank == call->root, at_root = c == GATHERV || c == SCATTERV;
    if (at_root && (call->root < 0 || call->root >= size)) return MPI_ERR_ROOT;
    const int in_place = call->send == MPI_IN_PLACE || call->recv == MPI_IN_PLACE;
    /* Which side has lists, which is one block, and which is not there. */
    struct only one = {0, 0}, other = {0, 0};
    struct rows send = {.n = 0}, recv = {.n = 0};
    const int sends = !(c == SCATTERV && !is_root) && call->send != MPI_IN_PLACE;
    const int receives = !(c == GATHERV && !is_root) && call->recv != MPI_IN_PLACE;
    int error = MPI_SUCCESS;
    if (sends) {
        send = call->send_counts ? (struct rows){.buffer = (char *)call->send, .type = call->send_type,
                                                 .counts = call->send_counts, .displs = call->send_displs,
                                                 .is_wide = call->is_wide}
                                 : only_row(&one, (void *)call->send, call->send_count, call->send_type);
        error = open_rows(&send, call->send_counts ? size : 1);
    }
    if (receives && error == MPI_SUCCESS) {
        recv = call->recv_counts ? (struct rows){.buffer = call->recv, .type = call->recv_type,
                                                 .counts = call->recv_counts, .displs = call->recv_displs,
                                                 .is_wide = call->is_wide}
                                 : only_row(&other, call->recv, call->recv_count, call->recv_type);
        error = open_rows(&recv, call->recv_counts ? size : 1);
    }
    int good = error == MPI_SUCCESS;
    *code = HOPBINE_SUCCESS;
    if (good && sends) good = move_all(&send, 0);
    /* In place, the input is in the receive buffer: this rank's block, or all of an alltoall. */
    if (good && receives && in_place) good = c == ALLTOALLV ? move_all(&recv, 0) : recv.n == size ? move(&recv, rank, 0) : 1;
    if (good) {
        const void *from = call->send == MPI_IN_PLACE ? HOPBINE_IN_PLACE : data(&send);
        void *to = call->recv == MPI_IN_PLACE ? HOPBINE_IN_PLACE : data(&recv);
        const int bytes = HOPBINE_UINT8;
        switch (c) {
        case ALLGATHERV: {
            const int64_t mine = sends ? send.bytes[0] : recv.bytes[rank];
            *code = hopbine_allgatherv(from, mine, to, recv.bytes, recv.starts, bytes, comm);
            break;
        }
        case GATHERV: {
            const int64_t mine = sends ? send.bytes[0] : recv.bytes[rank];
            *code = hopbine_gatherv(from, mine, to, recv.bytes, recv.starts, bytes, call->root, comm);
            break;
        }
        case SCATTERV: {
            const int64_t mine = receives ? recv.bytes[0] : send.bytes[rank];
            *code = hopbine_scatterv(from, send.bytes, send.starts, to, mine, bytes, call->root, comm);
            break;
        }
        default:
            *code = hopbine_alltoallv(from, send.bytes, send.starts, to, recv.bytes, recv.starts, bytes, comm);
        }
        if (*code == HOPBINE_SUCCESS && receives) good = move_all(&recv, 1);
    }
    if (!good && error == MPI_SUCCESS && *code == HOPBINE_SUCCESS) *code = HOPBINE_ERR_INTERNAL;
    free(send.copy);
    free(recv.copy);
    free(send.bytes);
    free(recv.bytes);
    return error;
}

int serve_reduce_scatter(struct call *call, hopbine_comm_t comm, int size, int element, int op, int *code) {
    int64_t *counts = malloc((size_t)size * sizeof *counts);
    int error = counts ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    for (int r = 0; error == MPI_SUCCESS && r < size; r++) {
        counts[r] = call->is_wide ? (int64_t)((const MPI_Count *)call->send_counts)[r] : ((const int *)call->send_counts)[r];
        if (counts[r] < 0) error = MPI_ERR_COUNT;
    }
    if (error == MPI_SUCCESS) {
        const void *send = call->send == MPI_IN_PLACE ? HOPBINE_IN_PLACE : call->send;
        *code = hopbine_reduce_scatterv(send, call->recv, counts, element, op, comm);
    }
    free(counts);
    return error;
}
