/* MPI's part of hopbine's requests (requests.h): receives of empty messages from this rank to itself, each with its
 * own tag. A receive whose handle the program no longer has, and whose message has not been sent, is reused for
 * another request: MPI takes longer to start a receive and to complete it by a message than hopbine takes for a short
 * call. */
#ifndef HOPBINE_RECEIVES_H
#define HOPBINE_RECEIVES_H

#include "common.h"

/* The lock of requests.c is held in all of these functions. */

/* Finds a receive for a request: a spare or a new one. Returns its tag, or 0 if there is none. */
int begin_receive(int is_persistent, MPI_Request *native);

/* Sends the receive's message, by which MPI learns that the request is done. */
void send_to_receive(int tag);

/* Frees a tag whose receive MPI has completed or freed. */
void end_receive(int tag);

/* Keeps a receive for reuse. The program has no handle of it, and its message has not been sent. */
void keep_receive(MPI_Request native, int tag);

/* Ends all spare receives, before MPI ends. */
void end_receives(void);

#endif
