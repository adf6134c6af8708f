/* One request, and the list of all requests: declarations common to the files that implement requests.h. */
#ifndef HOPBINE_REQUEST_H
#define HOPBINE_REQUEST_H

#include "job.h"
#include "requests.h"

#include <pthread.h>

enum phase {
    INACTIVE,
    UNDER_WAY,
    /* hopbine has completed it. The results are not unpacked yet, and MPI does not know. */
    DONE,
    /* It has failed; the next call that asks for it by its handle returns the error. */
    FAILED,
};

struct request {
    struct job job;
    MPI_Comm comm;
    /* MPI's receive, and the tag of its message; 0 if there is none. */
    MPI_Request native;
    int tag;
    /* Index in all_requests, and the next request whose handle has the same hash. */
    int index;
    struct request *next_in_bucket;
    int is_persistent, is_freed;
    /* The receive's message has been sent. */
    int native_completed;
    enum phase phase;
    /* hopbine's error code, and its message. */
    int code;
    char *message;
    /* Another rank prints the error. */
    int is_said_elsewhere;
};

/* Guards all variables below, and the requests. Held while a thread makes progress on requests. */
extern pthread_mutex_t lock_of_requests;
extern struct request **all_requests;
extern int n_all_requests;

/* Adds to a number that is written under the lock only, but read without it. */
static inline void count(int *number, int by) { __atomic_store_n(number, *number + by, __ATOMIC_RELEASE); }

/* The request of hopbine's with this handle, unless it has been freed; else null. */
struct request *find_request(MPI_Request native);

/* Adds a request to those that find_request() finds; removes it, if it is there. */
void show_request(struct request *request);
void hide_request(struct request *request);

/* Whether end_request() will end the request, unless an error occurs until then. */
static inline int ends_without_mpi(const struct request *request) {
    return !request->is_persistent && request->code == HOPBINE_SUCCESS;
}

/* Unpacks the results of a request that is DONE. Returns 0 if the request has failed, unless it has been freed. */
int end_its_job(struct request *request);

/* Completes MPI's receive, so that MPI knows that the request is done. */
void complete_native(struct request *request);

/* Makes a request inactive after its completion has been delivered; drops it unless it is persistent and not freed. */
void deactivate_request(struct request *request);

/* Removes a request from the list and frees what it owns. */
void drop_request(struct request *request);

#endif
