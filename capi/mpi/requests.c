/* Life of the requests that hopbine serves, from their start to their end. See requests.h. */
#include "request.h"

#include "progress_thread.h"
#include "job.h"
#include "receives.h"
#include <stdlib.h>
#include <string.h>

int n_outstanding, n_endable, n_failed, n_requests;

pthread_mutex_t lock_of_requests = PTHREAD_MUTEX_INITIALIZER;
struct request **all_requests;
int n_all_requests;
static int capacity;
/* All elements before this one are taken. */
static int first_free;
/* Requests by the hash of their handle. */
static struct request *by_handle[1024];
/* Memory of dropped requests, for new ones: programs mostly make many, one after the other. */
static struct request *spare[64];
static int n_spare;
static unsigned long drives;
/* The value of hopbine_progress() at the last poll; number of polls without a change; whether a request has been
 * started since. */
static uint64_t last_progress;
static unsigned n_quiet;
static int is_any_new;
/* Number of requests still to be checked after an event, and index of the next one. */
static int n_to_check, next;
/* Number of requests whose phase is DONE. */
static int n_done;

/* -- One request ----------------------------------------------------------------------------- */

/* Adds a request to all_requests; 0 if memory is missing. */
static int add_to_list(struct request *request) {
    int at = first_free;
    while (at < n_all_requests && all_requests[at]) at++;
    if (at == capacity) {
        const int wanted = capacity ? 2 * capacity : 16;
        struct request **const more = realloc(all_requests, (size_t)wanted * sizeof *all_requests);
        if (!more) return 0;
        all_requests = more, capacity = wanted;
    }
    if (at == n_all_requests) n_all_requests++;
    first_free = at + 1;
    all_requests[at] = request;
    request->index = at;
    count(&n_requests, 1);
    return 1;
}

static struct request **bucket_of(MPI_Request native) {
    return &by_handle[(uint64_t)(uintptr_t)native * 0x9e3779b97f4a7c15u >> 54];
}

void show_request(struct request *request) {
    struct request **const bucket = bucket_of(request->native);
    request->next_in_bucket = *bucket;
    *bucket = request;
}

void hide_request(struct request *request) {
    struct request **at = bucket_of(request->native);
    while (*at && *at != request) at = &(*at)->next_in_bucket;
    if (*at) *at = request->next_in_bucket;
}

void drop_request(struct request *request) {
    if (request->index >= 0) {
        hide_request(request);
        all_requests[request->index] = NULL;
        if (first_free > request->index) first_free = request->index;
        count(&n_requests, -1);
        while (n_all_requests > 0 && !all_requests[n_all_requests - 1]) n_all_requests--;
    }
    if (request->tag) end_receive(request->tag);
    if (request->job.request != HOPBINE_REQUEST_NULL) hopbine_request_free(&request->job.request);
    close_job(&request->job);
    free(request->message);
    if (n_spare < (int)(sizeof spare / sizeof *spare)) spare[n_spare++] = request;
    else free(request);
}

void complete_native(struct request *request) {
    if (request->native_completed) return;
    request->native_completed = 1;
    send_to_receive(request->tag);
}

static void fail(struct request *request, int code) {
    request->code = code;
    free(request->message);
    request->message = strdup(hopbine_last_error());
    request->is_said_elsewhere = hopbine_last_error_is_said_elsewhere();
}

void deactivate_request(struct request *request) {
    note_call();
    request->phase = INACTIVE;
    count(&n_outstanding, -1);
    if (!request->is_persistent || request->is_freed) drop_request(request);
}

/* Notes that hopbine has completed a request. */
static void note_done(struct request *request) {
    request->phase = DONE;
    n_done++;
    count(&n_endable, ends_without_mpi(request));
}

int end_its_job(struct request *request) {
    n_done--;
    count(&n_endable, -ends_without_mpi(request));
    if (request->code == HOPBINE_SUCCESS) {
        const int code = end_job(&request->job);
        if (code != HOPBINE_SUCCESS) fail(request, code);
    }
    if (request->code == HOPBINE_SUCCESS || request->is_freed) return 1;
    request->phase = FAILED;
    count(&n_failed, 1);
    return 0;
}

