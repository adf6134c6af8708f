/* See functions.h. src/endpoint/mpi/ffi.rs declares the same table; a handle is a word there, whether MPI has
 * integers (MPICH) or addresses (Open MPI, the standard ABI). */
#include "functions.h"

#include <mpi.h>
#include <stdint.h>
#include <string.h>

typedef uintptr_t word;

/* MPI's status at the begin of room that is enough for any. */
struct status {
    uint64_t room[6];
};
_Static_assert(sizeof(MPI_Status) <= sizeof(struct status), "a status of this MPI is longer than src/endpoint/mpi/ffi.rs has room for");
_Static_assert(sizeof(MPI_Request) == sizeof(int) || sizeof(MPI_Request) == sizeof(word), "handles are integers or addresses");

static MPI_Status *one(struct status *status) { return status ? (MPI_Status *)status : MPI_STATUS_IGNORE; }

/* A list of requests as MPI has them, in the same memory; and as words again. */
static MPI_Request *narrow(int n, word *requests) {
    for (int at = 0; at < n && sizeof(MPI_Request) != sizeof(word); at++) {
        const MPI_Request request = (MPI_Request)requests[at];
        memcpy((char *)requests + (size_t)at * sizeof request, &request, sizeof request);
    }
    return (MPI_Request *)requests;
}

static void widen(int n, word *requests) {
    for (int at = n; at-- > 0 && sizeof(MPI_Request) != sizeof(word);) {
        MPI_Request request;
        memcpy(&request, (char *)requests + (size_t)at * sizeof request, sizeof request);
        requests[at] = (word)request;
    }
}

/* A call that writes a handle, or reads it and writes it anew. */
#define WITH(KIND, NAME, CALL)                                                                     \
    KIND own = (KIND)*NAME;                                                                        \
    const int code = CALL;                                                                         \
    *NAME = (word)own;                                                                             \
    return code

