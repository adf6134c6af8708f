/* What hopbine serves of a call: its buffers as rows of bytes, and what becomes of them before and
 * after. A blocking call has its job on the stack; a request's is kept until the request is done, or, if
 * it is persistent, freed. */
#ifndef HOPBINE_JOB_H
#define HOPBINE_JOB_H

#include "doors.h"

/* One side of a call: `n` blocks in the caller's buffer, and in bytes as hopbine gets them. */
struct rows {
    char *buffer;
    MPI_Datatype type;
    /* Bytes of data of one element, and from one to the next. */
    MPI_Count each;
    MPI_Aint extent;
    /* A row for all blocks, one after the other, if they must be packed. */
    char *copy;
    /* In bytes, by block: its data, where it begins for hopbine, and where in the caller's buffer. All
     * of them are in one piece of memory, which for one block is `only`. */
    int64_t *bytes, *starts, *places;
    int64_t only[3];
    int n;
    /* `type` is not the caller's, but made of it. */
    int owns_type;
};

/* Opens one side; what is not opened has no blocks (n = 0). Returns what is wrong, or MPI_SUCCESS. */
int open_block(struct rows *rows, const void *buffer, MPI_Count count, MPI_Datatype type);
int open_blocks(struct rows *rows, int n, const void *buffer, const void *counts, const void *displs, int is_wide,
                MPI_Datatype type, int is_received);

/* Has hopbine get a copy of the blocks. */
int keep_copy(struct rows *rows);

/* Where hopbine finds the blocks. */
void *data_of(const struct rows *rows);

/* Which blocks of the receive buffer are input, beside the number of one. */
enum { NO_INPUT = -1, ALL_INPUT = -2 };

struct job {
    struct rows send, recv;
    int input;
    /* What is received is not the caller's. */
    int is_read_only;
    /* This rank expects other lengths than it gives: its data go where nobody looks. */
    void *nowhere;
    /* What hopbine gives for it, unless the call is blocking. */
    hopbine_request_t request;
    /* What perform() has said to hopbine; before that the count is negative. */
    int64_t count;
    int element, op;
};

/* A side that is not open. Its other members are read only once it is, and setting them all would take
 * longer than a short call should. */
static inline void clear_side(struct rows *rows) {
    rows->buffer = rows->copy = NULL;
    rows->bytes = rows->starts = NULL;
    rows->n = rows->owns_type = 0;
}

static inline void clear_job(struct job *job) {
    clear_side(&job->send);
    clear_side(&job->recv);
    job->input = NO_INPUT;
    job->is_read_only = 0;
    job->nowhere = NULL;
    job->request = HOPBINE_REQUEST_NULL;
    job->count = -1;
}

/* Copies input to where hopbine reads it, before each start; and results to where the caller expects
 * them, after it. Both return one of hopbine's codes. */
int begin_job(struct job *job);
int end_job(struct job *job);

/* begin_job(), unless the call is persistent: then every start does. */
int begin_call(const struct call *call, struct job *job);

/* Keeps the types of what must be packed: the caller may free its own as soon as a request has started. */
int keep_types(struct job *job);

/* Frees what a job has, but not the job itself. */
void close_job(struct job *job);

/* Each of these serves some collectives: it opens the job, and begins it, unless it is persistent; and
 * sets *code or *error, to hopbine's code or to what is wrong with the arguments. Or it returns 0 and
 * sets the call's reason. */
int serve_movement(struct call *call, const struct state *state, struct job *job, int *code, int *error);
int serve_vector(struct call *call, const struct state *state, struct job *job, int *code, int *error);
int serve_reduction(struct call *call, const struct state *state, struct job *job, int *code, int *error);
/* By calls of their own, so that they serve blocking ones only; the first leaves all but pairs of MPI's, in an allreduce
 * or reduce, to the second. */
int serve_pairs(struct call *call, const struct state *state, int *code, int *error);
int serve_ordered(struct call *call, const struct state *state, int *code, int *error);

/* hopbine's function for a form. */
#define BY_FORM(form, name, request, ...)                                                          \
    ((form) == BLOCKING      ? hopbine_##name(__VA_ARGS__)                                         \
     : (form) == NONBLOCKING ? hopbine_i##name(__VA_ARGS__, request)                               \
                             : hopbine_##name##_init(__VA_ARGS__, request))

/* Issues hopbine's call for one of MPI's with equal blocks; a form that gives a request sets *request. */
int issue_call(const struct call *call, hopbine_comm_t comm, hopbine_request_t *request, const void *send, void *recv,
               int64_t count, int element, int op);

/* The same for a job, which keeps what was said. */
int perform(const struct call *call, const struct state *state, struct job *job, const void *send, void *recv,
            int64_t count, int element, int op);

/* Serves a call that is not persistent like one that was kept with its communicator, but for the addresses;
 * 0 if there is none like it. */
int serve_again(const struct call *call, const struct state *state, hopbine_request_t *request, int *code);

/* Keeps a call that was served by perform(), if it needs nothing else of its job. */
void keep_call(const struct call *call, struct state *state, const struct job *job);

#endif
