/* MPI's functions that wait for and test requests. They make progress on hopbine's requests as well; with no request of
 * hopbine's active, a call goes straight to MPI.
 *
 * These functions end hopbine's requests themselves, so that MPI need not learn that they are done. They still call
 * MPI's test from time to time, to make progress on MPI's own requests.
 *
 * MPI learns that a failed request is done only when the program asks for that request; the call then returns the
 * error. */
#include "interposed.h"
#include "requests.h"

#include <sched.h>
#include <stdlib.h>

/* The requests of a call that have failed; null once their error has been taken. */
struct failures {
    int n;
    struct {
        int at;
        struct request *request;
    } *list;
};

/* Makes progress on requests, polling up to `most` times while nothing happens, and returns those of `requests` that
 * have failed. */
static struct failures drive(int most, int n, const MPI_Request requests[]) {
    struct failures failures = {0, NULL};
    drive_requests(most, 0);
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

/* The error of the request at index `at`, or MPI_SUCCESS. */
static int failure_of(struct failures *failures, int at, MPI_Comm *comm) {
    for (int f = 0; f < failures->n; f++) {
        struct request *const failed = failures->list[f].request;
        if (failures->list[f].at != at) continue;
        failures->list[f].request = NULL;
        return take_failure(failed, comm);
    }
    return MPI_SUCCESS;
}

/* Leaves the requests whose error has not been taken to a later call. */
static void leave(struct failures *failures) {
    for (int f = 0; f < failures->n; f++)
        if (failures->list[f].request) leave_failure(failures->list[f].request);
    free(failures->list);
}

/* Ends a call about one request, the one at index `at`; a negative `at` means none. */
static int end_one(struct failures *failures, int at, int code) {
    MPI_Comm comm = MPI_COMM_WORLD;
    const int error = code == MPI_SUCCESS && at >= 0 ? failure_of(failures, at, &comm) : MPI_SUCCESS;
    leave(failures);
    if (error == MPI_SUCCESS) return code;
    PMPI_Comm_call_errhandler(comm, error);
    return error;
}

/* Ends a call about several requests. statuses[k] is that of the request at places[k], or at k if `places` is null. */
static int end_several(struct failures *failures, int n, const int *places, MPI_Status *statuses, int code) {
    MPI_Comm comm = MPI_COMM_WORLD;
    int has_failed = 0;
    for (int at = 0; failures->n && at < n; at++) {
        const int error = failure_of(failures, places ? places[at] : at, &comm);
        if (statuses != MPI_STATUSES_IGNORE && (error != MPI_SUCCESS || code == MPI_SUCCESS))
            statuses[at].MPI_ERROR = error;
        has_failed |= error != MPI_SUCCESS;
    }
    leave(failures);
    if (!has_failed || code != MPI_SUCCESS) return code;
    PMPI_Comm_call_errhandler(comm, MPI_ERR_IN_STATUS);
    return MPI_ERR_IN_STATUS;
}

/* Rounds of a wait before it yields the core, if the core is this rank's alone; and polls of hopbine per round while
 * nothing happens. */
enum { SPIN_ROUNDS = 75, POLLS_PER_ROUND = 4 };

static int rounds_to_spin(void) {
    /* A benign race: all threads compute the same value. */
    static int rounds = -1;
    if (rounds < 0) rounds = hopbine_own_cores() ? SPIN_ROUNDS : 0;
    return rounds;
}

/* A rank that spins, or tests, calls MPI's test once in so many rounds if only requests of hopbine's are pending. */
enum { ROUNDS_PER_MPI_TEST = 4 };
static int should_call_mpi(int left) { return left % ROUNDS_PER_MPI_TEST == 0; }

/* Counts the tests of a thread; a test passes the result as `left`. */
static int count_tests(void) {
    static PER_THREAD int n;
    return n = (n + 1) % ROUNDS_PER_MPI_TEST;
}

/* The status of a request that hopbine has ended: an empty one. */
static int set_empty_status(MPI_Status *status) {
    FIND_AS(wait, PMPI_Wait);
    MPI_Request none = MPI_REQUEST_NULL;
    return status == MPI_STATUS_IGNORE ? MPI_SUCCESS : wait(&none, status);
}

/* PMPI_Test for a request that is MPI's or hopbine's. The functions below do the same for MPI's other tests. */
static int test_one(MPI_Request *request, int *flag, MPI_Status *status, int left) {
    FIND_AS(test, PMPI_Test);
    const enum found found = end_request(request);
    *flag = found == IS_DONE;
    if (found == IS_DONE) return set_empty_status(status);
    if (found == NOT_DONE && !should_call_mpi(left)) return MPI_SUCCESS;
    return test(request, flag, status);
}

/* Ends the first of these requests that is known to be done. */
static int end_first(int n, MPI_Request requests[], int *at) {
    return !has_none(&n_endable) && end_some(n, requests, 1, at).n;
}

static int test_any(int n, MPI_Request requests[], int *at, int *flag, MPI_Status *status, int left) {
    FIND_AS(test, PMPI_Testany);
    const struct ended ended = end_some(n, requests, 1, at);
    *flag = ended.n;
    if (ended.n) return set_empty_status(status);
    *at = MPI_UNDEFINED;
    if (ended.only_hopbine_pending && !should_call_mpi(left)) return MPI_SUCCESS;
    return test(n, requests, at, flag, status);
}

static int test_some(int n, MPI_Request requests[], int *n_done, int places[], MPI_Status statuses[], int left) {
    FIND_AS(test, PMPI_Testsome);
    const struct ended ended = end_some(n, requests, n, places);
    const int has_statuses = statuses != MPI_STATUSES_IGNORE;
    int n_more = 0, code = MPI_SUCCESS;
    for (int k = 0; has_statuses && k < ended.n; k++) set_empty_status(&statuses[k]);
    if (!ended.only_hopbine_pending || (ended.n == 0 && should_call_mpi(left)))
        code = test(n, requests, &n_more, places + ended.n, has_statuses ? statuses + ended.n : statuses);
    for (int k = 0; has_statuses && code == MPI_ERR_IN_STATUS && k < ended.n; k++) statuses[k].MPI_ERROR = MPI_SUCCESS;
    /* n_more is MPI_UNDEFINED if none of the remaining requests is active. */
    *n_done = n_more != MPI_UNDEFINED ? ended.n + n_more : ended.n ? ended.n : MPI_UNDEFINED;
    return code;
}

static int test_all(int n, MPI_Request requests[], int *flag, MPI_Status statuses[], int left) {
    FIND_AS(test, PMPI_Testall);
    const enum found found = check_requests(n, requests);
    *flag = 0;
    if (found == NOT_DONE && !should_call_mpi(left)) return MPI_SUCCESS;
    if (found == IS_DONE) end_some(n, requests, n, NULL);
    /* No request may end before all are done, and only MPI can tell whether its own are. */
    else if (found == NOT_SERVED) drive_requests(1, 1);
    return test(n, requests, flag, statuses);
}

static int test_status(MPI_Request request, int *flag, MPI_Status *status, int left) {
    FIND_AS(test, PMPI_Request_get_status);
    const enum found found = check_requests(1, &request);
    *flag = 0;
    if (found == NOT_DONE && !should_call_mpi(left)) return MPI_SUCCESS;
    /* The request stays, but its results must be in the program's buffer: it ends by MPI. */
    if (found == IS_DONE) drive_requests(1, 1);
    return test(request, flag, status);
}

/* The status of one request of several, if the caller wants statuses. */
static MPI_Status *one_of(MPI_Status statuses[], int at) {
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + at;
}

/* State of an MPI_Waitall: the first request that is not done, whether one has failed, and the communicator on which
 * to raise that error. */
struct all {
    int first, has_failed;
    MPI_Comm comm;
};

/* Ends requests one by one, up to the first that is not done. MPI_Testall for all at once is no option: that of MPICH
 * 4 fails on MPICH's own persistent collectives, and in MPICH 5 a persistent receive has lost its status once
 * MPI_Request_get_status has seen it done. */
static int end_in_turn(int n, MPI_Request requests[], MPI_Status statuses[], struct all *all, int left) {
    FIND_AS(wait, PMPI_Wait);
    for (; all->first < n; all->first++) {
        MPI_Request *const request = &requests[all->first];
        MPI_Status *const status = one_of(statuses, all->first);
        struct request *const failed = has_none(&n_failed) ? NULL : failed_request(*request);
        int is_done = 1;
        int code = failed ? wait(request, status) : test_one(request, &is_done, status, left);
        if (code == MPI_SUCCESS && !is_done) break;
        if (failed) code = take_failure(failed, &all->comm);
        if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = code;
        all->has_failed |= code != MPI_SUCCESS;
    }
    return MPI_SUCCESS;
}

/* MPI has raised the errors of its own requests already. */
static int end_all(const struct all *all, int code) {
    if (all->comm != MPI_COMM_NULL) PMPI_Comm_call_errhandler(all->comm, MPI_ERR_IN_STATUS);
    return all->has_failed ? MPI_ERR_IN_STATUS : code;
}

/* Repeats `call`, one of the tests above, until `is_done`. `direct` is the rest of the work once hopbine has no
 * active request left: a call of MPI's own function. */
#define UNTIL(is_done, N, REQUESTS, call, end, direct)                                             \
    for (int left = rounds_to_spin();; left -= left > 0) {                                         \
        struct failures failures = drive(left ? POLLS_PER_ROUND : 1, N, REQUESTS);                 \
        const int code = call;                                                                     \
        if (code != MPI_SUCCESS || (is_done)) return end;                                          \
        leave(&failures);                                                                          \
        if (has_none(&n_outstanding)) return direct;                                               \
        if (left == 0) sched_yield();                                                              \
    }

EXPORTED int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    FIND(PMPI_Wait);
    int flag = 0;
    if (has_none(&n_outstanding)) return next(request, status);
    /* The request may have been done as soon as it was started. */
    if (end_request(request) == IS_DONE) return set_empty_status(status);
    UNTIL(flag, 1, request, test_one(request, &flag, status, left), end_one(&failures, 0, code), next(request, status))
}
ALIAS_PMPI(MPI_Wait, (MPI_Request *request, MPI_Status *status))