static int allreduce(const void *send, void *recv, int n, word type, word op, word comm) {
    return PMPI_Allreduce(send, recv, n, (MPI_Datatype)type, (MPI_Op)op, (MPI_Comm)comm);
}
static int barrier(word comm) { return PMPI_Barrier((MPI_Comm)comm); }
static int cancel(word *request) { WITH(MPI_Request, request, PMPI_Cancel(&own)); }
static int comm_free(word *comm) { WITH(MPI_Comm, comm, PMPI_Comm_free(&own)); }
static int comm_get_attr(word comm, int key, void *value, int *is_set) {
    return PMPI_Comm_get_attr((MPI_Comm)comm, key, value, is_set);
}
static int comm_group(word comm, word *group) { WITH(MPI_Group, group, PMPI_Comm_group((MPI_Comm)comm, &own)); }
static int comm_rank(word comm, int *rank) { return PMPI_Comm_rank((MPI_Comm)comm, rank); }
static int comm_set_errhandler(word comm, word handler) {
    return PMPI_Comm_set_errhandler((MPI_Comm)comm, (MPI_Errhandler)handler);
}
static int comm_size(word comm, int *size) { return PMPI_Comm_size((MPI_Comm)comm, size); }
static int comm_split(word comm, int colour, int key, word *made) {
    WITH(MPI_Comm, made, PMPI_Comm_split((MPI_Comm)comm, colour, key, &own));
}
static int comm_test_inter(word comm, int *is_inter) { return PMPI_Comm_test_inter((MPI_Comm)comm, is_inter); }
static int error_string(int code, char *text, int *length) { return PMPI_Error_string(code, text, length); }
static int finalize(void) { return PMPI_Finalize(); }
static int finalized(int *is_so) { return PMPI_Finalized(is_so); }
static int get_count(const struct status *status, word type, int *count) {
    return PMPI_Get_count((const MPI_Status *)status, (MPI_Datatype)type, count);
}
static int get_library_version(char *text, int *length) { return PMPI_Get_library_version(text, length); }
static int group_free(word *group) { WITH(MPI_Group, group, PMPI_Group_free(&own)); }
static int group_translate_ranks(word from, int n, const int *ranks, word to, int *found) {
    return PMPI_Group_translate_ranks((MPI_Group)from, n, ranks, (MPI_Group)to, found);
}
static int ibarrier(word comm, word *request) { WITH(MPI_Request, request, PMPI_Ibarrier((MPI_Comm)comm, &own)); }
static int ibcast(void *buffer, int n, word type, int root, word comm, word *request) {
    WITH(MPI_Request, request, PMPI_Ibcast(buffer, n, (MPI_Datatype)type, root, (MPI_Comm)comm, &own));
}
static int improbe(int from, int tag, word comm, int *flag, word *message, struct status *status) {
    WITH(MPI_Message, message, PMPI_Improbe(from, tag, (MPI_Comm)comm, flag, &own, one(status)));
}
static int imrecv(void *buffer, int n, word type, word *message, word *request) {
    MPI_Message taken = (MPI_Message)*message;
    MPI_Request made = (MPI_Request)*request;
    const int code = PMPI_Imrecv(buffer, n, (MPI_Datatype)type, &taken, &made);
    *message = (word)taken, *request = (word)made;
    return code;
}
static int init_thread(int *n, char ***arguments, int wanted, int *provided) {
    return PMPI_Init_thread(n, arguments, wanted, provided);
}
static int initialized(int *is_so) { return PMPI_Initialized(is_so); }
static int intercomm_create(word mine, int leader, word peers, int other, int tag, word *made) {
    WITH(MPI_Comm, made, PMPI_Intercomm_create((MPI_Comm)mine, leader, (MPI_Comm)peers, other, tag, &own));
}
static int iprobe(int from, int tag, word comm, int *flag, struct status *status) {
    return PMPI_Iprobe(from, tag, (MPI_Comm)comm, flag, one(status));
}
static int irecv(void *buffer, int n, word type, int from, int tag, word comm, word *request) {
    WITH(MPI_Request, request, PMPI_Irecv(buffer, n, (MPI_Datatype)type, from, tag, (MPI_Comm)comm, &own));
}
static int is_thread_main(int *is_so) { return PMPI_Is_thread_main(is_so); }
static int isend(const void *buffer, int n, word type, int to, int tag, word comm, word *request) {
    WITH(MPI_Request, request, PMPI_Isend(buffer, n, (MPI_Datatype)type, to, tag, (MPI_Comm)comm, &own));
}
static int issend(const void *buffer, int n, word type, int to, int tag, word comm, word *request) {
    WITH(MPI_Request, request, PMPI_Issend(buffer, n, (MPI_Datatype)type, to, tag, (MPI_Comm)comm, &own));
}
static int query_thread(int *level) { return PMPI_Query_thread(level); }
static int receive(void *buffer, int n, word type, int from, int tag, word comm, struct status *status) {
    return PMPI_Recv(buffer, n, (MPI_Datatype)type, from, tag, (MPI_Comm)comm, one(status));
}
static int request_free(word *request) { WITH(MPI_Request, request, PMPI_Request_free(&own)); }
static int request_get_status(word request, int *flag, struct status *status) {
    return PMPI_Request_get_status((MPI_Request)request, flag, one(status));
}
static int send_now(const void *buffer, int n, word type, int to, int tag, word comm) {
    return PMPI_Send(buffer, n, (MPI_Datatype)type, to, tag, (MPI_Comm)comm);
}
static int sendrecv(const void *send, int n, word type, int to, int tag, void *recv, int m, word into, int from,
                    int other, word comm, struct status *status) {
    return PMPI_Sendrecv(send, n, (MPI_Datatype)type, to, tag, recv, m, (MPI_Datatype)into, from, other,
                         (MPI_Comm)comm, one(status));
}
static int test(word *request, int *flag, struct status *status) {
    WITH(MPI_Request, request, PMPI_Test(&own, flag, one(status)));
}
static int test_cancelled(const struct status *status, int *is_so) {
    return PMPI_Test_cancelled((const MPI_Status *)status, is_so);
}
static int testall(int n, word *requests, int *flag) {
    const int code = PMPI_Testall(n, narrow(n, requests), flag, MPI_STATUSES_IGNORE);
    widen(n, requests);
    return code;
}
static int testsome(int n, word *requests, int *n_done, int *places, struct status *statuses) {
    const int code = PMPI_Testsome(n, narrow(n, requests), n_done, places, (MPI_Status *)statuses);
    widen(n, requests);
    /* MPI's follow each other closely. */
    for (int at = *n_done == MPI_UNDEFINED ? 0 : *n_done; at-- > 0;)
        memmove(&statuses[at], (MPI_Status *)statuses + at, sizeof(MPI_Status));
    return code;
}
static int wait_for(word *request, struct status *status) { WITH(MPI_Request, request, PMPI_Wait(&own, one(status))); }
static int waitall(int n, word *requests) {
    const int code = PMPI_Waitall(n, narrow(n, requests), MPI_STATUSES_IGNORE);
    widen(n, requests);
    return code;
}

