/* What the files of hopbine's requests have in common: one request, and the list of all. See requests.h. */
#ifndef HOPBINE_REQUEST_H
#define HOPBINE_REQUEST_H

#include "job.h"
#include "requests.h"

#include <pthread.h>

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
    MPI_Comm comm;
    /* MPI's part, and the tag of its message: 0 if there is none. */
    MPI_Request native;
    int tag;
    /* In the list of all, and the next one whose handle has the same hash. */
    int place;
    struct request *beside;
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

/* Of all that follows. Held while requests are moved on. */
extern pthread_mutex_t lock_of_requests;
extern struct request **all_requests;
extern int n_all_requests;

/* A number that is written under the lock only, and read without it. */
static inline void count(int *number, int by) { __atomic_store_n(number, *number + by, __ATOMIC_RELEASE); }

/* The request that MPI's part stands for, if it is one of hopbine's that has not been freed. */
struct request *find_request(MPI_Request native);

/* Whether end_request() ends it once it is done, if all goes well. */
static inline int is_quick(const struct request *request) {
    return !request->is_persistent && request->code == HOPBINE_SUCCESS;
}

/* One that is DONE: the caller's buffers are seen to. Returns whether that went well, as all has. */
int end_its_job(struct request *request);

/* MPI is to know that the request is done. */
void tell(struct request *request);

/* Nobody waits for it any more. */
void settle(struct request *request);

/* It is gone. */
void drop_request(struct request *request);

#endif