EXPORTED int MPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[]) {
    FIND(PMPI_Waitall);
    struct all all = {0, 0, MPI_COMM_NULL};
    if (has_none(&n_outstanding) || n <= 0 || !requests) return next(n, requests, statuses);
    UNTIL(all.first >= n, 0, NULL, end_in_turn(n, requests, statuses, &all, left), end_all(&all, code),
          end_all(&all, next(n - all.first, requests + all.first,
                             statuses == MPI_STATUSES_IGNORE ? statuses : statuses + all.first)))
}
ALIAS_PMPI(MPI_Waitall, (int n, MPI_Request requests[], MPI_Status statuses[]))

EXPORTED int MPI_Waitany(int n, MPI_Request requests[], int *at, MPI_Status *status) {
    FIND(PMPI_Waitany);
    int flag = 0;
    if (has_none(&n_outstanding)) return next(n, requests, at, status);
    if (end_first(n, requests, at)) return set_empty_status(status);
    UNTIL(flag, n, requests, test_any(n, requests, at, &flag, status, left),
          end_one(&failures, *at == MPI_UNDEFINED ? -1 : *at, code), next(n, requests, at, status))
}
ALIAS_PMPI(MPI_Waitany, (int n, MPI_Request requests[], int *at, MPI_Status *status))

