/* Requests that hopbine serves: from their start to their end. See requests.h. */
#include "requests.h"

#include "background.h"
#include "job.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum phase {
    INACTIVE,
    UNDER_WAY,
    /* hopbine is done with it; the caller's buffers are yet to be seen to, and MPI to be told. */
    DONE,
    /* It has failed: whoever asks for it by its handle will be told. */
    FAILED,
};

struct request {
    struct job job;
    MPI_Request native;
    MPI_Comm comm;
    /* Of its message. */
    int tag;
    int is_persistent, is_freed;
    /* The message has been sent. */
    int is_known;
    enum phase phase;
    /* hopbine's, and what it says of it. */
    int code;
    char *message;
    /* Another rank says so. */
    int is_said_elsewhere;
};

int n_outstanding, n_failed, n_requests;

/* Of everything below. Held while requests are moved on. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* By the tag of their messages, less one. */
static struct request **all;
static int n_all, room;
/* No place before this one is free. */
static int first_free;
/* Memory of requests that are gone, for others: mostly many are made, one after the other. */
static struct request *spare[64];
static int n_spare;
static unsigned long drives;
/* hopbine_progress() at the last poll, and for how many polls that has stayed; and whether a request has been
 * started since. */
static uint64_t looked_at;
static unsigned n_quiet;
static int is_any_new;
/* How many are to be looked at, since something has happened, and which is the next. */
static int n_to_look, next;
/* Those whose phase is DONE. */
static int n_done;

/* Written under the lock only, and read without it. */
static void count(int *number, int by) { __atomic_store_n(number, *number + by, __ATOMIC_RELEASE); }

/* -- One request ----------------------------------------------------------------------------- */

/* Finds a place, and so a tag, for a request; 0 if there is none. */
static int find_tag(struct request *request) {
    int at = first_free, *most, found;
    while (at < n_all && all[at]) at++;
    if (at == room) {
        PMPI_Comm_get_attr(own_comm, MPI_TAG_UB, &most, &found);
        if (found && 2 * room > *most) return 0;
        const int wanted = room ? 2 * room : 16;
        struct request **const more = realloc(all, (size_t)wanted * sizeof *all);
        if (!more) return 0;
        all = more, room = wanted;
    }
    if (at == n_all) n_all++;
    first_free = at + 1;
    all[at] = request;
    count(&n_requests, 1);
    return request->tag = at + 1;
}

static void drop(struct request *request) {
    if (request->tag) {
        all[request->tag - 1] = NULL;
        if (first_free >= request->tag) first_free = request->tag - 1;
        count(&n_requests, -1);
        while (n_all > 0 && !all[n_all - 1]) n_all--;
    }
    if (request->job.request != HOPBINE_REQUEST_NULL) hopbine_request_free(&request->job.request);
    close_job(&request->job);
    free(request->message);
    if (n_spare < (int)(sizeof spare / sizeof *spare)) spare[n_spare++] = request;
    else free(request);
}

/* MPI is to know that the request is done. */
static void tell(struct request *request) {
    if (request->is_known) return;
    request->is_known = 1;
    PMPI_Send(NULL, 0, MPI_BYTE, 0, request->tag, own_comm);
}

static void fail(struct request *request, int code) {
    request->code = code;
    free(request->message);
    request->message = strdup(hopbine_last_error());
    request->is_said_elsewhere = hopbine_last_error_is_said_elsewhere();
}

/* Nobody waits for it any more. */
static void settle(struct request *request) {
    request->phase = INACTIVE;
    count(&n_outstanding, -1);
    if (!request->is_persistent || request->is_freed) drop(request);
}

/* The request is done, and so is MPI's part, unless there is something to tell. */
static void finish(struct request *request) {
    if (request->code == HOPBINE_SUCCESS) {
        const int code = end_job(&request->job);
        if (code != HOPBINE_SUCCESS) fail(request, code);
    }
    if (request->code == HOPBINE_SUCCESS || request->is_freed) {
        tell(request);
        settle(request);
    } else {
        request->phase = FAILED;
        count(&n_failed, 1);
    }
}

static void go(struct request *request) {
    request->phase = UNDER_WAY;
    request->code = HOPBINE_SUCCESS;
    request->is_known = 0;
    is_any_new = 1;
    count(&n_outstanding, 1);
}

