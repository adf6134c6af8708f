/* Whether hopbine serves a call of MPI's, and how.
 *
 * All ranks of a call must decide alike, so a decision depends only on what they share: the
 * communicator's members, the collective, the operator, and the amount of data, which MPI demands
 * to be the same in bytes even where the ranks describe it by different types. What only one rank
 * could object to, a negative count for instance, goes to MPI on that rank, which then raises the
 * error that it would have raised anyway. */
#include "doors.h"

#include <stdio.h>
#include <stdlib.h>

__thread int within;

/* What is kept with a communicator. */
struct state {
    hopbine_comm_t comm;
    int size, rank;
    /* Why MPI serves it; null if hopbine does. */
    const char *reason;
};

static enum { NEVER_TRIED, STARTED, CANNOT } status;
static hopbine_comm_t world;
static MPI_Comm exchange_comm = MPI_COMM_NULL, progress_comm = MPI_COMM_NULL;
static MPI_Request unanswered = MPI_REQUEST_NULL;
static MPI_Group world_group;
static int keyval = MPI_KEYVAL_INVALID, end_keyval = MPI_KEYVAL_INVALID;
static int wants_report;
/* Changes whenever a communicator is freed: what threads remember of the last one is then old. */
static unsigned long generation;

/* -- Starting and ending ------------------------------------------------------------------- */

#ifndef HOPBINE_WITH_MPI
static int exchange(const void *mine, void *all, int64_t bytes, void *argument) {
    (void)argument;
    within++;
    int code = PMPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, exchange_comm);
    within--;
    return code;
}
#endif

/* While a rank waits in hopbine, its messages in MPI move on: testing any request moves all of
 * them, and this one, which nobody answers, is never done. (MPICH's MPI_Iprobe moves nothing.) */
static void progress(void *argument) {
    static int is_busy;
    (void)argument;
    if (__atomic_exchange_n(&is_busy, 1, __ATOMIC_ACQUIRE)) return;
    int flag;
    within++;
    PMPI_Test(&unanswered, &flag, MPI_STATUS_IGNORE);
    within--;
    __atomic_store_n(&is_busy, 0, __ATOMIC_RELEASE);
}

static int forget(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)extra;
    struct state *state = value;
    __atomic_add_fetch(&generation, 1, __ATOMIC_RELEASE);
    if (state->comm != HOPBINE_COMM_NULL && state->comm != world) hopbine_comm_free(&state->comm);
    free(state);
    return MPI_SUCCESS;
}

/* MPI_Finalize begins by freeing what MPI_COMM_SELF carries. */
static int end(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    if (status != STARTED) return MPI_SUCCESS;
    status = CANNOT;
    within++;
    if (hopbine_finalize() != HOPBINE_SUCCESS) fprintf(stderr, "hopbine: %s\n", hopbine_last_error());
    PMPI_Cancel(&unanswered);
    PMPI_Wait(&unanswered, MPI_STATUS_IGNORE);
    PMPI_Comm_free(&exchange_comm);
    PMPI_Comm_free(&progress_comm);
    PMPI_Group_free(&world_group);
    within--;
    return MPI_SUCCESS;
}

void start(void) {
    if (status != NEVER_TRIED || within) return;
    int rank, size, good, all;
    within++;
    wants_report = hopbine_report_wanted();
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    PMPI_Comm_dup(MPI_COMM_WORLD, &exchange_comm);
    PMPI_Comm_dup(MPI_COMM_SELF, &progress_comm);
    PMPI_Irecv(NULL, 0, MPI_BYTE, 0, 0, progress_comm, &unanswered);
    PMPI_Comm_group(MPI_COMM_WORLD, &world_group);
    int is_started = 0, n_ranks = 0;
    hopbine_initialized(&is_started);
    if (is_started) {
        /* By the program, or by the other one of libhopbine_hb and libhopbine_mpi. */
        world = hopbine_comm_world();
        good = hopbine_comm_size(world, &n_ranks) == HOPBINE_SUCCESS && n_ranks == size;
    } else {
#ifdef HOPBINE_WITH_MPI
        /* With messages over MPI between hosts. */
        const MPI_Comm everybody = MPI_COMM_WORLD;
        good = hopbine_init_mpi(&everybody, progress, NULL, &world) == HOPBINE_SUCCESS;
#else
        const hopbine_exchange_t with = {rank, size, exchange, progress, NULL};
        good = hopbine_init_exchange(&with, &world) == HOPBINE_SUCCESS;
#endif
    }
    if (!good && rank == 0)
        fprintf(stderr, "hopbine: %s; MPI serves all calls\n", hopbine_last_error());
    PMPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, exchange_comm);
    status = all ? STARTED : CANNOT;
    if (all) {
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL);
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &end_keyval, NULL);
        if (!is_started) PMPI_Comm_set_attr(MPI_COMM_SELF, end_keyval, NULL);
    }
    within--;
}

/* -- Communicators ------------------------------------------------------------------------- */

/* The number of a new communicator, from its first rank to the others. */
static uint64_t agree(uint64_t number, void *comm) {
    return PMPI_Bcast(&number, 1, MPI_UINT64_T, 0, *(MPI_Comm *)comm) == MPI_SUCCESS ? number : 0;
}

