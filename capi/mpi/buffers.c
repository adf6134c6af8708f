/* Functions common to all kinds of calls: packing and unpacking of MPI's buffers, and the dispatch to hopbine's
 * collectives. */
#include "job.h"

#include <limits.h>
#include <stdlib.h>

int buffers_overlap(const void *send, int64_t sent, const void *recv, int64_t received) {
    const uintptr_t from = (uintptr_t)send, to = (uintptr_t)recv;
    return sent > 0 && received > 0 && from < to + (uint64_t)received && to < from + (uint64_t)sent;
}

int n_blocks(const struct call *call) {
    int is_inter = 0, n = 0;
    PMPI_Comm_test_inter(call->comm, &is_inter);
    if (is_inter && call->collective != REDUCE_SCATTER) PMPI_Comm_remote_size(call->comm, &n);
    else PMPI_Comm_size(call->comm, &n);
    return n;
}

int is_call_root(const struct call *call) {
    const enum collective c = call->collective;
    int is_inter = 0, rank = 0;
    if (c != GATHER && c != GATHERV && c != SCATTER && c != SCATTERV) return 1;
    PMPI_Comm_test_inter(call->comm, &is_inter);
    if (is_inter) return call->root == MPI_ROOT;
    PMPI_Comm_rank(call->comm, &rank);
    return call->root == rank;
}

/* Packs or unpacks one element of more bytes than MPI_Pack can count, by a message from this rank to itself. The
 * message has a communicator of its own, since several threads may do this at once. */
static int copy_huge(char *packed, char *unpacked, MPI_Datatype type, MPI_Count each, int is_back) {
    const int piece = 1 << 30, lengths[2] = {(int)(each / piece), (int)(each % piece)};
    const MPI_Aint places[2] = {0, (MPI_Aint)(each - each % piece)};
    MPI_Datatype parts[2] = {MPI_DATATYPE_NULL, MPI_BYTE}, whole = MPI_DATATYPE_NULL;
    MPI_Comm self = MPI_COMM_NULL;
    int good = PMPI_Type_contiguous(piece, MPI_BYTE, &parts[0]) == MPI_SUCCESS &&
               PMPI_Type_create_struct(2, lengths, places, parts, &whole) == MPI_SUCCESS &&
               PMPI_Type_commit(&whole) == MPI_SUCCESS && PMPI_Comm_dup(self_comm, &self) == MPI_SUCCESS;
    if (good)
        good = (is_back ? PMPI_Sendrecv(packed, 1, whole, 0, 0, unpacked, 1, type, 0, 0, self, MPI_STATUS_IGNORE)
                        : PMPI_Sendrecv(unpacked, 1, type, 0, 0, packed, 1, whole, 0, 0, self, MPI_STATUS_IGNORE)) ==
               MPI_SUCCESS;
    if (self != MPI_COMM_NULL) PMPI_Comm_free(&self);
    if (whole != MPI_DATATYPE_NULL) PMPI_Type_free(&whole);
    if (parts[0] != MPI_DATATYPE_NULL) PMPI_Type_free(&parts[0]);
    return good;
}

/* Packs or unpacks in portions that an int of MPI's can count. */
static int copy_portions(char *packed, char *unpacked, MPI_Count count, MPI_Datatype type, MPI_Count each,
                         int is_back) {
    const MPI_Count most = each < (1 << 30) ? (1 << 30) / each : 1;
    MPI_Aint lower, extent;
    PMPI_Type_get_extent(type, &lower, &extent);
    for (MPI_Count done = 0; done < count; done += most) {
        char *const to = packed + done * each, *const from = unpacked + done * extent;
        if (each > INT_MAX) {
            if (!copy_huge(to, from, type, each, is_back)) return 0;
            continue;
        }
        const int n = (int)(count - done < most ? count - done : most), bytes = (int)(n * each);
        int at = 0;
        const int code = is_back ? PMPI_Unpack(to, bytes, &at, from, n, type, self_comm)
                                 : PMPI_Pack(from, n, type, to, bytes, &at, self_comm);
        if (code != MPI_SUCCESS || at != bytes) return 0;
    }
    return 1;
}

int pack_or_unpack(char *packed, char *unpacked, MPI_Count count, MPI_Datatype type, MPI_Count each, int is_back) {
    /* No elements may be anywhere, also at MPI_BOTTOM, which is null. */
    if (count == 0) return 1;
    if (unpacked != MPI_BOTTOM) return copy_portions(packed, unpacked, count, type, each, is_back);
    /* MPICH packs nothing from MPI_BOTTOM: so an equal type is made whose displacements count from its first byte of
     * data. */
    MPI_Aint first, length, back;
    MPI_Datatype based;
    PMPI_Type_get_true_extent(type, &first, &length);
    back = -first;
    if (first == 0 || PMPI_Type_create_hindexed_block(1, 1, &back, type, &based) != MPI_SUCCESS) return 0;
    PMPI_Type_commit(&based);
    const int good = copy_portions(packed, (char *)(uintptr_t)first, count, based, each, is_back);
    PMPI_Type_free(&based);
    return good;
}

int64_t *counts_of(const struct call *call, int size, int *error) {
    const void *const given = call->lists->send_counts;
    int64_t *counts = malloc((size_t)size * sizeof *counts);
    *error = !given ? MPI_ERR_ARG : counts ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    for (int r = 0; *error == MPI_SUCCESS && r < size; r++) {
        counts[r] = call->lists->is_wide ? (int64_t)((const MPI_Count *)given)[r] : ((const int *)given)[r];
        if (counts[r] < 0) *error = MPI_ERR_COUNT;
    }
    if (*error == MPI_SUCCESS) return counts;
    free(counts);
    return NULL;
}

int issue_call(const struct call *call, hopbine_comm_t comm, hopbine_request_t *request, const void *send, void *recv,
               int64_t count, int element, int op) {
    const enum form form = call->form;
    const int root = call->root;
    switch (call->collective) {
    case ALLREDUCE: return BY_FORM(form, allreduce, request, send, recv, count, element, op, comm);
    case REDUCE: return BY_FORM(form, reduce, request, send, recv, count, element, op, root, comm);
    case REDUCE_SCATTER_BLOCK: return BY_FORM(form, reduce_scatter_block, request, send, recv, count, element, op, comm);
    case SCAN: return BY_FORM(form, scan, request, send, recv, count, element, op, comm);
    case EXSCAN: return BY_FORM(form, exscan, request, send, recv, count, element, op, comm);
    case BCAST: return BY_FORM(form, bcast, request, recv, count, element, root, comm);
    case ALLGATHER: return BY_FORM(form, allgather, request, send, recv, count, element, comm);
    case GATHER: return BY_FORM(form, gather, request, send, recv, count, element, root, comm);
    case SCATTER: return BY_FORM(form, scatter, request, send, recv, count, element, root, comm);
    case ALLTOALL: return BY_FORM(form, alltoall, request, send, recv, count, element, comm);
    default: return BY_FORM(form, barrier, request, comm);
    }
}

int perform(const struct call *call, const struct state *state, struct job *job, const void *send, void *recv,
            int64_t count, int element, int op) {
    job->count = count, job->element = element, job->op = op;
    return issue_call(call, state->comm, &job->request, send, recv, count, element, op);
}
