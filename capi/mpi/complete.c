/* Waiting for requests, testing, starting and freeing them: MPI's functions, with hopbine's requests
 * moved on meanwhile. Without any under way a call goes straight on.
 *
 * Calls that end all that they name end hopbine's requests themselves, so that MPI need not know of them; it is asked
 * now and then all the same, to move on what is its own.
 *
 * A request that has failed is not done for MPI until somebody asks for it, who is then told. */
#include "interposed.h"
#include "requests.h"

#include <sched.h>
#include <stdlib.h>

static int has_none(const int *number) { return within || !__atomic_load_n(number, __ATOMIC_RELAXED); }

/* Which of the requests at hand have failed. */
struct failures {
    int n;
    struct {
        int at;
        struct request *request;
    } *list;
};

/* Who ends hopbine's requests that are done: MPI, which is told of them, or end_request(). */
enum enders { BY_MPI, BY_US };

/* Moves requests on, up to `most` times as long as nothing happens, and finds those of these that have
 * failed. */
static struct failures drive(int most, enum enders by, int n, const MPI_Request requests[]) {
    struct failures failures = {0, NULL};
    drive_requests(most, by == BY_MPI);
    if (!__atomic_load_n(&n_failed, __ATOMIC_ACQUIRE) || n <= 0 || !requests) return failures;
    failures.list = calloc((unsigned)n, sizeof *failures.list);
    for (int at = 0; failures.list && at < n; at++) {
        struct request *const failed = requests[at] == MPI_REQUEST_NULL ? NULL : failed_request(requests[at]);
        if (!failed) continue;
        failures.list[failures.n].at = at;
        failures.list[failures.n++].request = failed;
    }
    return failures;
}

/* What the request at that place has failed with, or MPI_SUCCESS. */
static int failure_of(const struct failures *failures, int at, MPI_Comm *comm) {
    for (int f = 0; f < failures->n; f++)
        if (failures->list[f].at == at) return take_failure(failures->list[f].request, comm);
    return MPI_SUCCESS;
}

/* The end of a call that is about one request: the one at that place, if there is one. */
static int end_one(struct failures *failures, int at, int code) {
    MPI_Comm comm = MPI_COMM_WORLD;
    const int error = code == MPI_SUCCESS && at >= 0 ? failure_of(failures, at, &comm) : MPI_SUCCESS;
    free(failures->list);
    if (error == MPI_SUCCESS) return code;
    PMPI_Comm_call_errhandler(comm, error);
    return error;
}

/* The end of a call about several: `places` of them, or the first n if null, have their statuses there. */
static int end_several(struct failures *failures, int n, const int *places, MPI_Status *statuses, int code) {
    MPI_Comm comm = MPI_COMM_WORLD;
    int has_failed = 0;
    for (int at = 0; failures->n && at < n; at++) {
        const int error = failure_of(failures, places ? places[at] : at, &comm);
        if (statuses != MPI_STATUSES_IGNORE && (error != MPI_SUCCESS || code == MPI_SUCCESS))
            statuses[at].MPI_ERROR = error;
        has_failed |= error != MPI_SUCCESS;
    }
    free(failures->list);
    if (!has_failed || code != MPI_SUCCESS) return code;
    PMPI_Comm_call_errhandler(comm, MPI_ERR_IN_STATUS);
    return MPI_ERR_IN_STATUS;
}

/* Rounds before the core is given away, if it is this rank's own; and how often hopbine is moved on in each
 * of them while nothing happens. */
enum { SPIN_ROUNDS = 75, MOVES_PER_ROUND = 4 };

static int rounds_to_spin(void) {
    /* Threads may find it out at the same time: they find the same. */
    static int rounds = -1;
    if (rounds < 0) rounds = hopbine_own_cores() ? SPIN_ROUNDS : 0;
    return rounds;
}

/* Rounds of a wait, while this rank spins, in one of which MPI is asked about a request that is not its own. */
enum { ROUNDS_PER_ASK = 4 };

