/* What only moves data, in equal blocks: as bytes, since ranks may describe the same data by different
 * types; what does not lie in memory as it is sent is packed into a row of its own. */
#include "doors.h"

#include <stdlib.h>
#include <string.h>

/* One side's data as a row of bytes: the buffer itself, or a copy if its type has holes. */
struct side {
    void *buffer;
    void *copy;
    MPI_Count bytes;
};

static int copy(struct side *side, void *buffer, MPI_Count count, MPI_Datatype type, int is_back) {
    return copy_loose(side->copy, buffer, count, type, side->bytes / count, is_back);
}

/* What one side of a call holds: `blocks` of what is given, with room for a copy if it needs one. */
static const char *open_side(struct side *side, void *buffer, MPI_Count count, MPI_Datatype datatype,
                             int blocks) {
    struct type type;
    if (count < 0 || !look_at_type(datatype, &type)) return "argument";
    side->bytes = type.bytes * count * blocks;
    side->buffer = buffer;
    if (!type.contiguous && side->bytes > 0) side->buffer = side->copy = malloc((size_t)side->bytes);
    return side->bytes > 0 && !side->buffer ? "argument" : NULL;
}

/* Copies what is sent if it lies where data will be received. */
static const char *keep_apart(struct side *send, const struct side *recv, const struct call *call, MPI_Count own) {
    if (send->copy || recv->copy || !do_overlap(send->buffer, send->bytes, recv->buffer, recv->bytes)) return NULL;
    const char *from = send->buffer, *to = recv->buffer;
    const int is_same = call->collective == SCATTER ? to == from + own : from == to + own;
    if (REFUSES_ALIASES && is_same && call->send_type == call->recv_type && call->send_count == call->recv_count)
        return "argument";
    send->copy = malloc((size_t)send->bytes);
    if (!send->copy) return "argument";
    send->buffer = memcpy(send->copy, from, (size_t)send->bytes);
    return NULL;
}

int serve_movement(struct call *call, const struct state *state, int *code) {
    const enum collective c = call->collective;
    const int is_root = state->rank == call->root, all = state->size;
    /* Which buffers this rank has, and how many blocks they hold. */
    int sent = c == BCAST || (c == SCATTER && !is_root) ? 0 : c == SCATTER || c == ALLTOALL ? all : 1;
    int received = c == GATHER && !is_root ? 0 : c == BCAST || c == SCATTER ? 1 : all;
    const int from_recv = sent && call->send == MPI_IN_PLACE;
    const int from_send = received && call->recv == MPI_IN_PLACE;
    if (from_recv) sent = 0;
    if (from_send) received = 0;
    struct side send = {0}, recv = {0};
    call->reason = sent ? open_side(&send, (void *)call->send, call->send_count, call->send_type, sent) : NULL;
    if (!call->reason && received)
        call->reason = open_side(&recv, call->recv, call->recv_count, call->recv_type, received);
    /* A block's bytes, the same on all ranks and on both sides. */
    const MPI_Count block = sent ? send.bytes / sent : received ? recv.bytes / received : 0;
    if (!call->reason && block == 0) call->reason = "no data";
    const int is_loose = send.copy != NULL;
    if (!call->reason) call->reason = keep_apart(&send, &recv, call, c == ALLTOALL ? 0 : state->rank * block);
    if (!call->reason) {
        /* Others need this rank's data also where it expects other lengths itself. */
        const int differs = sent && received && block != recv.bytes / received;
        void *const nowhere = differs ? malloc((size_t)(block * received)) : NULL;
        int good = !differs || nowhere;
        *code = HOPBINE_SUCCESS;
        if (good && is_loose)
            good = copy(&send, (void *)call->send, call->send_count * sent, call->send_type, 0);
        if (good && recv.copy && (from_recv || (c == BCAST && is_root)))
            good = copy(&recv, call->recv, call->recv_count * received, call->recv_type, 0);
        if (good)
            *code = perform(call, state, from_recv ? HOPBINE_IN_PLACE : send.buffer,
                            from_send ? HOPBINE_IN_PLACE : differs ? nowhere : recv.buffer, block,
                            HOPBINE_UINT8, -1);
        if (differs && *code == HOPBINE_SUCCESS) *code = HOPBINE_ERR_MISMATCH;
        free(nowhere);
        if (good && *code == HOPBINE_SUCCESS && recv.copy && (c != BCAST || !is_root))
            good = copy(&recv, call->recv, call->recv_count * received, call->recv_type, 1);
        if (!good && *code == HOPBINE_SUCCESS) *code = HOPBINE_ERR_INTERNAL;
    }
    free(send.copy);
    free(recv.copy);
    return !call->reason;
}

