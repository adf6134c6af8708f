/* Collectives that only move data in equal blocks. Data are moved as bytes, since ranks may describe the same data by
 * different types. */
#include "job.h"

#include <stdlib.h>

/* Copies what is sent if it overlaps the receive buffer. Returns a reason if MPI has to serve the call, else null. */
static const char *keep_apart(struct job *job, const struct call *call, MPI_Count own) {
    struct side *const send = &job->send, *const recv = &job->recv;
    if (send->n == 0 || recv->n == 0 || send->copy || recv->copy) return NULL;
    if (!buffers_overlap(send->buffer, send->bytes[0], recv->buffer, recv->bytes[0])) return NULL;
    const char *from = send->buffer, *to = recv->buffer;
    const int is_same = call->collective == SCATTER ? to == from + own : from == to + own;
    if (refuses_aliases && is_same && call->send_type == call->recv_type && call->send_count == call->recv_count)
        return "argument";
    return allocate_copy(send) == MPI_SUCCESS ? NULL : "argument";
}

int serve_movement(struct call *call, const struct state *state, struct job *job, int *code, int *error) {
    (void)error;
    const enum collective c = call->collective;
    const int is_root = state->rank == call->root, all = state->size;
    /* Which buffers this rank has, and how many blocks they hold. */
    int sent = c == BCAST || (c == SCATTER && !is_root) ? 0 : c == SCATTER || c == ALLTOALL ? all : 1;
    int received = c == GATHER && !is_root ? 0 : c == BCAST || c == SCATTER ? 1 : all;
    const int from_recv = sent && call->send == MPI_IN_PLACE;
    const int from_send = received && call->recv == MPI_IN_PLACE;
    if (from_recv) sent = 0;
    if (from_send) received = 0;
    struct side *const send = &job->send, *const recv = &job->recv;
    if (sent && open_block(send, call->send, call->send_count * sent, call->send_type) != MPI_SUCCESS)
        return call->reason = "argument", 0;
    if (received && open_block(recv, call->recv, call->recv_count * received, call->recv_type) != MPI_SUCCESS)
        return call->reason = "argument", 0;
    /* A block's bytes, the same on all ranks and on both sides. */
    const MPI_Count there = received ? call->recv_count * recv->each : 0;
    const MPI_Count block = sent ? call->send_count * send->each : there;
    if (block == 0) return call->reason = "no data", 0;
    call->reason = keep_apart(job, call, c == ALLTOALL ? 0 : state->rank * block);
    if (call->reason) return 0;
    if (from_recv || (c == BCAST && is_root)) job->input = 0;
    job->is_read_only = c == BCAST && is_root;
    /* The other ranks need this rank's data even if its receive side has another length. Its own data then go to a
     * scratch buffer. */
    if (sent && received && block != there) {
        job->scratch = malloc((size_t)(block * received));
        if (!job->scratch) return call->reason = "argument", 0;
    }
    *code = begin_call(call, job);
    if (*code == HOPBINE_SUCCESS)
        *code = perform(call, state, job, from_recv ? HOPBINE_IN_PLACE : data_of(send),
                        from_send        ? HOPBINE_IN_PLACE
                        : job->scratch ? job->scratch
                                       : data_of(recv),
                        block, HOPBINE_UINT8, -1);
    return 1;
}
