/* Requests that hopbine serves, as the interposed calls see them (complete.c).
 *
 * The program holds a request of MPI's own: a receive, persistent or not, of an empty message from this
 * rank to itself, which is sent when hopbine's request is done. So MPI's requests and hopbine's are
 * waited for together, by MPI; and a persistent one keeps its handle. */
#ifndef HOPBINE_REQUESTS_H
#define HOPBINE_REQUESTS_H

#include "doors.h"

struct request;

/* Requests that MPI does not know to be done, or that have failed and nobody was told; those that have
 * failed; and all that there are, also persistent ones that are not under way. */
extern int n_outstanding, n_failed, n_requests;

/* Why this library serves no requests; null if it does. */
const char *against_requests(void);

/* Starts, or prepares, a call that gives a request, as serve_job() does, and sets *call->request. */
int serve_request(struct call *call, struct state *state, int *code, int *error);

/* Moves requests on, unless another thread does, up to `most` times as long as nothing happens, and has MPI
 * know of those that are done. */
void drive_requests(int most);

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

/* The communicator is freed; its requests go on. */
void forget_comm(MPI_Comm comm);

/* For the thread in the background (background.c): whether there are requests under way, and how often
 * the program has moved them on; and moves them on, without a call of MPI's. */
int are_under_way(void);
unsigned long n_drives(void);
int poll_requests(void);

/* A request is under way: the thread in the background is to see to it. And the end of that thread. */
void look_after_requests(void);
void end_background(void);

#endif