/* -- Moving on ------------------------------------------------------------------------------- */

/* Polls without anything new between two looks at requests: whoever tells that a peer is gone counts them. */
enum { QUIET_POLLS = 8 };
/* Requests that a poll finds not to be done: to look at thousands takes longer than to move them on. */
enum { MOST_LOOKS = 64 };

/* Whether a request is done, or has failed. */
static int look(struct request *request) {
    int is_done = 0;
    const int code = hopbine_look(&request->job.request, &is_done);
    if (code != HOPBINE_SUCCESS) fail(request, code);
    return is_done || code != HOPBINE_SUCCESS;
}

/* Moves hopbine on, and looks at requests under way, if any can be done; returns how many of them are. */
static int poll(int most) {
    const int before = n_done;
    uint64_t now = looked_at;
    const int is_moved = hopbine_progress(world, most, &now) != HOPBINE_SUCCESS || now != looked_at;
    if (is_moved || is_any_new || ++n_quiet % QUIET_POLLS == 0 || n_to_look > n_all) n_to_look = n_all;
    looked_at = now, is_any_new = 0;
    for (int n_looks = 0; n_to_look > 0 && n_looks < MOST_LOOKS; n_to_look--) {
        if (next >= n_all) next = 0;
        struct request *const request = all[next++];
        if (!request || request->phase != UNDER_WAY) continue;
        if (look(request)) request->phase = DONE, n_done++;
        else n_looks++;
    }
    return n_done - before;
}

void drive_requests(int most) {
    if (pthread_mutex_trylock(&lock) != 0) return;
    within++;
    drives++;
    poll(most);
    for (int at = 0; n_done > 0 && at < n_all; at++) {
        if (!all[at] || all[at]->phase != DONE) continue;
        n_done--;
        finish(all[at]);
    }
    within--;
    pthread_mutex_unlock(&lock);
}

static int are_under_way(void) { return __atomic_load_n(&n_outstanding, __ATOMIC_ACQUIRE) > 0; }

static unsigned long n_drives(void) { return __atomic_load_n(&drives, __ATOMIC_RELAXED); }

static int poll_requests(void) {
    if (pthread_mutex_trylock(&lock) != 0) return 1;
    const int n_found = poll(1);
    pthread_mutex_unlock(&lock);
    return n_found;
}

/* For the thread in the background. */
static const struct polled polled = {are_under_way, n_drives, poll_requests};

/* -- Starting -------------------------------------------------------------------------------- */

/* Gives the program a handle. */
static int keep(struct request *request, const struct call *call) {
    const int tag = keep_types(&request->job) ? find_tag(request) : 0;
    if (!tag) return MPI_ERR_NO_MEM;
    int error;
    if (request->is_persistent) error = PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, tag, own_comm, &request->native);
    else error = PMPI_Irecv(NULL, 0, MPI_BYTE, 0, tag, own_comm, &request->native);
    if (error == MPI_SUCCESS) {
        *call->request = request->native;
        if (!request->is_persistent) go(request);
    }
    return error;
}

/* Persistent requests meet in the order in which they were made, whatever the order in which ranks start
 * them: each has a communicator of its own, which lives as long as it does. */
static int serve_apart(struct call *call, const struct state *state, struct job *job, int *code, int *error) {
    struct state apart = *state;
    if (call->form != PERSISTENT) return serve_job(call, state, job, code, error);
    *code = hopbine_comm_duplicate(state->comm, &apart.comm);
    if (*code != HOPBINE_SUCCESS) return 1;
    const int served = serve_job(call, &apart, job, code, error);
    hopbine_comm_free(&apart.comm);
    return served;
}

/* Not zeroed: most of it is the job's room for what few have. */
static struct request *new_request(const struct call *call) {
    struct request *const request = n_spare ? spare[--n_spare] : malloc(sizeof *request);
    if (!request) return NULL;
    clear_job(&request->job);
    request->native = MPI_REQUEST_NULL;
    request->comm = call->comm;
    request->tag = 0;
    request->is_persistent = call->form == PERSISTENT;
    request->is_freed = request->is_known = 0;
    request->phase = INACTIVE;
    request->code = HOPBINE_SUCCESS;
    request->message = NULL;
    return request;
}

