/* Decides whether hopbine serves an MPI call, and dispatches it.
 *
 * All ranks of a call must decide alike. So the decision depends only on what they share: the communicator's members,
 * the collective, the operator, and the amount of data, which MPI demands to be the same in bytes even if ranks
 * describe it by different types. A call with an error that only one rank can see, a negative count for instance,
 * goes to MPI on that rank, and MPI raises the error. */
#include "interposed.h"
#include "job.h"

#include <stdio.h>

/* The name in Open MPI 5; MPICH's begins with MPIX. */
#if defined MPI_ERR_PROC_FAILED && !defined MPIX_ERR_PROC_FAILED
#define MPIX_ERR_PROC_FAILED MPI_ERR_PROC_FAILED
#endif

/* The class of a lost rank: ULFM's, if this MPI has that. */
static int class_of_lost(void) {
#ifdef MPIX_ERR_PROC_FAILED
    if (find_mpi_function("PMPIX_Comm_revoke")) return MPIX_ERR_PROC_FAILED;
#endif
    return MPI_ERR_OTHER;
}

int print_failure(int code, const char *message, int is_said_elsewhere) {
    if (code < 0) {
        code = -code, is_said_elsewhere = 0;
        message = code == HOPBINE_ERR_MISMATCH ? "this rank gives itself another length than it takes"
                                               : "MPI has not packed or unpacked the data";
    }
    if (!is_said_elsewhere) fprintf(stderr, "hopbine: %s: %s\n", hopbine_error_name(code), message);
    return code == HOPBINE_ERR_MISMATCH ? MPI_ERR_TRUNCATE
           : code == HOPBINE_ERR_BUFFER ? MPI_ERR_BUFFER
           : code == HOPBINE_ERR_LOST ? class_of_lost()
                                        : MPI_ERR_OTHER;
}

static int failed(int code, MPI_Comm comm) {
    const int error = print_failure(code, hopbine_last_error(), hopbine_last_error_is_said_elsewhere());
    PMPI_Comm_call_errhandler(comm, error);
    return error;
}

/* An error that every rank can see in its own arguments, or MPI_SUCCESS. MPI libraries may be built without such
 * checks. */
