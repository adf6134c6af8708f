/* Requests that hopbine serves, as those ask for them who have MPI's handles. See requests.h. */
#include "receives.h"
#include "request.h"

int end_request(MPI_Request *native) {
    if (!native || *native == MPI_REQUEST_NULL) return NOT_SERVED;
    int found = NOT_SERVED;
    pthread_mutex_lock(&lock_of_requests);
    within++;
    struct request *const request = find_request(*native);
    if (request && is_quick(request) && request->phase == UNDER_WAY) found = NOT_DONE;
    if (request && is_quick(request) && request->phase == DONE && end_its_job(request)) {
        found = ENDED;
        *native = MPI_REQUEST_NULL;
        keep_receive(request->native, request->tag);
        request->tag = 0;
        settle(request);
    }
    within--;
    pthread_mutex_unlock(&lock_of_requests);
    return found;
}

/* Where its errors are raised: its communicator may have been freed. */
static MPI_Comm comm_of(const struct request *request) {
    return request->comm == MPI_COMM_NULL ? MPI_COMM_WORLD : request->comm;
}

struct request *failed_request(MPI_Request native) {
    pthread_mutex_lock(&lock_of_requests);
    struct request *const request = find_request(native);
    const int has_failed = request && request->phase == FAILED;
    within++;
    if (has_failed) tell(request);
    within--;
    pthread_mutex_unlock(&lock_of_requests);
    return has_failed ? request : NULL;
}

int take_failure(struct request *failed, MPI_Comm *comm) {
    pthread_mutex_lock(&lock_of_requests);
    *comm = comm_of(failed);
    const int error = say_failure(failed->code, failed->message ? failed->message : "", failed->is_said_elsewhere);
    count(&n_failed, -1);
    settle(failed);
    pthread_mutex_unlock(&lock_of_requests);
    return error;
}

int free_request(MPI_Request native, MPI_Comm *comm) {
    pthread_mutex_lock(&lock_of_requests);
    within++;
    struct request *const request = find_request(native);
    const int may_be = !request || request->is_persistent;
    if (!may_be) {
        *comm = comm_of(request);
    } else if (request && request->phase == INACTIVE) {
        drop_request(request);
    } else if (request && request->phase == FAILED) {
        tell(request);
        count(&n_failed, -1);
        request->is_freed = 1;
        settle(request);
    } else if (request) {
        request->is_freed = 1;
    }
    within--;
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
