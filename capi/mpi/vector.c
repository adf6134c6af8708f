/* The vector forms: blocks of any size, at any place, of any type.
 *
 * As everywhere, ranks may describe the same data by different types, so blocks go as bytes, and
 * what does not lie in memory as it is sent is packed into a row of its own. */
#include "doors.h"

#include <stdint.h>
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

/* Has the blocks copied to a row, one after the other. */
static int pack(struct rows *rows) {
    int64_t all = 0;
    for (int r = 0; r < rows->n; r++) {
        rows->starts[r] = all;
        all += rows->bytes[r];
    }
    rows->copy = malloc(all > 0 ? (size_t)all : 1);
    return rows->copy ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int by_start(const void *a, const void *b) {
    const int64_t *const one = a, *const other = b;
    return *one < *other ? -1 : *one > *other;
}

/* Whether two of the blocks share bytes: forbidden to receive into, but MPIs let it pass. */
static int share_bytes(const struct rows *rows) {
    int64_t end = 0;
    int r = 0;
    for (; r < rows->n; r++) {
        if (rows->bytes[r] == 0) continue;
        if (rows->starts[r] < end) break;
        end = rows->starts[r] + rows->bytes[r];
    }
    if (r == rows->n) return 0;
    /* Not in the order of ranks. */
    int64_t(*const list)[2] = calloc((unsigned)rows->n, sizeof *list);
    int n = 0, shared = !list;
    for (r = 0; list && r < rows->n; r++)
        if (rows->bytes[r] > 0) list[n][0] = rows->starts[r], list[n++][1] = rows->starts[r] + rows->bytes[r];
    if (list) qsort(list, (size_t)n, sizeof *list, by_start);
    for (r = 1; !shared && r < n; r++) shared = list[r][0] < list[r - 1][1];
    free(list);
    return shared;
}

/* Reads the lists; returns what is wrong with them, or MPI_SUCCESS. */
static int open_rows(struct rows *rows, int n, int is_received) {
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
    for (int r = 0; r < n; r++) {
        if (count_at(rows, r) < 0) return MPI_ERR_COUNT;
        packs |= count_at(rows, r) > 0 && displ_at(rows, r) < 0;
        rows->bytes[r] = count_at(rows, r) * rows->each;
        rows->starts[r] = rows->bytes[r] > 0 ? displ_at(rows, r) * rows->extent : 0;
    }
    return packs || (is_received && share_bytes(rows)) ? pack(rows) : MPI_SUCCESS;
}

/* Whether the memory between the first and the last byte of one side has some of the other's. */
static int reach_into(const struct rows *one, const struct rows *other) {
    const struct rows *const both[2] = {one, other};
    int64_t from[2] = {INT64_MAX, INT64_MAX}, to[2] = {0, 0};
    for (int side = 0; side < 2; side++) {
        for (int r = 0; r < both[side]->n; r++) {
            if (both[side]->bytes[r] == 0) continue;
            const int64_t start = both[side]->starts[r], end = start + both[side]->bytes[r];
            from[side] = start < from[side] ? start : from[side];
            to[side] = end > to[side] ? end : to[side];
        }
        if (to[side] == 0) return 0;
    }
    return do_overlap(one->buffer + from[0], to[0] - from[0], other->buffer + from[1], to[1] - from[1]);
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

/* Whether MPI itself is to refuse that a rank receives where it sends from. */
static int is_refused(const struct call *call, const struct rows *send, const struct rows *recv, int rank) {
    if (!REFUSES_ALIASES || call->send_type != call->recv_type) return 0;
    if (call->collective == ALLTOALLV) return send->buffer == recv->buffer && send->counts == recv->counts;
    const int mine = call->collective == SCATTERV ? 0 : rank, given = call->collective == SCATTERV ? rank : 0;
    return send->bytes[given] > 0 && recv->bytes[mine] > 0 &&
           send->buffer + send->starts[given] == recv->buffer + recv->starts[mine];
}

int serve_vector(struct call *call, const struct state *state, int *code, int *wrong) {
    const enum collective c = call->collective;
    const hopbine_comm_t comm = state->comm;
    const int rank = state->rank, size = state->size;
    const int is_root = rank == call->root, at_root = c == GATHERV || c == SCATTERV;
    if (at_root && (call->root < 0 || call->root >= size)) return *wrong = MPI_ERR_ROOT, 1;
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
        error = open_rows(&send, call->send_counts ? size : 1, 0);
    }
    if (receives && error == MPI_SUCCESS) {
        recv = call->recv_counts ? (struct rows){.buffer = call->recv, .type = call->recv_type,
                                                 .counts = call->recv_counts, .displs = call->recv_displs,
                                                 .is_wide = call->is_wide}
                                 : only_row(&other, call->recv, call->recv_count, call->recv_type);
        error = open_rows(&recv, call->recv_counts ? size : 1, 1);
    }
    if (error == MPI_SUCCESS && sends && receives && !send.copy && !recv.copy && reach_into(&send, &recv)) {
        if (is_refused(call, &send, &recv, rank)) {
            call->reason = "argument";
            error = MPI_ERR_BUFFER;
        } else {
            error = pack(&send);
        }
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
    *wrong = call->reason ? MPI_SUCCESS : error;
    return !call->reason;
}
