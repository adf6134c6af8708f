/* Requests that hopbine serves: the interface to the interposed calls (complete.c, starts.c).
 *
 * The program's handle is an MPI request: a receive, persistent or not, of an empty message from this rank to itself,
 * which is sent when hopbine's request is done. So MPI waits for its own requests and hopbine's together, and a
 * persistent request keeps its handle. A request that is not persistent can end without MPI; its receive then serves
 * another request (end_request). */
#ifndef HOPBINE_REQUESTS_H
#define HOPBINE_REQUESTS_H

#include "common.h"

struct request;

/* n_outstanding: requests that MPI does not know to be done, and failed requests whose error has not been returned.
 * Of these, n_endable: those that end_request() can end now; n_failed: the failed ones. n_requests: all requests, also
 * inactive persistent ones. */
extern int n_outstanding, n_endable, n_failed, n_requests;

/* Whether one of these numbers is 0, as far as this thread sees, or the call is hopbine's own: then it is MPI's alone. */
static inline int has_none(const int *number) { return in_hopbine || !__atomic_load_n(number, __ATOMIC_RELAXED); }

/* Makes progress on requests, unless another thread does, polling up to `most` times while nothing happens. Then
 * completes MPI's receives of requests that are done: of all (`completes_all`), or only of those that end_request()
 * does not end. */
void drive_requests(int most, int completes_all);

/* Ends a request of hopbine's if it is done, not persistent and has not failed; the program's handle is then null.
 * Returns what it found. */
enum found { NOT_SERVED, NOT_DONE, IS_DONE };
enum found end_request(MPI_Request *native);

/* The same for up to `most` of these requests; `places`, unless null, receives their indices. `only_hopbine_pending`:
 * at least one request remains that end_request() will end, and all others that remain are such or null. */
struct ended {
    int n, only_hopbine_pending;
};
struct ended end_some(int n, MPI_Request natives[], int most, int places[]);

/* NOT_DONE if one of these is an unfinished request that end_request() will end; IS_DONE if end_request() can end all
 * that are not null. */
enum found check_requests(int n, const MPI_Request natives[]);

/* The request of this handle if it has failed, else null. MPI now knows that it is done. Once MPI has freed the handle,
 * another thread's request may get it, so that nothing finds the failed one by it until one of the calls below. */
struct request *failed_request(MPI_Request native);

/* Returns the error of a failed request, and the communicator on which to raise it. The request no longer counts as
 * failed. */
int take_failure(struct request *failed, MPI_Comm *comm);

/* Leaves a failed request, whose handle MPI has not freed, to a later call. */
void leave_failure(struct request *failed);

/* Starts those of these requests that are persistent requests of hopbine's. MPI has started its receives already. */
void start_requests(int n, const MPI_Request natives[]);

/* Called before MPI frees its receive of a request. Returns 0 if the request may not be freed, as it is not
 * persistent, and the communicator on which to raise that error. */
int free_request(MPI_Request native, MPI_Comm *comm);

/* Whether a request is hopbine's, and the communicator on which to raise errors about it. */
int is_served(MPI_Request native, MPI_Comm *comm);

#endif
