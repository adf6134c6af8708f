/* MPI's part of requests that hopbine serves (requests.h): receives of empty messages from this rank to itself, each with
 * a tag of its own. A receive that the program has no handle of any more, and MPI no message for, serves the next
 * request: to begin one and to end it by a message takes MPI longer than hopbine a short call. */
#ifndef HOPBINE_RECEIVES_H
#define HOPBINE_RECEIVES_H

#include "doors.h"

/* All of these are called under the lock of requests.c. */

/* Finds a receive for a request: one that was kept, or a new one. Returns its tag, or 0 if there is none. */
int begin_receive(int is_persistent, MPI_Request *native);

/* Sends its message: MPI knows that the request is done. */
void send_to_receive(int tag);

/* MPI has ended the receive with this tag, or freed it. */
void end_receive(int tag);

/* Nobody has this receive any more, whose message has not been sent. */
void keep_receive(MPI_Request native, int tag);

/* At the end. */
void end_receives(void);

#endif
