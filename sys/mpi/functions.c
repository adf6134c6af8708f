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
static int comm_dup(word comm, word *made) { WITH(MPI_Comm, made, PMPI_Comm_dup((MPI_Comm)comm, &own)); }
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
static int iallgather(const void *send, int n, word type, void *recv, int m, word to, word comm, word *request) {
    WITH(MPI_Request, request,
         PMPI_Iallgather(send, n, (MPI_Datatype)type, recv, m, (MPI_Datatype)to, (MPI_Comm)comm, &own));
}
static int iallgatherv(const void *send, int n, word type, void *recv, const int *counts, const int *displs, word to,
                       word comm, word *request) {
    WITH(MPI_Request, request,
         PMPI_Iallgatherv(send, n, (MPI_Datatype)type, recv, counts, displs, (MPI_Datatype)to, (MPI_Comm)comm, &own));
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

struct functions {
    size_t bytes;
    /* Open MPI's constants are addresses, which are known at run time only. */
    word comm_world, comm_null, group_null, message_null, request_null, errors_return, uint8, uint32, uint64, real64, max;
    int any_source, any_tag, undefined, tag_ub, thread_funneled, thread_serialized, thread_multiple;
    word (*comm_at)(const void *);
    int (*source_of)(const struct status *);
    __typeof__(&allreduce) allreduce;
    __typeof__(&barrier) barrier;
    __typeof__(&cancel) cancel;
    __typeof__(&comm_dup) comm_dup;
    __typeof__(&comm_free) comm_free;
    __typeof__(&comm_get_attr) comm_get_attr;
    __typeof__(&comm_group) comm_group;
    __typeof__(&comm_rank) comm_rank;
    __typeof__(&comm_set_errhandler) comm_set_errhandler;
    __typeof__(&comm_size) comm_size;
    __typeof__(&comm_split) comm_split;
    __typeof__(&comm_test_inter) comm_test_inter;
    __typeof__(&error_string) error_string;
    __typeof__(&finalize) finalize;
    __typeof__(&finalized) finalized;
    __typeof__(&get_count) get_count;
    __typeof__(&get_library_version) get_library_version;
    __typeof__(&group_free) group_free;
    __typeof__(&group_translate_ranks) group_translate_ranks;
    __typeof__(&iallgather) iallgather;
    __typeof__(&iallgatherv) iallgatherv;
    __typeof__(&ibarrier) ibarrier;
    __typeof__(&ibcast) ibcast;
    __typeof__(&improbe) improbe;
    __typeof__(&imrecv) imrecv;
    __typeof__(&init_thread) init_thread;
    __typeof__(&initialized) initialized;
    __typeof__(&intercomm_create) intercomm_create;
    __typeof__(&iprobe) iprobe;
    __typeof__(&irecv) irecv;
    __typeof__(&is_thread_main) is_thread_main;
    __typeof__(&isend) isend;
    __typeof__(&issend) issend;
    __typeof__(&query_thread) query_thread;
    __typeof__(&receive) receive;
    __typeof__(&request_free) request_free;
    __typeof__(&request_get_status) request_get_status;
    __typeof__(&send_now) send;
    __typeof__(&sendrecv) sendrecv;
    __typeof__(&test) test;
    __typeof__(&test_cancelled) test_cancelled;
    __typeof__(&testall) testall;
    __typeof__(&testsome) testsome;
    __typeof__(&wait_for) wait;
    __typeof__(&waitall) waitall;
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
        .allreduce = allreduce,
        .barrier = barrier,
        .cancel = cancel,
        .comm_dup = comm_dup,
        .comm_free = comm_free,
        .comm_get_attr = comm_get_attr,
        .comm_group = comm_group,
        .comm_rank = comm_rank,
        .comm_set_errhandler = comm_set_errhandler,
        .comm_size = comm_size,
        .comm_split = comm_split,
        .comm_test_inter = comm_test_inter,
        .error_string = error_string,
        .finalize = finalize,
        .finalized = finalized,
        .get_count = get_count,
        .get_library_version = get_library_version,
        .group_free = group_free,
        .group_translate_ranks = group_translate_ranks,
        .iallgather = iallgather,
        .iallgatherv = iallgatherv,
        .ibarrier = ibarrier,
        .ibcast = ibcast,
        .improbe = improbe,
        .imrecv = imrecv,
        .init_thread = init_thread,
        .initialized = initialized,
        .intercomm_create = intercomm_create,
        .iprobe = iprobe,
        .irecv = irecv,
        .is_thread_main = is_thread_main,
        .isend = isend,
        .issend = issend,
        .query_thread = query_thread,
        .receive = receive,
        .request_free = request_free,
        .request_get_status = request_get_status,
        .send = send_now,
        .sendrecv = sendrecv,
        .test = test,
        .test_cancelled = test_cancelled,
        .testall = testall,
        .testsome = testsome,
        .wait = wait_for,
        .waitall = waitall,
    };
    return &functions;
}
