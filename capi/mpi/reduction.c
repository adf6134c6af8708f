/* Reductions by hopbine's kernels. */
#include "doors.h"

#include <stdlib.h>
#include <string.h>

int serve_reduction(struct call *call, const struct state *state, int *code, int *error) {
    int op, element;
    const enum collective c = call->collective;
    const int is_root = c != REDUCE || state->rank == call->root;
    const enum kernel kernel = kernel_of(call->op, call->recv_type, &op, &element);
    struct type type;
    if (kernel == NOBODY) return call->reason = "type or operator", 0;
    if (!look_at_type(call->recv_type, &type)) return call->reason = "argument", 0;
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
    void *apart = NULL;
    int served = 0;
    if (sent <= 0) {
        call->reason = "no data";
    } else if ((in_place && !is_root) || !call->send || (is_root && received > 0 && !call->recv)) {
        call->reason = "argument";
    } else if (REFUSES_ALIASES && is_root && call->send == call->recv) {
        call->reason = "argument";
    } else if (kernel == IN_ORDER) {
        served = serve_ordered(call, state, code, error);
    } else {
        const void *send = in_place ? HOPBINE_IN_PLACE : call->send;
        sent *= type.bytes, received *= type.bytes;
        if (!in_place && is_root && do_overlap(send, sent, call->recv, received)) {
            send = apart = malloc((size_t)sent);
            if (apart) memcpy(apart, call->send, (size_t)sent);
            else *error = MPI_ERR_NO_MEM;
        }
        if (*error != MPI_SUCCESS) ;
        else if (counts) *code = hopbine_reduce_scatterv(send, call->recv, counts, element, op, state->comm);
        else *code = perform(call, state, send, call->recv, call->recv_count, element, op);
        served = 1;
    }
    free(apart);
    free(counts);
    return served;
}
