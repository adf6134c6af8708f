/* Whether hopbine serves a call of MPI's, and how.
 *
 * All ranks of a call must decide alike, so a decision depends only on what they share: the
 * communicator's members, the collective, the operator, and the amount of data, which MPI demands
 * to be the same in bytes even where the ranks describe it by different types. What only one rank
 * could object to, a negative count for instance, goes to MPI on that rank, which then raises the
 * error that it would have raised anyway. */
#include "doors.h"

#include <stdio.h>

/* What MPI's error classes say of a failure of hopbine's. */
static int failed(int code, MPI_Comm comm) {
    int error = code == HOPBINE_ERR_MISMATCH ? MPI_ERR_TRUNCATE
                : code == HOPBINE_ERR_BUFFER ? MPI_ERR_BUFFER
                                             : MPI_ERR_OTHER;
    fprintf(stderr, "hopbine: %s: %s\n", hopbine_error_name(code), hopbine_last_error());
    PMPI_Comm_call_errhandler(comm, error);
    return error;
}

static int is_reduction(enum collective c) { return c <= REDUCE_SCATTER_BLOCK || c >= REDUCE_SCATTER; }

/* What is wrong with a call that every rank could see in its own arguments; MPI libraries may be
 * built without such checks. MPI_SUCCESS if nothing is. */
static int error_of(const struct call *call, const struct state *state) {
    const enum collective c = call->collective;
    const int is_root = state->rank == call->root;
    if (c == ALLGATHERV || c == GATHERV || c == SCATTERV || c == ALLTOALLV) return MPI_SUCCESS;
    if ((c == REDUCE || c == BCAST || c == GATHER || c == SCATTER) &&
        (call->root < 0 || call->root >= state->size))
        return MPI_ERR_ROOT;
    if (is_reduction(c) && call->op == MPI_OP_NULL) return MPI_ERR_OP;
    const int sends = !is_reduction(c) && c != BCAST && call->send != MPI_IN_PLACE && (c != SCATTER || is_root);
    const int receives = call->recv != MPI_IN_PLACE && (c != GATHER || is_root);
    if ((sends && call->send_count < 0) || (receives && call->recv_count < 0)) return MPI_ERR_COUNT;
    if ((sends && call->send_type == MPI_DATATYPE_NULL) || (receives && call->recv_type == MPI_DATATYPE_NULL))
        return MPI_ERR_TYPE;
    return MPI_SUCCESS;
}

int serve(struct call *call, int *code) {
    if (within || status == NEVER_TRIED) {
        call->reason = NULL;
        return 0;
    }
    call->began = wants_report ? PMPI_Wtime() : 0;
    if (status == CANNOT) return call->reason = "hopbine could not be started", 0;
    if (call->form != BLOCKING) return call->reason = "its request is MPI's", 0;
    if (call->collective >= N_SERVED) return call->reason = "collective", 0;
    if (!is_wanted(call->collective)) return call->reason = "HOPBINE_ONLY or HOPBINE_EXCEPT", 0;
    within++;
    int served = 0, error = MPI_SUCCESS;
    const struct state *state = state_of(call->comm);
    if (!state) {
        call->reason = "argument";
    } else if (state->reason) {
        call->reason = state->reason;
    } else if (call->collective != BARRIER && (error = error_of(call, state)) != MPI_SUCCESS) {
        served = 1;
    } else if (call->collective == BARRIER) {
        *code = hopbine_barrier(state->comm);
        served = 1;
    } else if (is_reduction(call->collective)) {
        served = serve_reduction(call, state, code, &error);
    } else if (call->collective > BARRIER) {
        served = serve_vector(call, state, code, &error);
    } else {
        served = serve_movement(call, state, code);
    }
    within--;
    if (error != MPI_SUCCESS) PMPI_Comm_call_errhandler(call->comm, *code = error);
    else if (served) *code = *code == HOPBINE_SUCCESS ? MPI_SUCCESS : failed(*code, call->comm);
    return served;
}

int passed(const struct call *call, int code) {
    if (!wants_report || !call->reason) return code;
    MPI_Count bytes = 0;
    int size = 0;
    const MPI_Datatype type = call->send_count ? call->send_type : call->recv_type;
    const MPI_Count count = call->send_count ? call->send_count : call->recv_count;
    if (code == MPI_SUCCESS && count > 0 && type != MPI_DATATYPE_NULL && PMPI_Type_size(type, &size) == MPI_SUCCESS)
        bytes = count * size;
    char by[96];
    snprintf(by, sizeof by, "MPI: %s", call->reason);
    hopbine_report_add(call_name(call->collective, call->form), (uint64_t)bytes, by,
                       PMPI_Wtime() - call->began);
    return code;
}
