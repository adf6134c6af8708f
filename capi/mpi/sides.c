/* The blocks of one side of a call, of any size, at any offset, of any type, as sequences of bytes.
 *
 * Ranks may describe the same data by different types, so blocks are sent as bytes. Data that do not lie in memory as
 * they are sent are packed into a buffer. */
#include "job.h"

#include <stdlib.h>

static int by_start(const void *a, const void *b) {
    const int64_t *const one = a, *const other = b;
    return *one < *other ? -1 : *one > *other;
}

/* Whether two blocks share bytes. MPI forbids this for receive buffers, but MPI libraries accept it. */
static int share_bytes(const struct side *side) {
    int64_t end = 0;
    int r = 0;
    for (; r < side->n; r++) {
        if (side->bytes[r] == 0) continue;
        if (side->starts[r] < end) break;
        end = side->starts[r] + side->bytes[r];
    }
    if (r == side->n) return 0;
    /* The blocks may be in another order than that of ranks: they are sorted. */
    int64_t(*const list)[2] = calloc((unsigned)side->n, sizeof *list);
    int n = 0, shared = !list;
    for (r = 0; list && r < side->n; r++)
        if (side->bytes[r] > 0) list[n][0] = side->starts[r], list[n++][1] = side->starts[r] + side->bytes[r];
    if (list) qsort(list, (size_t)n, sizeof *list, by_start);
    for (r = 1; !shared && r < n; r++) shared = list[r][0] < list[r - 1][1];
    free(list);
    return shared;
}

/* Common part of open_block() and open_blocks(); sets `packs` if the type has holes. */
static int open_type(struct side *side, const void *buffer, MPI_Datatype datatype, int *packs) {
    struct type type;
    MPI_Aint lower;
    if (!query_type(datatype, &type)) return MPI_ERR_TYPE;
    side->buffer = (char *)buffer;
    side->type = datatype;
    side->each = type.bytes;
    side->extent = type.bytes;
    *packs = !type.contiguous;
    if (*packs) PMPI_Type_get_extent(datatype, &lower, &side->extent);
    return MPI_SUCCESS;
}

int open_block(struct side *side, const void *buffer, MPI_Count count, MPI_Datatype type) {
    int packs = 0;
    if (count < 0) return MPI_ERR_COUNT;
    const int error = open_type(side, buffer, type, &packs);
    if (error != MPI_SUCCESS) return error;
    side->n = 1;
    side->bytes = side->inline_lists, side->starts = side->inline_lists + 1, side->places = side->inline_lists + 2;
    side->bytes[0] = count * side->each;
    side->starts[0] = side->places[0] = 0;
    return packs ? allocate_copy(side) : MPI_SUCCESS;
}

int open_blocks(struct side *side, int n, const void *buffer, const void *counts, const void *displs, int is_wide,
                MPI_Datatype type, int is_received) {
    int packs = 0;
    if (!counts || !displs) return MPI_ERR_ARG;
    const int error = open_type(side, buffer, type, &packs);
    if (error != MPI_SUCCESS) return error;
    side->bytes = malloc(3 * (size_t)n * sizeof *side->bytes);
    if (!side->bytes) return MPI_ERR_NO_MEM;
    side->n = n;
    side->starts = side->bytes + n, side->places = side->starts + n;
    for (int r = 0; r < n; r++) {
        const MPI_Count count = is_wide ? ((const MPI_Count *)counts)[r] : ((const int *)counts)[r];
        const MPI_Aint displ = is_wide ? ((const MPI_Aint *)displs)[r] : ((const int *)displs)[r];
        if (count < 0) return MPI_ERR_COUNT;
        side->bytes[r] = count * side->each;
        side->starts[r] = side->places[r] = side->bytes[r] > 0 ? displ * side->extent : 0;
        packs |= side->starts[r] < 0;
    }
    return packs || (is_received && share_bytes(side)) ? allocate_copy(side) : MPI_SUCCESS;
}

int allocate_copy(struct side *side) {
    int64_t all = 0;
    for (int r = 0; r < side->n; r++) {
        side->starts[r] = all;
        all += side->bytes[r];
    }
    side->copy = malloc(all > 0 ? (size_t)all : 1);
    return side->copy ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

void *data_of(const struct side *side) { return side->copy ? side->copy : side->buffer; }

/* Packs or unpacks one block, if the side has a copy. */
static int move(const struct side *side, int r, int is_back) {
    if (!side->copy || side->bytes[r] == 0) return 1;
    return pack_or_unpack(side->copy + side->starts[r], side->buffer + side->places[r], side->bytes[r] / side->each,
                          side->type, side->each, is_back);
}

static int move_all(const struct side *side, int is_back) {
    for (int r = 0; side->copy && r < side->n; r++)
        if (!move(side, r, is_back)) return 0;
    return 1;
}

int begin_job(struct job *job) {
    int good = move_all(&job->send, 0);
    if (good && job->input == ALL_INPUT) good = move_all(&job->recv, 0);
    else if (good && job->input != NO_INPUT) good = move(&job->recv, job->input, 0);
    return good ? HOPBINE_SUCCESS : -HOPBINE_ERR_INTERNAL;
}

int begin_call(const struct call *call, struct job *job) {
    return call->form == PERSISTENT ? HOPBINE_SUCCESS : begin_job(job);
}

int end_job(struct job *job) {
    if (job->scratch) return -HOPBINE_ERR_MISMATCH;
    return job->is_read_only || move_all(&job->recv, 1) ? HOPBINE_SUCCESS : -HOPBINE_ERR_INTERNAL;
}

int duplicate_types(struct job *job) {
    struct side *const sides[2] = {&job->send, &job->recv};
    for (int side = 0; side < 2; side++) {
        if (!sides[side]->copy) continue;
        /* Not MPI_Type_dup: that would copy the attributes of the caller's type, by callbacks of the caller's. */
        if (PMPI_Type_contiguous(1, sides[side]->type, &sides[side]->type) != MPI_SUCCESS) return 0;
        sides[side]->owns_type = 1;
        if (PMPI_Type_commit(&sides[side]->type) != MPI_SUCCESS) return 0;
    }
    return 1;
}

static void close_side(struct side *side) {
    if (side->owns_type) PMPI_Type_free(&side->type);
    if (side->copy) free(side->copy);
    if (side->bytes != side->inline_lists) free(side->bytes);
}

void close_job(struct job *job) {
    close_side(&job->send);
    close_side(&job->recv);
    free(job->scratch);
}
