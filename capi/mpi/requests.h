/* Requests that hopbine serves, as the interposed calls see them (complete.c).
 *
 * The program holds a request of MPI's own: a receive, persistent or not, of an empty message from this
 * rank to itself, which is sent when hopbine's request is done. So MPI's requests and hopbine's are
 * waited for together, by MPI; and a persistent one keeps its handle. A request that is not persistent ends without MPI,
 * which goes on with the receive for the next request (end_request). */
#ifndef HOPBINE_REQUESTS_H
#define HOPBINE_REQUESTS_H

#include "doors.h"

struct request;

/* Requests that MPI does not know to be done, or that have failed and nobody was told; of these those that
 * end_request() ends, and those that have failed; and all that there are, also persistent ones that are not under way. */
extern int n_outstanding, n_quick, n_failed, n_requests;

/* Moves requests on, unless another thread does, up to `most` times as long as nothing happens. Has MPI know of those
 * that are done: `all`, or those alone that end_request() does not end. */
void drive_requests(int most, int all);

/* Ends a request of hopbine's that is done, unless it is persistent or has failed, and says what it found: the program's
 * handle is null then. */
enum asked { NOT_SERVED, NOT_DONE, IS_DONE };
enum asked end_request(MPI_Request *native);

/* The same for up to `most` of these, whose places it lists, unless `places` is null. `only_ours`: the others are such
 * requests that are not done, at least one, and null ones. */
struct ended {
    int n, only_ours;
};
struct ended end_some(int n, MPI_Request natives[], int most, int places[]);

/* NOT_DONE if one of these is of hopbine's that end_request() will end; IS_DONE if it can end all that are not null. */
enum asked look_at_requests(int n, const MPI_Request natives[]);

/* A request that has failed, of which MPI knows now that it is done; null if this is none. */
struct request *failed_request(MPI_Request native);

/* What it failed with, and where that is to be raised. It has failed no longer. */
int take_failure(struct request *failed, MPI_Comm *comm);

/* Starts whichever of these are persistent requests of hopbine's: MPI has started its own part. */
void start_requests(int n, const MPI_Request natives[]);

/* Before MPI frees its part of a request; 0 if that is forbidden, since it is not persistent, and where that error is
 * to be raised. */
int free_request(MPI_Request native, MPI_Comm *comm);

/* Whether it is one of hopbine's, and where errors about it are to be raised. */
int is_served(MPI_Request native, MPI_Comm *comm);

#endif
