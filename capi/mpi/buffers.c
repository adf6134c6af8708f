/* What every way of serving a call needs: the buffers of MPI's calls, and hopbine's calls for them. */
#include "doors.h"

#include <stdlib.h>

int do_overlap(const void *send, int64_t sent, const void *recv, int64_t received) {
    const uintptr_t from = (uintptr_t)send, to = (uintptr_t)recv;
    return sent > 0 && received > 0 && from < to + (uint64_t)received && to < from + (uint64_t)sent;
}

/* In portions that MPI's int can count. */
int copy_loose(char *row, char *loose, MPI_Count count, MPI_Datatype type, MPI_Count each, int is_back) {
    const MPI_Count most = each < (1 << 30) ? (1 << 30) / each : 1;
    MPI_Aint lower, extent;
    PMPI_Type_get_extent(type, &lower, &extent);
    for (MPI_Count done = 0; done < count; done += most) {
        const int n = (int)(count - done < most ? count - done : most), bytes = (int)(n * each);
        char *const to = row + done * each, *const from = loose + done * extent;
        int at = 0;
        const int code = is_back ? PMPI_Unpack(to, bytes, &at, from, n, type, MPI_COMM_SELF)
                                 : PMPI_Pack(from, n, type, to, bytes, &at, MPI_COMM_SELF);
        if (code != MPI_SUCCESS || at != bytes) return 0;
    }
    return 1;
}

int64_t *counts_of(const struct call *call, int size, int *error) {
    int64_t *counts = malloc((size_t)size * sizeof *counts);
    *error = !call->send_counts ? MPI_ERR_ARG : counts ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    for (int r = 0; *error == MPI_SUCCESS && r < size; r++) {
        counts[r] = call->is_wide ? (int64_t)((const MPI_Count *)call->send_counts)[r] : ((const int *)call->send_counts)[r];
        if (counts[r] < 0) *error = MPI_ERR_COUNT;
    }
    if (*error == MPI_SUCCESS) return counts;
    free(counts);
    return NULL;
}

int perform(const struct call *call, const struct state *state, const void *send, void *recv,
            int64_t count, int element, int op) {
    const hopbine_comm_t comm = state->comm;
    switch (call->collective) {
    case ALLREDUCE: return hopbine_allreduce(send, recv, count, element, op, comm);
    case REDUCE: return hopbine_reduce(send, recv, count, element, op, call->root, comm);
    case REDUCE_SCATTER_BLOCK: return hopbine_reduce_scatter(send, recv, count, element, op, comm);
    case SCAN: return hopbine_scan(send, recv, count, element, op, comm);
    case EXSCAN: return hopbine_exscan(send, recv, count, element, op, comm);
    case BCAST: return hopbine_bcast(recv, count, element, call->root, comm);
    case ALLGATHER: return hopbine_allgather(send, recv, count, element, comm);
    case GATHER: return hopbine_gather(send, recv, count, element, call->root, comm);
    case SCATTER: return hopbine_scatter(send, recv, count, element, call->root, comm);
    case ALLTOALL: return hopbine_alltoall(send, recv, count, element, comm);
    default: return hopbine_barrier(comm);
    }
}