EXPORTED int MPI_Waitsome(int n, MPI_Request requests[], int *n_done, int places[], MPI_Status statuses[]) {
    FIND(PMPI_Waitsome);
    if (has_none(&n_outstanding)) return next(n, requests, n_done, places, statuses);
    UNTIL(*n_done != 0, n, requests, test_some(n, requests, n_done, places, statuses, left),
          end_several(&failures, *n_done == MPI_UNDEFINED ? 0 : *n_done, places, statuses, code),
          next(n, requests, n_done, places, statuses))
}
ALIAS_PMPI(MPI_Waitsome, (int n, MPI_Request requests[], int *n_done, int places[], MPI_Status statuses[]))

EXPORTED int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
    FIND(PMPI_Test);
    if (has_none(&n_outstanding)) {
        RETEST(code, *flag, next(request, flag, status))
        return code;
    }
    struct failures failures = drive(1, 1, request);
    RETEST(code, *flag, test_one(request, flag, status, count_tests()))
    return end_one(&failures, *flag ? 0 : -1, code);
}
ALIAS_PMPI(MPI_Test, (MPI_Request *request, int *flag, MPI_Status *status))

EXPORTED int MPI_Testall(int n, MPI_Request requests[], int *flag, MPI_Status statuses[]) {
    FIND(PMPI_Testall);
    if (has_none(&n_outstanding)) {
        RETEST(code, *flag, next(n, requests, flag, statuses))
        return code;
    }
    struct failures failures = drive(1, n, requests);
    RETEST(code, *flag, test_all(n, requests, flag, statuses, count_tests()))
    return end_several(&failures, *flag ? n : 0, NULL, statuses, code);
}
ALIAS_PMPI(MPI_Testall, (int n, MPI_Request requests[], int *flag, MPI_Status statuses[]))

EXPORTED int MPI_Testany(int n, MPI_Request requests[], int *at, int *flag, MPI_Status *status) {
    FIND(PMPI_Testany);
    if (has_none(&n_outstanding)) {
        RETEST(code, *flag, next(n, requests, at, flag, status))
        return code;
    }
    *flag = end_first(n, requests, at);
    if (*flag) return set_empty_status(status);
    struct failures failures = drive(1, n, requests);
    RETEST(code, *flag, test_any(n, requests, at, flag, status, count_tests()))
    return end_one(&failures, *flag && *at != MPI_UNDEFINED ? *at : -1, code);
}
ALIAS_PMPI(MPI_Testany, (int n, MPI_Request requests[], int *at, int *flag, MPI_Status *status))

