/* A job: a call's buffers as sequences of bytes, with what is packed before it and unpacked after it. The job of a
 * blocking call is on the stack. That of a request is kept until the request is done or, if the request is
 * persistent, freed. */
#ifndef HOPBINE_JOB_H
#define HOPBINE_JOB_H

#include "common.h"

/* The send or receive side of a call: `n` blocks in the caller's buffer, and the bytes that hopbine sends or receives
 * for them. */
struct side {
    char *buffer;
    MPI_Datatype type;
    /* Bytes of data of one element, and the distance in bytes between two elements. */
    MPI_Count each;
    MPI_Aint extent;
    /* A buffer of all blocks in sequence, if they must be packed; else null. */
    char *copy;
    /* In bytes, by block: the length of its data, its offset in the buffer that hopbine gets, and its offset in the
     * caller's buffer. The three arrays are one allocation, or `inline_lists` for a single block. */
    int64_t *bytes, *starts, *places;
    int64_t inline_lists[3];
    int n;
    /* `type` is this library's own, made from the caller's type. */
    int owns_type;
};

/* Opens one side; a side that is not opened has no blocks (n = 0). Returns an MPI error, or MPI_SUCCESS. */
int open_block(struct side *side, const void *buffer, MPI_Count count, MPI_Datatype type);
int open_blocks(struct side *side, int n, const void *buffer, const void *counts, const void *displs, int is_wide,
                MPI_Datatype type, int is_received);

/* Allocates a copy of the blocks, which hopbine then gets in place of the caller's buffer. */
int allocate_copy(struct side *side);

/* The buffer that hopbine gets. */
void *data_of(const struct side *side);

/* Values of `input`: which blocks of the receive buffer are input. Otherwise `input` is the index of one block. */
enum { NO_INPUT = -1, ALL_INPUT = -2 };

struct job {
    struct side send, recv;
    int input;
    /* The receive side is input only: its data are not unpacked into the caller's buffer. */
    int is_read_only;
    /* A scratch buffer, if this rank's block for itself differs in length between its send and receive sides. */
    void *scratch;
    /* hopbine's request, unless the call is blocking. */
    hopbine_request_t request;
    /* Arguments of perform() to hopbine; the count is negative before that call. */
    int64_t count;
    int element, op;
};

/* Marks a side as not open. Its other members are read only after it is opened; setting them all would cost a short
 * call noticeable time. */
static inline void clear_side(struct side *side) {
    side->buffer = side->copy = NULL;
    side->bytes = side->starts = NULL;
    side->n = side->owns_type = 0;
}

static inline void clear_job(struct job *job) {
    clear_side(&job->send);
    clear_side(&job->recv);
    job->input = NO_INPUT;
    job->is_read_only = 0;
    job->scratch = NULL;
    job->request = HOPBINE_REQUEST_NULL;
    job->count = -1;
}

/* begin_job() packs the input, before each start; end_job() unpacks the results after it. Both return HOPBINE_SUCCESS,
 * or an error code of hopbine's, negated: hopbine's last message is not about it. */
int begin_job(struct job *job);
int end_job(struct job *job);

/* begin_job(), unless the call is persistent: its starts call begin_job(). */
int begin_call(const struct call *call, struct job *job);

/* Makes own types for sides that must be packed: the caller may free its types as soon as a request has started. */
int duplicate_types(struct job *job);

/* Frees what a job owns, but not the job itself. */
void close_job(struct job *job);

/* Each of these serves some collectives. It opens the job, begins it unless the call is persistent, calls hopbine,
 * and sets *code to hopbine's code or *error to an MPI error in the arguments. Or it returns 0 and sets the call's
 * reason. */
int serve_movement(struct call *call, const struct state *state, struct job *job, int *code, int *error);
int serve_vector(struct call *call, const struct state *state, struct job *job, int *code, int *error);
int serve_reduction(struct call *call, const struct state *state, struct job *job, int *code, int *error);
/* These two make blocking calls of hopbine's, so they serve blocking calls only. serve_pairs() serves allreduce and
 * reduce with some of MPI's pair types, and returns 0 for all else; then serve_ordered() serves the call. */
int serve_pairs(struct call *call, const struct state *state, int *code, int *error);
int serve_ordered(struct call *call, const struct state *state, int *code, int *error);

/* Calls hopbine's function for a form. */
#define BY_FORM(form, name, request, ...)                                                          \
    ((form) == BLOCKING      ? hopbine_##name(__VA_ARGS__)                                         \
     : (form) == NONBLOCKING ? hopbine_i##name(__VA_ARGS__, request)                               \
                             : hopbine_##name##_init(__VA_ARGS__, request))

/* Makes hopbine's call for an MPI call with equal blocks; sets *request unless the form is blocking. */
int issue_call(const struct call *call, hopbine_comm_t comm, hopbine_request_t *request, const void *send, void *recv,
               int64_t count, int element, int op);

/* issue_call() for a job, which records the arguments. */
int perform(const struct call *call, const struct state *state, struct job *job, const void *send, void *recv,
            int64_t count, int element, int op);

/* Serves a call that is not persistent if an equal one, apart from addresses, is in the communicator's cache; else
 * returns 0. */
int serve_cached(const struct call *call, const struct state *state, hopbine_request_t *request, int *code);

/* Adds a call that perform() has served to the cache, if the call needed nothing else of its job. */
void cache_call(const struct call *call, struct state *state, const struct job *job);

#endif