/* PMPI_Test, for a request that is MPI's or hopbine's. */
static int test_one(MPI_Request *request, int *flag, MPI_Status *status, int left) {
    FIND_AS(test, PMPI_Test);
    if (end_request(request) == NOT_DONE && left % ROUNDS_PER_ASK != 0) return *flag = 0, MPI_SUCCESS;
    return test(request, flag, status);
}

/* Whether these are all done, from *first on, which is the first that is not. MPI_Testall would tell, but MPICH's
 * fails on persistent collectives of its own. */
static int look_at_all(int n, MPI_Request requests[], int *first, int left) {
    FIND_AS(look, PMPI_Request_get_status);
    for (int is_done = 1; *first < n; ++*first) {
        const int ended = end_request(&requests[*first]);
        if (ended == ENDED) continue;
        if (ended == NOT_DONE && left % ROUNDS_PER_ASK != 0) break;
        const int code = look(requests[*first], &is_done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS || !is_done) return code;
    }
    return MPI_SUCCESS;
}

/* Tests until something is done; `call` is MPI's own test, and `direct` what is left to do when hopbine has
 * nothing under way any more. */
#define UNTIL(is_done, by, N, REQUESTS, call, end, direct)                                         \
    for (int left = rounds_to_spin();; left -= left > 0) {                                         \
        struct failures failures = drive(left ? MOVES_PER_ROUND : 1, by, N, REQUESTS);             \
        const int code = call;                                                                     \
        if (code != MPI_SUCCESS || (is_done)) return end;                                          \
        free(failures.list);                                                                       \
        if (has_none(&n_outstanding)) return direct;                                               \
        if (left == 0) sched_yield();                                                              \
    }

DOOR_OUT int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    FIND(PMPI_Wait);
    int flag = 0;
    if (has_none(&n_outstanding)) return next(request, status);
    /* It may have ended when it was started. */
    if (end_request(request) == ENDED && status == MPI_STATUS_IGNORE) return MPI_SUCCESS;
    UNTIL(flag, BY_US, 1, request, test_one(request, &flag, status, left), end_one(&failures, 0, code),
          next(request, status))
}
BOTH(MPI_Wait, (MPI_Request *request, MPI_Status *status))

DOOR_OUT int MPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[]) {
    FIND(PMPI_Waitall);
    int first = 0;
    if (has_none(&n_outstanding)) return next(n, requests, statuses);
    UNTIL(first >= n, BY_US, n, requests, look_at_all(n, requests, &first, left),
          end_several(&failures, n, NULL, statuses, code == MPI_SUCCESS ? next(n, requests, statuses) : code),
          next(n, requests, statuses))
}
BOTH(MPI_Waitall, (int n, MPI_Request requests[], MPI_Status statuses[]))

DOOR_OUT int MPI_Waitany(int n, MPI_Request requests[], int *at, MPI_Status *status) {
    FIND(PMPI_Waitany);
    FIND_AS(test, PMPI_Testany);
    int flag = 0;
    if (has_none(&n_outstanding)) return next(n, requests, at, status);
    UNTIL(flag, BY_MPI, n, requests, test(n, requests, at, &flag, status),
          end_one(&failures, *at == MPI_UNDEFINED ? -1 : *at, code), next(n, requests, at, status))
}
BOTH(MPI_Waitany, (int n, MPI_Request requests[], int *at, MPI_Status *status))

DOOR_OUT int MPI_Waitsome(int n, MPI_Request requests[], int *n_done, int places[], MPI_Status statuses[]) {
    FIND(PMPI_Waitsome);
    FIND_AS(test, PMPI_Testsome);
    if (has_none(&n_outstanding)) return next(n, requests, n_done, places, statuses);
    UNTIL(*n_done != 0, BY_MPI, n, requests, test(n, requests, n_done, places, statuses),
          end_several(&failures, *n_done == MPI_UNDEFINED ? 0 : *n_done, places, statuses, code),
          next(n, requests, n_done, places, statuses))
}
BOTH(MPI_Waitsome, (int n, MPI_Request requests[], int *n_done, int places[], MPI_Status statuses[]))