/* Ends a request that is DONE, and completes MPI's receive, unless the request has failed. */
static void finish(struct request *request) {
    if (!end_its_job(request)) return;
    complete_native(request);
    deactivate_request(request);
}

static void activate_request(struct request *request) {
    request->phase = UNDER_WAY;
    request->code = HOPBINE_SUCCESS;
    request->native_completed = 0;
    is_any_new = 1;
    count(&n_outstanding, 1);
}

/* -- Moving on ------------------------------------------------------------------------------- */

/* Polls without a change between two checks of requests. The detection of lost peers counts these checks. */
enum { QUIET_POLLS = 8 };
/* Unfinished requests that one poll checks at most: checking thousands takes longer than making progress on them. */
enum { MOST_CHECKS = 64 };

/* Whether a request is done or has failed. */
static int has_ended(struct request *request) {
    int is_done = 0;
    const int code = hopbine_look(&request->job.request, &is_done);
    if (code != HOPBINE_SUCCESS) fail(request, code);
    return is_done || code != HOPBINE_SUCCESS;
}

/* Makes progress, and checks active requests if any can be done. Returns how many have become done. */
static int poll(int most) {
    const int before = n_done;
    uint64_t now = last_progress;
    const int is_moved = hopbine_progress(world, most, &now) != HOPBINE_SUCCESS || now != last_progress;
    if (is_moved || is_any_new || ++n_quiet % QUIET_POLLS == 0 || n_to_check > n_all_requests)
        n_to_check = n_all_requests;
    last_progress = now, is_any_new = 0;
    for (int n_checks = 0; n_to_check > 0 && n_checks < MOST_CHECKS; n_to_check--) {
        if (next >= n_all_requests) next = 0;
        struct request *const request = all_requests[next++];
        if (!request || request->phase != UNDER_WAY) continue;
        if (has_ended(request)) note_done(request);
        else n_checks++;
    }
    return n_done - before;
}

void drive_requests(int most, int completes_all) {
    if (pthread_mutex_trylock(&lock_of_requests) != 0) return;
    in_hopbine++;
    drives++;
    poll(most);
    int left = completes_all ? n_done : n_done - n_endable;
    for (int at = 0; left > 0 && at < n_all_requests; at++) {
        struct request *const request = all_requests[at];
        if (!request || request->phase != DONE || (!completes_all && ends_without_mpi(request))) continue;
        finish(request);
        left--;
    }
    in_hopbine--;
    pthread_mutex_unlock(&lock_of_requests);
}

static int are_under_way(void) { return __atomic_load_n(&n_outstanding, __ATOMIC_ACQUIRE) > 0; }

static unsigned long n_drives(void) { return __atomic_load_n(&drives, __ATOMIC_RELAXED); }

static int poll_requests(void) {
    if (pthread_mutex_trylock(&lock_of_requests) != 0) return 1;
    const int n_found = poll(1);
    pthread_mutex_unlock(&lock_of_requests);
    return n_found;
}

/* For the progress thread. */
static const struct progress_hooks progress_hooks = {are_under_way, n_drives, poll_requests};

/* -- Starting -------------------------------------------------------------------------------- */

/* Adds a request to the list and gives the program a handle of it. */
static int keep(struct request *request, const struct call *call) {
    if (!duplicate_types(&request->job) || !add_to_list(request)) return MPI_ERR_NO_MEM;
    request->tag = begin_receive(request->is_persistent, &request->native);
    if (!request->tag) return MPI_ERR_NO_MEM;
    show_request(request);
    *call->request = request->native;
    if (request->is_persistent) return MPI_SUCCESS;
    activate_request(request);
    if (request->job.request == HOPBINE_REQUEST_NULL) note_done(request);
    return MPI_SUCCESS;
}

/* Ranks match persistent requests by the order in which they were made, in whatever order they start them. So each
 * has a communicator of its own, which lives as long as the request. */