static word comm_at(const void *comm) { return (word) * (const MPI_Comm *)comm; }
static int source_of(const struct status *status) { return ((const MPI_Status *)status)->MPI_SOURCE; }

/* The functions of the table, in the order of src/endpoint/mpi/ffi.rs. */
#define FUNCTIONS(F)                                                                               \
    F(allreduce) F(barrier) F(cancel) F(comm_free) F(comm_get_attr) F(comm_group) F(comm_rank)     \
    F(comm_set_errhandler) F(comm_size) F(comm_split) F(comm_test_inter) F(error_string)           \
    F(finalize) F(finalized) F(get_count) F(get_library_version) F(group_free)                     \
    F(group_translate_ranks) F(ibarrier) F(ibcast) F(improbe)                                      \
    F(imrecv) F(init_thread) F(initialized) F(intercomm_create) F(iprobe) F(irecv)                 \
    F(is_thread_main) F(isend) F(issend) F(query_thread) F(receive) F(request_free)                \
    F(request_get_status) F(send_now) F(sendrecv) F(test) F(test_cancelled) F(testall)             \
    F(testsome) F(wait_for) F(waitall)
#define FIELD(NAME) __typeof__(&NAME) NAME;
#define VALUE(NAME) .NAME = NAME,

struct functions {
    size_t bytes;
    /* Open MPI's constants are addresses, which are known at run time only. */
    word comm_world, comm_null, group_null, message_null, request_null, errors_return, uint8, uint32, uint64, real64, max;
    int any_source, any_tag, undefined, tag_ub, thread_funneled, thread_serialized, thread_multiple;
    word (*comm_at)(const void *);
    int (*source_of)(const struct status *);
    FUNCTIONS(FIELD)
};

const void *hopbine_mpi_functions(void) {
    /* Threads may make it at the same time: they make the same. */
    static struct functions functions;
    functions = (struct functions){
        .bytes = sizeof functions,
        .comm_world = (word)MPI_COMM_WORLD,
        .comm_null = (word)MPI_COMM_NULL,
        .group_null = (word)MPI_GROUP_NULL,
        .message_null = (word)MPI_MESSAGE_NULL,
        .request_null = (word)MPI_REQUEST_NULL,
        .errors_return = (word)MPI_ERRORS_RETURN,
        .uint8 = (word)MPI_UINT8_T,
        .uint32 = (word)MPI_UINT32_T,
        .uint64 = (word)MPI_UINT64_T,
        .real64 = (word)MPI_DOUBLE,
        .max = (word)MPI_MAX,
        .any_source = MPI_ANY_SOURCE,
        .any_tag = MPI_ANY_TAG,
        .undefined = MPI_UNDEFINED,
        .tag_ub = MPI_TAG_UB,
        .thread_funneled = MPI_THREAD_FUNNELED,
        .thread_serialized = MPI_THREAD_SERIALIZED,
        .thread_multiple = MPI_THREAD_MULTIPLE,
        .comm_at = comm_at,
        .source_of = source_of,
        FUNCTIONS(VALUE)
    };
    return &functions;
}