EXPORTED int MPI_Testsome(int n, MPI_Request requests[], int *n_done, int places[], MPI_Status statuses[]) {
    FIND(PMPI_Testsome);
    if (has_none(&n_outstanding)) {
        RETEST(code, *n_done, next(n, requests, n_done, places, statuses))
        return code;
    }
    struct failures failures = drive(1, n, requests);
    RETEST(code, *n_done, test_some(n, requests, n_done, places, statuses, count_tests()))
    return end_several(&failures, *n_done == MPI_UNDEFINED ? 0 : *n_done, places, statuses, code);
}
ALIAS_PMPI(MPI_Testsome, (int n, MPI_Request requests[], int *n_done, int places[], MPI_Status statuses[]))

EXPORTED int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status) {
    FIND(PMPI_Request_get_status);
    if (has_none(&n_outstanding)) {
        RETEST(code, *flag, next(request, flag, status))
        return code;
    }
    struct failures failures = drive(1, 1, &request);
    leave(&failures);
    RETEST(code, *flag, test_status(request, flag, status, count_tests()))
    return code;
}
ALIAS_PMPI(MPI_Request_get_status, (MPI_Request request, int *flag, MPI_Status *status))

/* The forms for several requests on an MPI before 4.1, by the form for one: a program that looks them up at run time, as
 * mpi4py's wheels do, finds ours. */
static int each_status_all(int n, const MPI_Request requests[], int *flag, MPI_Status statuses[]) {
    FIND_AS(look, PMPI_Request_get_status);
    int code = MPI_SUCCESS;
    *flag = 1;
    for (int i = 0; i < n && *flag && code == MPI_SUCCESS; i++) code = look(requests[i], flag, one_of(statuses, i));
    return code;
}

static int each_status_any(int n, const MPI_Request requests[], int *at, int *flag, MPI_Status *status) {
    FIND_AS(look, PMPI_Request_get_status);
    *at = MPI_UNDEFINED;
    *flag = 1;
    int code = set_empty_status(status), is_done = 0;
    /* An empty status has no error; MPI's wait for one request leaves the field as it is. */
    if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = MPI_SUCCESS;
    for (int i = 0; i < n && !is_done && code == MPI_SUCCESS; i++) {
        if (requests[i] == MPI_REQUEST_NULL) continue;
        code = look(requests[i], &is_done, status);
        *flag = is_done;
        if (is_done) *at = i;
    }
    return code;
}

static int each_status_some(int n, const MPI_Request requests[], int *n_done, int places[], MPI_Status statuses[]) {
    FIND_AS(look, PMPI_Request_get_status);
    int code = MPI_SUCCESS;
    *n_done = MPI_UNDEFINED;
    for (int i = 0; i < n && code == MPI_SUCCESS; i++) {
        if (requests[i] == MPI_REQUEST_NULL) continue;
        if (*n_done == MPI_UNDEFINED) *n_done = 0;
        int is_done = 0;
        code = look(requests[i], &is_done, one_of(statuses, *n_done));
        if (is_done) places[(*n_done)++] = i;
    }
    return code;
}

/* MPI 4.1's forms for several requests, by MPI's own if it has them: it is told first of those that are done or have
 * failed. `FOUND` is RETEST's. They have other names in C: Intel's header declares them without `const`, others with it
 * or not at all. */
#define LOOK_AT(WHICH, FOUND, PARAMETERS, ARGUMENTS)                                               \
    EXPORTED int look_at_##WHICH PARAMETERS __asm__("MPI_Request_get_status_" #WHICH);             \
    EXPORTED int look_at_##WHICH PARAMETERS {                                                      \
        static int(*next) PARAMETERS;                                                              \
        if (!next) next = (__typeof__(next))find_mpi_function("PMPI_Request_get_status_" #WHICH);  \
        if (!has_none(&n_outstanding)) {                                                           \
            drive_requests(1, 1);                                                                  \
            struct failures failures = drive(1, n, requests);                                      \
            leave(&failures);                                                                      \
        }                                                                                          \
        RETEST(code, FOUND, next ? next ARGUMENTS : each_status_##WHICH ARGUMENTS)                 \
        return code;                                                                               \
    }                                                                                              \
    EXPORTED int plook_at_##WHICH PARAMETERS __asm__("PMPI_Request_get_status_" #WHICH)            \
        __attribute__((alias("MPI_Request_get_status_" #WHICH)));

LOOK_AT(all, *flag, (int n, const MPI_Request requests[], int *flag, MPI_Status statuses[]),
        (n, requests, flag, statuses))
LOOK_AT(any, *flag, (int n, const MPI_Request requests[], int *at, int *flag, MPI_Status *status),
        (n, requests, at, flag, status))
LOOK_AT(some, *n_done, (int n, const MPI_Request requests[], int *n_done, int places[], MPI_Status statuses[]),
        (n, requests, n_done, places, statuses))
