/* Reductions by hopbine's kernels. */
#include "job.h"

#include <stdlib.h>

int serve_reduction(struct call *call, const struct state *state, struct job *job, int *code, int *error) {
    int op, element;
    const enum collective c = call->collective;
    const int is_root = c != REDUCE || state->rank == call->root;
    const enum kernel kernel = kernel_of(call->op, call->recv_type, &op, &element);
    struct type type;
    if (kernel == BY_MPI) return call->reason = "type or operator", 0;
    if (kernel == BY_REDUCE_LOCAL && call->form != BLOCKING) return call->reason = "type or operator, in a request", 0;
    if (!query_type(call->recv_type, &type)) return call->reason = "argument", 0;
    int64_t *counts = NULL, sent = call->recv_count, received = call->recv_count;
    if (c == REDUCE_SCATTER) {
        counts = counts_of(call, state->size, error);
        if (!counts) return 1;
        sent = 0, received = counts[state->rank];
        for (int r = 0; r < state->size; r++) sent += counts[r];
    } else if (c == REDUCE_SCATTER_BLOCK) {
        sent *= state->size;
    }
    const int in_place = call->send == MPI_IN_PLACE;
    /* Rank 0 of an exscan has no result: its receive buffer matters only in place. */
    const int uses_recv = is_root && received > 0 && (c != EXSCAN || state->rank > 0 || in_place);
    int served = 0;
    if (sent <= 0) {
        call->reason = "no data";
    } else if ((in_place && !is_root) ||
               (kernel == BY_HOPBINE && (!call->send || (uses_recv && !call->recv)))) {
        call->reason = "argument";
    } else if (refuses_aliases && is_root && call->send == call->recv) {
        call->reason = "argument";
    } else if (kernel == BY_REDUCE_LOCAL) {
        served = serve_pairs(call, state, code, error) || serve_ordered(call, state, code, error);
    } else {
        served = 1;
        /* If the send buffer overlaps the result, hopbine gets a copy of it. */
        if (!in_place && uses_recv && buffers_overlap(call->send, sent * type.bytes, call->recv, received * type.bytes)) {
            *error = open_block(&job->send, call->send, sent, call->recv_type);
            if (*error == MPI_SUCCESS) *error = allocate_copy(&job->send);
            if (*error == MPI_SUCCESS) *code = begin_call(call, job);
        }
        const void *send = in_place ? HOPBINE_IN_PLACE : job->send.n ? data_of(&job->send) : call->send;
        if (*error != MPI_SUCCESS || *code != HOPBINE_SUCCESS) ;
        else if (counts)
            *code = BY_FORM(call->form, reduce_scatter, &job->request, send, call->recv, counts, element, op, state->comm);
        else *code = perform(call, state, job, send, call->recv, call->recv_count, element, op);
    }
    if (counts) free(counts);
    return served;
}
