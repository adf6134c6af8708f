/* Calls of MPI 4 over an MPI that lacks them. A large-count call that hopbine does not serve is made again with int
 * counts, if they fit. A persistent call fails. */
#include "common.h"

#include "forms.h"
#include <hopbine_mpi.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fits(MPI_Count count) { return INT_MIN <= count && count <= INT_MAX; }

/* MPI_ERR_COUNT if a count that this rank has to give does not fit an int, else MPI_SUCCESS. */
static int error_of(const struct call *call, int is_root) {
    const enum collective c = call->collective;
    const int sends = call->send != MPI_IN_PLACE && (c != SCATTER || is_root);
    const int receives = call->recv != MPI_IN_PLACE && (c != GATHER || is_root);
    return (!sends || fits(call->send_count)) && (!receives || fits(call->recv_count)) ? MPI_SUCCESS : MPI_ERR_COUNT;
}

/* Send counts, send displacements, receive counts, receive displacements. */
enum { N_LISTS = 4 };

/* Copies the lists of n blocks that are read to `ints`; returns an MPI error or MPI_SUCCESS. */
static int narrow(const struct lists *lists, int n, const int is_read[N_LISTS], int *ints) {
    const MPI_Count *const counts[] = {lists->send_counts, lists->recv_counts};
    const MPI_Aint *const displs[] = {lists->send_displs, lists->recv_displs};
    for (int l = 0; l < N_LISTS; l++)
        for (int at = 0; is_read[l] && at < n; at++) {
            const MPI_Count value = l % 2 ? displs[l / 2][at] : counts[l / 2][at];
            if (!fits(value)) return MPI_ERR_COUNT;
            ints[(size_t)l * n + at] = (int)value;
        }
    return MPI_SUCCESS;
}

/* Makes a call again with lists of int, in the order of narrow(); a kept that the call does not have is null. */
static int call_with_int_counts(const struct call *call, const int *const ints[N_LISTS], MPI_Info info) {
    /* The parameters that signatures.h uses. */
    const enum collective c = call->collective;
    const int has_one_type = is_reduction(c) || c == BCAST;
    const void *const send = call->send;
    void *const recv = call->recv, *const buffer = recv;
    const int n = (int)(has_one_type ? call->recv_count : call->send_count), m = (int)call->recv_count;
    const MPI_Datatype type = has_one_type ? call->recv_type : call->send_type, to = call->recv_type;
    const int sends_lists = call->lists && call->lists->send_counts;
    const int *const counts = ints[sends_lists ? 0 : 2], *const displs = ints[sends_lists ? 1 : 3];
    const int *const to_counts = ints[2], *const to_displs = ints[3];
    const MPI_Datatype *const types = call->lists ? call->lists->send_types : NULL;
    const MPI_Datatype *const to_types = call->lists ? call->lists->recv_types : NULL;
    const MPI_Op op = call->op;
    const int root = call->root;
    const MPI_Comm comm = call->comm;
#define MAKE(Name, name, COLLECTIVE, P, A, M)                                                      \
    case COLLECTIVE:                                                                               \
        return call->form == BLOCKING      ? HB_##Name A                                           \
               : call->form == NONBLOCKING ? HB_I##name(UNPAREN A, call->request)                  \
                                           : HB_##Name##_init(UNPAREN A, info, call->request);
    switch (c) {
        SIGNATURES(MAKE, int, int)
    default: return MPI_ERR_INTERN;
    }
}

static int fail(const struct call *call, int error) {
    PMPI_Comm_call_errhandler(call->comm, error);
    return error;
}

static int narrow_and_call(const struct call *call, MPI_Info info) {
    const struct lists *const lists = call->lists;
    const int *given[N_LISTS] = {NULL};
    if (call->comm == MPI_COMM_NULL) return call_with_int_counts(call, given, info);
    const int root = is_call_root(call), n = lists && root ? n_blocks(call) : 0;
    int error = error_of(call, root);
    if (error != MPI_SUCCESS || n == 0)
        return error == MPI_SUCCESS ? call_with_int_counts(call, given, info) : fail(call, error);
    /* MPI ignores the send lists of an in-place alltoall. */
    const int sends = call->send != MPI_IN_PLACE || call->collective == REDUCE_SCATTER;
    const int is_read[N_LISTS] = {sends && lists->send_counts, sends && lists->send_displs, lists->recv_counts != NULL,
                                  lists->recv_displs != NULL};
    const size_t bytes = N_LISTS * (size_t)n * sizeof(int);
    int *const ints = calloc(1, bytes);
    error = ints ? narrow(lists, n, is_read, ints) : MPI_ERR_NO_MEM;
    /* MPI reads the lists until a request is done. */
    const int *const kept = error == MPI_SUCCESS && call->form != BLOCKING ? intern_list(ints, bytes) : ints;
    if (!kept) error = MPI_ERR_NO_MEM;
    for (int l = 0; kept && l < N_LISTS; l++) given[l] = is_read[l] ? kept + (size_t)l * n : NULL;
    const int code = error == MPI_SUCCESS ? call_with_int_counts(call, given, info) : fail(call, error);
    free(ints);
    return code;
}

int call_missing_function(const struct call *call, const char *name, MPI_Info info) {
    const size_t length = strlen(name);
    if (length > 2 && strcmp(name + length - 2, "_c") == 0) return narrow_and_call(call, info);
    fprintf(stderr, "hopbine: hopbine does not serve this call (%s), and this MPI has no MPI_%s\n",
            call->reason ? call->reason : "it has not started", name);
    return fail(call, MPI_ERR_UNSUPPORTED_OPERATION);
}
