/* Functions of requests.h that look up hopbine's requests by their MPI handles. */
#include "receives.h"
#include "request.h"

/* The request of hopbine's with this handle, if it can end without MPI (ends_without_mpi()); else null. */
static struct request *find_endable(MPI_Request native) {
    struct request *const request = native == MPI_REQUEST_NULL ? NULL : find_request(native);
    return request && ends_without_mpi(request) ? request : NULL;
}

/* Ends a request that is DONE and has not failed; returns whether it did. Its MPI receive is kept for another
 * request. */
static int end_without_mpi(struct request *request, MPI_Request *native) {
    if (request->phase != DONE || !end_its_job(request)) return 0;
    *native = MPI_REQUEST_NULL;
    keep_receive(request->native, request->tag);
    request->tag = 0;
    deactivate_request(request);
    return 1;
}

enum found end_request(MPI_Request *native) {
    const struct ended ended = end_some(native != NULL, native, 1, NULL);
    return ended.n ? IS_DONE : ended.only_hopbine_pending ? NOT_DONE : NOT_SERVED;
}

struct ended end_some(int n, MPI_Request natives[], int most, int places[]) {
    struct ended ended = {0, 0};
    int n_waiting = 0, has_others = 0;
    pthread_mutex_lock(&lock_of_requests);
    in_hopbine++;
    for (int at = 0; at < n && ended.n < most && !(has_others && n_endable == 0); at++) {
        struct request *const request = find_endable(natives[at]);
        if (!request) has_others |= natives[at] != MPI_REQUEST_NULL;
        else if (!end_without_mpi(request, &natives[at])) n_waiting++;
        else if (places) places[ended.n++] = at;
        else ended.n++;
    }
    in_hopbine--;
    pthread_mutex_unlock(&lock_of_requests);
    ended.only_hopbine_pending = n_waiting > 0 && !has_others;
    return ended;
}

enum found check_requests(int n, const MPI_Request natives[]) {
    enum found found = IS_DONE;
    pthread_mutex_lock(&lock_of_requests);
    for (int at = 0; at < n && found != NOT_DONE; at++) {
        const struct request *const request = find_endable(natives[at]);
        if (request && request->phase == UNDER_WAY) found = NOT_DONE;
        else if (!request && natives[at] != MPI_REQUEST_NULL) found = NOT_SERVED;
    }
    pthread_mutex_unlock(&lock_of_requests);
    return found;
}

/* The communicator on which errors of a request are raised: MPI_COMM_WORLD if its own has been freed. */
static MPI_Comm comm_of(const struct request *request) {
    return request->comm == MPI_COMM_NULL ? MPI_COMM_WORLD : request->comm;
}

struct request *failed_request(MPI_Request native) {
    pthread_mutex_lock(&lock_of_requests);
    struct request *const request = find_request(native);
    const int has_failed = request && request->phase == FAILED;
    in_hopbine++;
    if (has_failed) {
        hide_request(request);
        complete_native(request);
    }
    in_hopbine--;
    pthread_mutex_unlock(&lock_of_requests);
    return has_failed ? request : NULL;
}

int take_failure(struct request *failed, MPI_Comm *comm) {
    pthread_mutex_lock(&lock_of_requests);
    *comm = comm_of(failed);
    const int error = print_failure(failed->code, failed->message ? failed->message : "", failed->is_said_elsewhere);
    count(&n_failed, -1);
    /* A persistent request keeps its handle. */
    show_request(failed);
    deactivate_request(failed);
    pthread_mutex_unlock(&lock_of_requests);
    return error;
}

void leave_failure(struct request *failed) {
    pthread_mutex_lock(&lock_of_requests);
    show_request(failed);
    pthread_mutex_unlock(&lock_of_requests);
}

int free_request(MPI_Request native, MPI_Comm *comm) {
    pthread_mutex_lock(&lock_of_requests);
    in_hopbine++;
    struct request *const request = find_request(native);
    const int may_be = !request || request->is_persistent;
    if (!may_be) {
        *comm = comm_of(request);
    } else if (request && request->phase == INACTIVE) {
        drop_request(request);
    } else if (request && request->phase == FAILED) {
        complete_native(request);
        count(&n_failed, -1);
        request->is_freed = 1;
        deactivate_request(request);
    } else if (request) {
        request->is_freed = 1;
    }
    in_hopbine--;
    pthread_mutex_unlock(&lock_of_requests);
    return may_be;
}

int is_served(MPI_Request native, MPI_Comm *comm) {
    pthread_mutex_lock(&lock_of_requests);
    const struct request *const request = find_request(native);
    if (request) *comm = comm_of(request);
    pthread_mutex_unlock(&lock_of_requests);
    return request != NULL;
}