/* What is started by serve_again() waits for nobody, so it may be under the lock. */
static int serve_request(struct call *call, struct state *state, int *code, int *error) {
    const int is_once = call->form == NONBLOCKING;
    pthread_mutex_lock(&lock);
    struct request *const request = new_request(call);
    int served = request && is_once && serve_again(call, state, &request->job.request, code);
    int is_well = served && *code == HOPBINE_SUCCESS;
    if (is_well) *error = keep(request, call);
    pthread_mutex_unlock(&lock);
    if (!request) return *error = MPI_ERR_NO_MEM, 1;
    if (!served) {
        served = serve_apart(call, state, &request->job, code, error);
        is_well = served && *error == MPI_SUCCESS && *code == HOPBINE_SUCCESS;
        if (is_well && is_once) keep_call(call, state, &request->job);
        pthread_mutex_lock(&lock);
        if (is_well) *error = keep(request, call);
        pthread_mutex_unlock(&lock);
    }
    if (is_well && *error == MPI_SUCCESS) {
        if (is_once) look_after(&polled);
        return 1;
    }
    pthread_mutex_lock(&lock);
    drop(request);
    pthread_mutex_unlock(&lock);
    return served;
}

static struct request *find(MPI_Request native) {
    for (int at = 0; at < n_all; at++)
        if (all[at] && all[at]->native == native && !all[at]->is_freed) return all[at];
    return NULL;
}

void start_requests(int n, const MPI_Request natives[]) {
    int n_started = 0;
    pthread_mutex_lock(&lock);
    within++;
    for (int at = 0; at < n; at++) {
        struct request *const request = find(natives[at]);
        if (!request || !request->is_persistent || request->phase != INACTIVE) continue;
        go(request);
        n_started++;
        int code = begin_job(&request->job);
        if (code == HOPBINE_SUCCESS) code = hopbine_start(request->job.request);
        if (code == HOPBINE_SUCCESS) continue;
        fail(request, code);
        request->phase = DONE, n_done++;
    }
    within--;
    pthread_mutex_unlock(&lock);
    if (n_started) look_after(&polled);
}

/* -- Failures, and the end ------------------------------------------------------------------- */

/* Where its errors are raised: its communicator may have been freed. */
static MPI_Comm comm_of(const struct request *request) {
    return request->comm == MPI_COMM_NULL ? MPI_COMM_WORLD : request->comm;
}

struct request *failed_request(MPI_Request native) {
    pthread_mutex_lock(&lock);
    struct request *const request = find(native);
    const int has_failed = request && request->phase == FAILED;
    within++;
    if (has_failed) tell(request);
    within--;
    pthread_mutex_unlock(&lock);
    return has_failed ? request : NULL;
}

int take_failure(struct request *failed, MPI_Comm *comm) {
    pthread_mutex_lock(&lock);
    *comm = comm_of(failed);
    const int error = say_failure(failed->code, failed->message ? failed->message : "", failed->is_said_elsewhere);
    count(&n_failed, -1);
    settle(failed);
    pthread_mutex_unlock(&lock);
    return error;
}

int free_request(MPI_Request native, MPI_Comm *comm) {
    pthread_mutex_lock(&lock);
    within++;
    struct request *const request = find(native);
    const int may_be = !request || request->is_persistent;
    if (!may_be) {
        *comm = comm_of(request);
    } else if (request && request->phase == INACTIVE) {
        drop(request);
    } else if (request && request->phase == FAILED) {
        tell(request);
        count(&n_failed, -1);
        request->is_freed = 1;
        settle(request);
    } else if (request) {
        request->is_freed = 1;
    }
    within--;
    pthread_mutex_unlock(&lock);
    return may_be;
}

int is_served(MPI_Request native, MPI_Comm *comm) {
    pthread_mutex_lock(&lock);
    const struct request *const request = find(native);
    if (request) *comm = comm_of(request);
    pthread_mutex_unlock(&lock);
    return request != NULL;
}

static void forget_comm(MPI_Comm comm) {
    if (!__atomic_load_n(&n_requests, __ATOMIC_ACQUIRE)) return;
    pthread_mutex_lock(&lock);
    for (int at = 0; at < n_all; at++)
        if (all[at] && all[at]->comm == comm) all[at]->comm = MPI_COMM_NULL;
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void add_requests(void) {
    library.serve_request = serve_request;
    library.forget_comm = forget_comm;
    library.end_requests = end_background;
}