static int error_of(const struct call *call, const struct state *state) {
    const enum collective c = call->collective;
    const int is_root = state->rank == call->root;
    const int scatters = c == SCATTER || c == SCATTERV, gathers = c == REDUCE || c == GATHER || c == GATHERV;
    /* MPI_IN_PLACE is allowed as the receive buffer of a scatter's root, and as the send buffer of other calls, in a
     * gather or reduce only on the root. Arguments that are not significant on a rank are ignored. */
    if (call->recv == MPI_IN_PLACE && (scatters ? !is_root : is_root || !gathers)) return MPI_ERR_BUFFER;
    if (call->send == MPI_IN_PLACE && (gathers ? !is_root : scatters && is_root)) return MPI_ERR_BUFFER;
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

int serve_job(struct call *call, const struct state *state, struct job *job, int *code, int *error) {
    if (call->collective == BARRIER) {
        *code = perform(call, state, job, NULL, NULL, 0, 0, -1);
        return 1;
    }
    *error = error_of(call, state);
    if (*error != MPI_SUCCESS) return 1;
    if (is_reduction(call->collective)) return serve_reduction(call, state, job, code, error);
    if (call->collective > BARRIER) return serve_vector(call, state, job, code, error);
    return serve_movement(call, state, job, code, error);
}

static int serve_blocking(struct call *call, struct state *state, int *code, int *error) {
    if (serve_cached(call, state, NULL, code)) return 1;
    struct job job;
    clear_job(&job);
    const int served = serve_job(call, state, &job, code, error);
    const int is_good = served && *error == MPI_SUCCESS && *code == HOPBINE_SUCCESS;
    if (is_good) cache_call(call, state, &job);
    if (job.send.n || job.recv.n || job.scratch) {
        if (is_good) *code = end_job(&job);
        close_job(&job);
    }
    return served;
}

/* Why a call of this collective and form is served on no rank, or null. */
static const char *reason_against(const struct call *call) {
    if (status == CANNOT) return "hopbine could not be started";
    if (call->collective >= N_SERVED) return "collective";
    if (!is_wanted(call->collective)) return "HOPBINE_ONLY or HOPBINE_EXCEPT";
    if (call->form == BLOCKING) return NULL;
    return are_requests_wanted() ? no_requests : "HOPBINE_EXCEPT";
}

PER_THREAD struct unserved_comm last_unserved_comm;
int retests_left;
unsigned char unserved_forms[N_COLLECTIVES];

/* Notes that hopbine serves nothing on the call's communicator. With a report wanted, its calls still have to be
 * counted. */
static void mark_unserved(struct call *call, const struct state *state) {
    call->reason = state->reason;
    if (!wants_report)
        last_unserved_comm = (struct unserved_comm){call->comm, __atomic_load_n(&generation, __ATOMIC_ACQUIRE) + 1};
}

int serve(struct call *call, int *code) {
    if (in_hopbine || __atomic_load_n(&status, __ATOMIC_ACQUIRE) == NEVER_TRIED) {
        call->reason = NULL;
        return 0;
    }
    call->began = wants_report ? PMPI_Wtime() : 0;
    call->reason = reason_against(call);
    if (call->reason) {
        if (!wants_report) __atomic_fetch_or(&unserved_forms[call->collective], 1 << call->form, __ATOMIC_RELAXED);
        return 0;
    }
    int served = 0, error = MPI_SUCCESS;
    *code = HOPBINE_SUCCESS;
    /* A non-blocking call may not wait for the other ranks. */
    const int is_local = call->form == NONBLOCKING;
    struct state *state = state_of(call->comm, !is_local, &error);
    if (error != MPI_SUCCESS) return *code = error, 1;
    in_hopbine++;
    if (!state) call->reason = is_local ? "the first call on its communicator" : "argument";
    else if (state->reason) mark_unserved(call, state);
    else if (call->form == BLOCKING) served = serve_blocking(call, state, code, &error);
    else served = library.serve_request(call, state, code, &error);
    in_hopbine--;
    note_call();
    if (error != MPI_SUCCESS) PMPI_Comm_call_errhandler(call->comm, *code = error);
    else if (served) *code = *code == HOPBINE_SUCCESS ? MPI_SUCCESS : failed(*code, call->comm);
    return served;
}

/* Bytes of the largest block of one side, or of the vector of a call without blocks. */
static MPI_Count bytes_of(const struct call *call, MPI_Datatype type, MPI_Count count, const void *counts) {
    const int n = counts ? n_blocks(call) : 0;
    MPI_Count most = counts ? 0 : count, size = 0;
    for (int r = 0; r < n; r++) {
        count = call->lists->is_wide ? ((const MPI_Count *)counts)[r] : ((const int *)counts)[r];
        most = count > most ? count : most;
    }
    if (most <= 0 || type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) != MPI_SUCCESS) return 0;
    return most * size;
}

/* The largest block that this rank sends or receives, as the report has it for calls that hopbine serves. With a root
 * of MPI_PROC_NULL no argument is significant, and between groups only one side of a root's. */
static MPI_Count reported_bytes(const struct call *call) {
    const enum collective c = call->collective;
    const struct lists none = {0}, *const lists = call->lists ? call->lists : &none;
    if (call->root == MPI_PROC_NULL || c == ALLTOALLW) return 0;
    if (is_reduction(c)) return bytes_of(call, call->recv_type, call->recv_count, lists->send_counts);
    const int is_root = is_call_root(call);
    const int scatters = c == SCATTER || c == SCATTERV, gathers = c == GATHER || c == GATHERV;
    const int sends = scatters ? is_root : gathers ? !is_root : call->send != MPI_IN_PLACE;
    const int receives = scatters ? !is_root : !gathers || is_root;
    const MPI_Count sent = sends ? bytes_of(call, call->send_type, call->send_count, lists->send_counts) : 0;
    const MPI_Count received = receives ? bytes_of(call, call->recv_type, call->recv_count, lists->recv_counts) : 0;
    return sent > received ? sent : received;
}

int passed(const struct call *call, int code) {
    if (!wants_report || !call->reason || code != MPI_SUCCESS) return code;
    char by[96];
    snprintf(by, sizeof by, "MPI: %s", call->reason);
    hopbine_report_add(call_name(call->collective, call->form), (uint64_t)reported_bytes(call), by,
                       PMPI_Wtime() - call->began);
    return code;
}