static int serve_apart(struct call *call, const struct state *state, struct job *job, int *code, int *error) {
    struct state apart = *state;
    if (call->form != PERSISTENT) return serve_job(call, state, job, code, error);
    *code = hopbine_comm_duplicate_for_requests(state->comm, &apart.comm);
    if (*code != HOPBINE_SUCCESS) return 1;
    const int served = serve_job(call, &apart, job, code, error);
    hopbine_comm_free(&apart.comm);
    return served;
}

/* Returns a new request. Its memory is not cleared: most of it is space of the job that few calls use. */
static struct request *new_request(const struct call *call) {
    struct request *const request = n_spare ? spare[--n_spare] : malloc(sizeof *request);
    if (!request) return NULL;
    clear_job(&request->job);
    request->native = MPI_REQUEST_NULL;
    request->comm = call->comm;
    request->tag = 0;
    request->index = -1;
    request->is_persistent = call->form == PERSISTENT;
    request->is_freed = request->native_completed = 0;
    request->phase = INACTIVE;
    request->code = HOPBINE_SUCCESS;
    request->message = NULL;
    return request;
}

/* serve_cached() does not wait for other ranks, so it may run under the lock. */
static int serve_request(struct call *call, struct state *state, int *code, int *error) {
    const int is_once = call->form == NONBLOCKING;
    pthread_mutex_lock(&lock_of_requests);
    struct request *const request = new_request(call);
    int served = request && is_once && serve_cached(call, state, &request->job.request, code);
    int is_well = served && *code == HOPBINE_SUCCESS;
    if (is_well) *error = keep(request, call);
    pthread_mutex_unlock(&lock_of_requests);
    if (!request) return *error = MPI_ERR_NO_MEM, 1;
    if (!served) {
        served = serve_apart(call, state, &request->job, code, error);
        is_well = served && *error == MPI_SUCCESS && *code == HOPBINE_SUCCESS;
        if (is_well && is_once) cache_call(call, state, &request->job);
        pthread_mutex_lock(&lock_of_requests);
        if (is_well) *error = keep(request, call);
        pthread_mutex_unlock(&lock_of_requests);
    }
    if (is_well && *error == MPI_SUCCESS) {
        if (is_once) wake_progress_thread(&progress_hooks);
        return 1;
    }
    pthread_mutex_lock(&lock_of_requests);
    drop_request(request);
    pthread_mutex_unlock(&lock_of_requests);
    return served;
}

struct request *find_request(MPI_Request native) {
    struct request *request = *bucket_of(native);
    while (request && (request->native != native || request->is_freed)) request = request->next_in_bucket;
    return request;
}

void start_requests(int n, const MPI_Request natives[]) {
    int n_started = 0;
    pthread_mutex_lock(&lock_of_requests);
    in_hopbine++;
    for (int at = 0; at < n; at++) {
        struct request *const request = find_request(natives[at]);
        if (!request || !request->is_persistent || request->phase != INACTIVE) continue;
        activate_request(request);
        n_started++;
        int code = begin_job(&request->job);
        if (code == HOPBINE_SUCCESS) code = hopbine_start(request->job.request);
        if (code == HOPBINE_SUCCESS) continue;
        fail(request, code);
        note_done(request);
    }
    in_hopbine--;
    pthread_mutex_unlock(&lock_of_requests);
    if (n_started) wake_progress_thread(&progress_hooks);
}

/* -- The end --------------------------------------------------------------------------------- */

static void forget_comm(MPI_Comm comm) {
    if (!__atomic_load_n(&n_requests, __ATOMIC_ACQUIRE)) return;
    pthread_mutex_lock(&lock_of_requests);
    for (int at = 0; at < n_all_requests; at++)
        if (all_requests[at] && all_requests[at]->comm == comm) all_requests[at]->comm = MPI_COMM_NULL;
    pthread_mutex_unlock(&lock_of_requests);
}

static void end_requests(void) {
    end_progress_thread();
    end_receives();
}

__attribute__((constructor)) static void add_requests(void) {
    library.serve_request = serve_request;
    library.forget_comm = forget_comm;
    library.end_requests = end_requests;
}