/* Makes hopbine's communicator of the same ranks; all of them are here. */
static void adopt(MPI_Comm comm, struct state *state) {
    int is_inter, compared;
    PMPI_Comm_test_inter(comm, &is_inter);
    PMPI_Comm_rank(comm, &state->rank);
    PMPI_Comm_size(comm, &state->size);
    if (is_inter) {
        state->reason = "an intercommunicator";
        return;
    }
    if (state->size == 1) {
        state->reason = "a rank alone";
        return;
    }
    PMPI_Comm_compare(comm, MPI_COMM_WORLD, &compared);
    if (compared == MPI_IDENT) {
        state->comm = world;
        return;
    }
    int *members = malloc(2 * (size_t)state->size * sizeof *members), *ranks = members + state->size;
    MPI_Group group;
    PMPI_Comm_group(comm, &group);
    for (int rank = 0; rank < state->size; rank++) members[rank] = rank;
    PMPI_Group_translate_ranks(group, state->size, members, world_group, ranks);
    PMPI_Group_free(&group);
    for (int rank = 0; rank < state->size; rank++)
        if (ranks[rank] == MPI_UNDEFINED) state->reason = "ranks that are not of MPI_COMM_WORLD";
    if (!state->reason &&
        hopbine_comm_join(world, state->size, ranks, agree, &comm, &state->comm) != HOPBINE_SUCCESS)
        state->reason = "no further communicator could be made";
    free(members);
}

/* What is kept with `comm`; null if it is none. */
static struct state *state_of(MPI_Comm comm) {
    static __thread MPI_Comm last;
    static __thread struct state *of_last;
    static __thread unsigned long at;
    const unsigned long now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    if (of_last && at == now && last == comm) return of_last;
    if (comm == MPI_COMM_NULL) return NULL;
    struct state *state = NULL;
    int found = 0;
    if (PMPI_Comm_get_attr(comm, keyval, &state, &found) != MPI_SUCCESS) return NULL;
    if (!found) {
        state = calloc(1, sizeof *state);
        if (!state) return NULL;
        adopt(comm, state);
        PMPI_Comm_set_attr(comm, keyval, state);
    }
    last = comm, of_last = state, at = now;
    return state;
}

/* -- Calls --------------------------------------------------------------------------------- */

/* One side's data as a row of bytes: the buffer itself, or a copy if its type has holes. */
struct side {
    void *buffer;
    void *copy;
    MPI_Count bytes;
};

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

static int copy(struct side *side, void *buffer, MPI_Count count, MPI_Datatype type, int is_back) {
    return copy_loose(side->copy, buffer, count, type, side->bytes / count, is_back);
}

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

static int perform(const struct call *call, const struct state *state, const void *send, void *recv,
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

/* Serves a reduction, if it is one of hopbine's types and operators. */
static int reduction(struct call *call, const struct state *state, int *code, int *error) {
    struct type type;
    const int op = operator_of(call->op);
    const int is_root = call->collective != REDUCE || state->rank == call->root;
    if (op < 0) return call->reason = "operator", 0;
    if (!look_at_type(call->recv_type, &type)) return call->reason = "argument", 0;
    if (type.element < 0 || !is_defined(op, type.element)) return call->reason = "type", 0;
    if (call->collective == REDUCE_SCATTER) {
        if (!call->send_counts) return call->reason = "argument", 0;
        *error = serve_reduce_scatter(call, state->comm, state->size, type.element, op, code);
        return 1;
    }
    if (call->recv_count <= 0) return call->reason = "no data", 0;
    const int in_place = call->send == MPI_IN_PLACE;
    if (in_place && !is_root) return call->reason = "argument", 0;
    if ((!in_place && !call->send) || (is_root && !call->recv)) return call->reason = "argument", 0;
    const void *send = in_place ? HOPBINE_IN_PLACE : call->send;
    *code = perform(call, state, send, call->recv, call->recv_count, type.element, op);
    return 1;
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

/* Serves what only moves data: as bytes, since ranks may describe the same data by different
 * types. */
static int movement(struct call *call, const struct state *state, int *code) {
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
    if (!call->reason) {
        int good = !sent || !received || block == recv.bytes / received;
        *code = good ? HOPBINE_SUCCESS : HOPBINE_ERR_MISMATCH;
        if (good && send.copy)
            good = copy(&send, (void *)call->send, call->send_count * sent, call->send_type, 0);
        if (good && recv.copy && (from_recv || c == BCAST))
            good = copy(&recv, call->recv, call->recv_count * received, call->recv_type, 0);
        if (good)
            *code = perform(call, state, from_recv ? HOPBINE_IN_PLACE : send.buffer,
                            from_send ? HOPBINE_IN_PLACE : recv.buffer, block, HOPBINE_UINT8, -1);
        if (good && *code == HOPBINE_SUCCESS && recv.copy && (c != BCAST || !is_root))
            good = copy(&recv, call->recv, call->recv_count * received, call->recv_type, 1);
        if (!good && *code == HOPBINE_SUCCESS) *code = HOPBINE_ERR_INTERNAL;
    }
    free(send.copy);
    free(recv.copy);
    return !call->reason;
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
        served = reduction(call, state, code, &error);
    } else if (call->collective > BARRIER) {
        error = serve_vector(call, state->comm, state->rank, state->size, code);
        served = 1;
    } else {
        served = movement(call, state, code);
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
