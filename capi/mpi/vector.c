/* The vector forms: blocks of any size, at any offset, of any type. */
#include "job.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Whether the address ranges of the two sides, each from the first to the last byte of its blocks, overlap. */
static int ranges_overlap(const struct side *one, const struct side *other) {
    const struct side *const both[2] = {one, other};
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
    return buffers_overlap(one->buffer + from[0], to[0] - from[0], other->buffer + from[1], to[1] - from[1]);
}

/* Whether MPI would refuse a call for equal send and receive addresses; then MPI gets the call. */
static int is_refused(const struct call *call, const struct side *send, const struct side *recv, int rank) {
    if (!refuses_aliases || call->send_type != call->recv_type) return 0;
    if (call->collective == ALLTOALLV)
        return send->buffer == recv->buffer && call->lists->send_counts == call->lists->recv_counts;
    const int mine = call->collective == SCATTERV ? 0 : rank, given = call->collective == SCATTERV ? rank : 0;
    return send->bytes[given] > 0 && recv->bytes[mine] > 0 &&
           send->buffer + send->starts[given] == recv->buffer + recv->starts[mine];
}

int serve_vector(struct call *call, const struct state *state, struct job *job, int *code, int *wrong) {
    const enum collective c = call->collective;
    const struct lists *const lists = call->lists;
    const hopbine_comm_t comm = state->comm;
    const enum form form = call->form;
    const int rank = state->rank, size = state->size;
    const int is_root = rank == call->root, at_root = c == GATHERV || c == SCATTERV;
    if (at_root && (call->root < 0 || call->root >= size)) return *wrong = MPI_ERR_ROOT, 1;
    const int in_place = call->send == MPI_IN_PLACE || call->recv == MPI_IN_PLACE;
    /* Each side has lists, is one block, or is absent. */
    struct side *const send = &job->send, *const recv = &job->recv;
    const int sends = !(c == SCATTERV && !is_root) && call->send != MPI_IN_PLACE;
    const int receives = !(c == GATHERV && !is_root) && call->recv != MPI_IN_PLACE;
    const int sends_lists = c == SCATTERV || c == ALLTOALLV, receives_lists = c != SCATTERV;
    int error = MPI_SUCCESS;
    if (sends)
        error = sends_lists ? open_blocks(send, size, call->send, lists->send_counts, lists->send_displs, lists->is_wide,
                                          call->send_type, 0)
                            : open_block(send, call->send, call->send_count, call->send_type);
    if (receives && error == MPI_SUCCESS)
        error = receives_lists ? open_blocks(recv, size, call->recv, lists->recv_counts, lists->recv_displs, lists->is_wide,
                                             call->recv_type, 1)
                               : open_block(recv, call->recv, call->recv_count, call->recv_type);
    if (error == MPI_SUCCESS && sends && receives && !send->copy && !recv->copy && ranges_overlap(send, recv)) {
        if (is_refused(call, send, recv, rank)) return call->reason = "argument", 0;
        error = allocate_copy(send);
    }
    if (error != MPI_SUCCESS) return *wrong = error, 1;
    /* In place, the input is in the receive buffer: this rank's block, or all of an alltoall. */
    if (receives && in_place) job->input = c == ALLTOALLV ? ALL_INPUT : receives_lists ? rank : NO_INPUT;
    *code = begin_call(call, job);
    if (*code != HOPBINE_SUCCESS) return 1;
    const void *from = call->send == MPI_IN_PLACE ? HOPBINE_IN_PLACE : data_of(send);
    void *to = call->recv == MPI_IN_PLACE ? HOPBINE_IN_PLACE : data_of(recv);
    /* What this rank sends to itself, and receives from itself. If the lengths differ, the other ranks still need its
     * block: it is cut, or padded with zeros, to the length in the lists. */
    int64_t *const given = sends ? send->bytes + (sends_lists ? rank : 0) : NULL;
    int64_t *const taken = receives ? recv->bytes + (receives_lists ? rank : 0) : NULL;
    if (given && taken && *given != *taken) {
        const int64_t least = *given < *taken ? *given : *taken;
        job->scratch = calloc(1, (size_t)(*given + *taken));
        if (!job->scratch) return call->reason = "argument", 0;
        if (c == ALLTOALLV) *given = *taken = least;
        else if (c == SCATTERV) to = job->scratch;
        else {
            if (least > 0) memcpy(job->scratch, from, (size_t)least);
            from = job->scratch;
        }
    }
    hopbine_request_t *const request = &job->request;
    const int bytes = HOPBINE_UINT8, root = call->root;
    switch (c) {
    case ALLGATHERV: {
        const int64_t mine = receives ? recv->bytes[rank] : send->bytes[0];
        *code = BY_FORM(form, allgatherv, request, from, mine, to, recv->bytes, recv->starts, bytes, comm);
        break;
    }
    case GATHERV: {
        const int64_t mine = receives ? recv->bytes[rank] : send->bytes[0];
        *code = BY_FORM(form, gatherv, request, from, mine, to, recv->bytes, recv->starts, bytes, root, comm);
        break;
    }
    case SCATTERV: {
        const int64_t mine = sends ? send->bytes[rank] : recv->bytes[0];
        *code = BY_FORM(form, scatterv, request, from, send->bytes, send->starts, to, mine, bytes, root, comm);
        break;
    }
    default:
        *code = BY_FORM(form, alltoallv, request, from, send->bytes, send->starts, to, recv->bytes, recv->starts, bytes, comm);
    }
    return 1;
}