DOOR_OUT int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
    FIND(PMPI_Test);
    if (has_none(&n_outstanding)) return next(request, flag, status);
    struct failures failures = drive(1, BY_US, 1, request);
    end_request(request);
    const int code = next(request, flag, status);
    return end_one(&failures, *flag ? 0 : -1, code);
}
BOTH(MPI_Test, (MPI_Request *request, int *flag, MPI_Status *status))

DOOR_OUT int MPI_Testall(int n, MPI_Request requests[], int *flag, MPI_Status statuses[]) {
    FIND(PMPI_Testall);
    if (has_none(&n_outstanding)) return next(n, requests, flag, statuses);
    struct failures failures = drive(1, BY_MPI, n, requests);
    const int code = next(n, requests, flag, statuses);
    return end_several(&failures, *flag ? n : 0, NULL, statuses, code);
}
BOTH(MPI_Testall, (int n, MPI_Request requests[], int *flag, MPI_Status statuses[]))

DOOR_OUT int MPI_Testany(int n, MPI_Request requests[], int *at, int *flag, MPI_Status *status) {
    FIND(PMPI_Testany);
    if (has_none(&n_outstanding)) return next(n, requests, at, flag, status);
    struct failures failures = drive(1, BY_MPI, n, requests);
    const int code = next(n, requests, at, flag, status);
    return end_one(&failures, *flag && *at != MPI_UNDEFINED ? *at : -1, code);
}
BOTH(MPI_Testany, (int n, MPI_Request requests[], int *at, int *flag, MPI_Status *status))

DOOR_OUT int MPI_Testsome(int n, MPI_Request requests[], int *n_done, int places[], MPI_Status statuses[]) {
    FIND(PMPI_Testsome);
    if (has_none(&n_outstanding)) return next(n, requests, n_done, places, statuses);
    struct failures failures = drive(1, BY_MPI, n, requests);
    const int code = next(n, requests, n_done, places, statuses);
    return end_several(&failures, *n_done == MPI_UNDEFINED ? 0 : *n_done, places, statuses, code);
}
BOTH(MPI_Testsome, (int n, MPI_Request requests[], int *n_done, int places[], MPI_Status statuses[]))

DOOR_OUT int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status) {
    FIND(PMPI_Request_get_status);
    if (!has_none(&n_outstanding)) free(drive(1, BY_MPI, 1, &request).list);
    return next(request, flag, status);
}
BOTH(MPI_Request_get_status, (MPI_Request request, int *flag, MPI_Status *status))

DOOR_OUT int MPI_Start(MPI_Request *request) {
    FIND(PMPI_Start);
    const int code = next(request);
    if (code == MPI_SUCCESS && !has_none(&n_requests)) start_requests(1, request);
    return code;
}
BOTH(MPI_Start, (MPI_Request *request))

DOOR_OUT int MPI_Startall(int n, MPI_Request requests[]) {
    FIND(PMPI_Startall);
    const int code = next(n, requests);
    if (code == MPI_SUCCESS && !has_none(&n_requests)) start_requests(n, requests);
    return code;
}
BOTH(MPI_Startall, (int n, MPI_Request requests[]))

DOOR_OUT int MPI_Request_free(MPI_Request *request) {
    FIND(PMPI_Request_free);
    MPI_Comm comm;
    if (has_none(&n_requests) || !request || free_request(*request, &comm)) return next(request);
    PMPI_Comm_call_errhandler(comm, MPI_ERR_REQUEST);
    return MPI_ERR_REQUEST;
}
BOTH(MPI_Request_free, (MPI_Request *request))

/* A collective cannot be cancelled. */
DOOR_OUT int MPI_Cancel(MPI_Request *request) {
    FIND(PMPI_Cancel);
    MPI_Comm comm;
    if (has_none(&n_requests) || !request || !is_served(*request, &comm)) return next(request);
    PMPI_Comm_call_errhandler(comm, MPI_ERR_REQUEST);
    return MPI_ERR_REQUEST;
}
BOTH(MPI_Cancel, (MPI_Request *request))
