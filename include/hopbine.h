/* hopbine: MPI-style collectives along the links of a torus, from C, C++ and Fortran.
 *
 * Every function returns HOPBINE_SUCCESS or another HOPBINE_ERR_ code; hopbine_last_error() then says
 * what was wrong. A collective must be called by all ranks of its communicator, in the same order,
 * with the same count, type, operator and root. All functions may be called from any thread, but not in
 * a child of fork().
 *
 * Each buffer of a collective must hold what the collective needs of it, and lists have a place for each rank.
 * Nobody else may use the buffers until the call has returned or its request is done; those of a persistent
 * request must be there until it is freed. Other pointers must be valid during the call. A null pointer is
 * HOPBINE_ERR_ARG, or HOPBINE_ERR_BUFFER for a buffer, except where the text permits it.
 *
 * Made by cbindgen from capi/src; do not edit: run `HOPBINE_TEST_BLESS=1 cargo test -p hopbine-capi --test generated`. */


#ifndef HOPBINE_H
#define HOPBINE_H

#include <stddef.h>
#include <stdint.h>

/* In place of a send buffer (of the root's receive buffer in a scatter): the input is where the
 * result will be, as with MPI_IN_PLACE. */
#define HOPBINE_IN_PLACE ((void *)-1)

/* What hopbine_repeat() and hopbine_repeat_start() return if they have done nothing: the call needs the checks of its
 * function, of hopbine_bcast() for instance. */
enum { HOPBINE_NOT_REPEATED = -1 };

/* The version of this header; hopbine_version() tells the library's. */
#define HOPBINE_VERSION_MAJOR 0
#define HOPBINE_VERSION_MINOR 1
#define HOPBINE_VERSION_PATCH 0


// Signed integer of 8 bits.
#define HOPBINE_INT8 0

// Signed integer of 16 bits.
#define HOPBINE_INT16 1

// Signed integer of 32 bits.
#define HOPBINE_INT32 2

// Signed integer of 64 bits.
#define HOPBINE_INT64 3

// Unsigned integer of 8 bits; also bytes of any meaning.
#define HOPBINE_UINT8 4

// Unsigned integer of 16 bits.
#define HOPBINE_UINT16 5

// Unsigned integer of 32 bits.
#define HOPBINE_UINT32 6

// Unsigned integer of 64 bits.
#define HOPBINE_UINT64 7

// IEEE 754 binary16.
#define HOPBINE_FLOAT16 8

// bfloat16, the upper half of a float.
#define HOPBINE_BFLOAT16 9

// float, real(4).
#define HOPBINE_FLOAT 10

// double, real(8).
#define HOPBINE_DOUBLE 11

// Two floats, real part first: float _Complex, complex(4).
#define HOPBINE_FLOAT_COMPLEX 12

// Two doubles, real part first: double _Complex, complex(8).
#define HOPBINE_DOUBLE_COMPLEX 13

// A value and its location, both int32_t: MPI_2INT, MPI_2INTEGER. Pairs are for HOPBINE_MINLOC and HOPBINE_MAXLOC.
#define HOPBINE_PAIR_INT32 14

// A value and its location, both int64_t.
#define HOPBINE_PAIR_INT64 15

// A value and its location, both float: MPI_2REAL.
#define HOPBINE_PAIR_FLOAT 16

// A value and its location, both double: MPI_2DOUBLE_PRECISION.
#define HOPBINE_PAIR_DOUBLE 17

// A value, float, and its location, int32_t: MPI_FLOAT_INT.
#define HOPBINE_PAIR_FLOAT_INT32 18

// Sum; integers wrap around.
#define HOPBINE_SUM 0

// Product; integers wrap around.
#define HOPBINE_PROD 1

// Minimum; NaN if either operand is NaN.
#define HOPBINE_MIN 2

// Maximum; NaN if either operand is NaN.
#define HOPBINE_MAX 3

// Logical and: 1 if both operands are nonzero, else 0.
#define HOPBINE_LAND 4

// Logical or: 1 if either operand is nonzero, else 0.
#define HOPBINE_LOR 5

// Logical exclusive or: 1 if exactly one operand is nonzero, else 0.
#define HOPBINE_LXOR 6

// Bitwise and.
#define HOPBINE_BAND 7

// Bitwise or.
#define HOPBINE_BOR 8

// Bitwise exclusive or.
#define HOPBINE_BXOR 9

// Of two pairs the one with the smaller value; at equal values the one with the lower location. A NaN value wins.
#define HOPBINE_MINLOC 10

// Of two pairs the one with the larger value; at equal values the one with the lower location. A NaN value wins.
#define HOPBINE_MAXLOC 11

// The colour of a rank that is to be in no new communicator.
#define HOPBINE_UNDEFINED (-1)

// The call has succeeded.
#define HOPBINE_SUCCESS 0

// The handle is not a communicator (null, freed, never returned), or no communicator can be made of the given ranks.
#define HOPBINE_ERR_COMM 1

// The handle is not a request, or the request is active.
#define HOPBINE_ERR_REQUEST 2

// A count is negative, or its bytes exceed any memory.
#define HOPBINE_ERR_COUNT 3

// The number is not an element type.
#define HOPBINE_ERR_TYPE 4

// The number is not an operator, or the operator is not defined for the element type.
#define HOPBINE_ERR_OP 5

// The root is no rank of the communicator.
#define HOPBINE_ERR_ROOT 6

// A buffer is null, or buffers overlap.
#define HOPBINE_ERR_BUFFER 7

// Another argument is wrong.
#define HOPBINE_ERR_ARG 8

// hopbine_init() has not been called or has been called twice, or hopbine_finalize() has been called.
#define HOPBINE_ERR_STATE 9

// An environment variable or an option has a wrong value.
#define HOPBINE_ERR_SETTING 10

// hopbine could not be started, or the ranks did not meet.
#define HOPBINE_ERR_STARTUP 11

// A wait took longer than HOPBINE_TIMEOUT. Over MPI a call whose memory MPI is receiving into returns only when the
// sender has called MPI again; it may read memory that was sent from even later.
#define HOPBINE_ERR_TIMEOUT 12

// A rank has died, has failed, or has left.
#define HOPBINE_ERR_LOST 13

// The network, shared memory or MPI failed, in this call or in an earlier one.
#define HOPBINE_ERR_WIRE 14

// The algorithm does not exist, or it does not support the call.
#define HOPBINE_ERR_ALGORITHM 15

// An error within hopbine; please report it.
#define HOPBINE_ERR_INTERNAL 16

// Ranks made different calls: another collective, count, type, operator or root.
#define HOPBINE_ERR_MISMATCH 17

// A call with equal blocks that can be repeated on other addresses: see hopbine_repeat().
typedef struct hopbine_repeated_t hopbine_repeated_t;

// A communicator, freed by hopbine_comm_free().
typedef uint64_t hopbine_comm_t;

// A request: a non-blocking collective in progress, or a persistent collective.
typedef uint64_t hopbine_request_t;

// An error handler. It gets the error code, the message (a string that is valid during the call), and the argument
// that was set with the handler. It runs on the thread whose call failed; when it returns, that call returns the
// code. It must return or end the process: no C++ exception and no longjmp() may leave it.
typedef void (*hopbine_error_handler_t)(int code, const char *message, void *argument);

// A registration of memory, ended by hopbine_deregister().
typedef uint64_t hopbine_registration_t;

// How ranks that another launcher has started exchange the data that hopbine needs to start. Its functions must
// return or end the process: no C++ exception and no longjmp() may leave them.
typedef struct {
  // The calling rank.
  int rank;
  // Number of ranks.
  int size;
  // An allgather. Writes the `bytes` bytes at `mine` of every rank to `all`, in rank order; `bytes` is the same on
  // all ranks. Returns 0, or another number on failure. Called by hopbine_init_exchange() and hopbine_finalize().
  int (*allgather)(const void *mine, void *all, int64_t bytes, void *argument);
  // Called from time to time by a thread that waits in hopbine, so that another library makes progress in the
  // meantime; may be null.
  void (*progress)(void *argument);
  // Passed to both functions as the last argument.
  void *argument;
} hopbine_exchange_t;

// The null communicator.
#define HOPBINE_COMM_NULL 0

// The null request, on which every wait returns at once. A call that is done when it returns also has this request.
#define HOPBINE_REQUEST_NULL 0

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Combines the vectors of `count` elements of all ranks; everyone gets the result, bit for bit the
// same.
int hopbine_allreduce(const void *sendbuf,
                      void *recvbuf,
                      int64_t count,
                      int datatype,
                      int op,
                      hopbine_comm_t comm);

// Combines the vectors of `count` elements of all ranks; the root gets the result. `recvbuf` matters on
// the root only, HOPBINE_IN_PLACE there only.
int hopbine_reduce(const void *sendbuf,
                   void *recvbuf,
                   int64_t count,
                   int datatype,
                   int op,
                   int root,
                   hopbine_comm_t comm);

// Combines blocks of `count` elements, one for each rank; rank x gets block x of the result
// (MPI_Reduce_scatter_block). In place, the blocks are in `recvbuf`, and the result at its start.
int hopbine_reduce_scatter_block(const void *sendbuf,
                                 void *recvbuf,
                                 int64_t count,
                                 int datatype,
                                 int op,
                                 hopbine_comm_t comm);

// Combines vectors of `count` elements: rank x gets the combination of those of ranks 0 to x.
int hopbine_scan(const void *sendbuf,
                 void *recvbuf,
                 int64_t count,
                 int datatype,
                 int op,
                 hopbine_comm_t comm);

// As hopbine_scan(), without the rank's own vector: rank x gets the combination of those of ranks 0 to
// x - 1, and `recvbuf` of rank 0 stays as it is; it may be null unless the call is in place.
int hopbine_exscan(const void *sendbuf,
                   void *recvbuf,
                   int64_t count,
                   int datatype,
                   int op,
                   hopbine_comm_t comm);

// Gives everyone the root's vector of `count` elements.
int hopbine_bcast(void *buffer, int64_t count, int datatype, int root, hopbine_comm_t comm);

// Gives everyone the blocks of `count` elements of all ranks, in rank order. In place, a rank's own
// block is where it belongs in `recvbuf`.
int hopbine_allgather(const void *sendbuf,
                      void *recvbuf,
                      int64_t count,
                      int datatype,
                      hopbine_comm_t comm);

// Gives the root the blocks of `count` elements of all ranks, in rank order. `recvbuf` matters on the
// root only, HOPBINE_IN_PLACE there only.
int hopbine_gather(const void *sendbuf,
                   void *recvbuf,
                   int64_t count,
                   int datatype,
                   int root,
                   hopbine_comm_t comm);

// Gives rank x the root's block x of `count` elements. `sendbuf` matters on the root only, which may
// have HOPBINE_IN_PLACE for `recvbuf`: its own block then stays where it is.
int hopbine_scatter(const void *sendbuf,
                    void *recvbuf,
                    int64_t count,
                    int datatype,
                    int root,
                    hopbine_comm_t comm);

// Gives rank x the block x of `count` elements of all ranks, in rank order. In place, the blocks to
// send are in `recvbuf`; then on all ranks.
int hopbine_alltoall(const void *sendbuf,
                     void *recvbuf,
                     int64_t count,
                     int datatype,
                     hopbine_comm_t comm);

// Ends when all ranks have called it.
int hopbine_barrier(hopbine_comm_t comm);

// Gives everyone the blocks of all ranks, which may differ in size: `count` elements from this one,
// `counts[x]` from rank x, to `displs[x]` in `recvbuf`. Counts are the same on all ranks; displacements
// need not be, and are one block after the other if null. Those of blocks without elements do not
// matter.
int hopbine_allgatherv(const void *sendbuf,
                       int64_t count,
                       void *recvbuf,
                       const int64_t *counts,
                       const int64_t *displs,
                       int datatype,
                       hopbine_comm_t comm);

// Gives the root the blocks of all ranks: `count` elements from this one. `recvbuf`, `counts` and `displs`
// matter on the root only.
int hopbine_gatherv(const void *sendbuf,
                    int64_t count,
                    void *recvbuf,
                    const int64_t *counts,
                    const int64_t *displs,
                    int datatype,
                    int root,
                    hopbine_comm_t comm);

// Gives rank x the root's block x, of `counts[x]` elements at `displs[x]` of `sendbuf`; `count` elements to
// this one. `sendbuf`, `counts` and `displs` matter on the root only.
int hopbine_scatterv(const void *sendbuf,
                     const int64_t *counts,
                     const int64_t *displs,
                     void *recvbuf,
                     int64_t count,
                     int datatype,
                     int root,
                     hopbine_comm_t comm);

// Combines vectors of blocks, of `counts[x]` elements for rank x, which gets block x of the result
// (MPI_Reduce_scatter). In place, the vector is in `recvbuf`, and the result at its start.
int hopbine_reduce_scatter(const void *sendbuf,
                           void *recvbuf,
                           const int64_t *counts,
                           int datatype,
                           int op,
                           hopbine_comm_t comm);

// Gives rank x `sendcounts[x]` elements at `sdispls[x]` of `sendbuf`, and gets `recvcounts[x]`
// elements from it to `rdispls[x]` of `recvbuf`. In place (on all ranks), the second lists count for
// both.
int hopbine_alltoallv(const void *sendbuf,
                      const int64_t *sendcounts,
                      const int64_t *sdispls,
                      void *recvbuf,
                      const int64_t *recvcounts,
                      const int64_t *rdispls,
                      int datatype,
                      hopbine_comm_t comm);

// Starts hopbine_allreduce(). The buffers must be left alone until the request is done.
int hopbine_iallreduce(const void *sendbuf,
                       void *recvbuf,
                       int64_t count,
                       int datatype,
                       int op,
                       hopbine_comm_t comm,
                       hopbine_request_t *request);

// Starts hopbine_reduce(). The buffers must be left alone until the request is done.
int hopbine_ireduce(const void *sendbuf,
                    void *recvbuf,
                    int64_t count,
                    int datatype,
                    int op,
                    int root,
                    hopbine_comm_t comm,
                    hopbine_request_t *request);

// Starts hopbine_reduce_scatter_block(). The buffers must be left alone until the request is done.
int hopbine_ireduce_scatter_block(const void *sendbuf,
                                  void *recvbuf,
                                  int64_t count,
                                  int datatype,
                                  int op,
                                  hopbine_comm_t comm,
                                  hopbine_request_t *request);

// Starts hopbine_scan(). The buffers must be left alone until the request is done.
int hopbine_iscan(const void *sendbuf,
                  void *recvbuf,
                  int64_t count,
                  int datatype,
                  int op,
                  hopbine_comm_t comm,
                  hopbine_request_t *request);

// Starts hopbine_exscan(). The buffers must be left alone until the request is done.
int hopbine_iexscan(const void *sendbuf,
                    void *recvbuf,
                    int64_t count,
                    int datatype,
                    int op,
                    hopbine_comm_t comm,
                    hopbine_request_t *request);

// Starts hopbine_bcast(). The buffers must be left alone until the request is done.
int hopbine_ibcast(void *buffer,
                   int64_t count,
                   int datatype,
                   int root,
                   hopbine_comm_t comm,
                   hopbine_request_t *request);

// Starts hopbine_allgather(). The buffers must be left alone until the request is done.
int hopbine_iallgather(const void *sendbuf,
                       void *recvbuf,
                       int64_t count,
                       int datatype,
                       hopbine_comm_t comm,
                       hopbine_request_t *request);

// Starts hopbine_gather(). The buffers must be left alone until the request is done.
int hopbine_igather(const void *sendbuf,
                    void *recvbuf,
                    int64_t count,
                    int datatype,
                    int root,
                    hopbine_comm_t comm,
                    hopbine_request_t *request);

// Starts hopbine_scatter(). The buffers must be left alone until the request is done.
int hopbine_iscatter(const void *sendbuf,
                     void *recvbuf,
                     int64_t count,
                     int datatype,
                     int root,
                     hopbine_comm_t comm,
                     hopbine_request_t *request);

// Starts hopbine_alltoall(). The buffers must be left alone until the request is done.
int hopbine_ialltoall(const void *sendbuf,
                      void *recvbuf,
                      int64_t count,
                      int datatype,
                      hopbine_comm_t comm,
                      hopbine_request_t *request);

// Starts hopbine_barrier(). The buffers must be left alone until the request is done.
int hopbine_ibarrier(hopbine_comm_t comm, hopbine_request_t *request);

// Starts hopbine_allgatherv(). The buffers must be left alone until the request is done; the lists need not.
int hopbine_iallgatherv(const void *sendbuf,
                        int64_t count,
                        void *recvbuf,
                        const int64_t *counts,
                        const int64_t *displs,
                        int datatype,
                        hopbine_comm_t comm,
                        hopbine_request_t *request);

// Starts hopbine_gatherv(). The buffers must be left alone until the request is done; the lists need not.
int hopbine_igatherv(const void *sendbuf,
                     int64_t count,
                     void *recvbuf,
                     const int64_t *counts,
                     const int64_t *displs,
                     int datatype,
                     int root,
                     hopbine_comm_t comm,
                     hopbine_request_t *request);

// Starts hopbine_scatterv(). The buffers must be left alone until the request is done; the lists need not.
int hopbine_iscatterv(const void *sendbuf,
                      const int64_t *counts,
                      const int64_t *displs,
                      void *recvbuf,
                      int64_t count,
                      int datatype,
                      int root,
                      hopbine_comm_t comm,
                      hopbine_request_t *request);

// Starts hopbine_reduce_scatter(). The buffers must be left alone until the request is done; the lists need not.
int hopbine_ireduce_scatter(const void *sendbuf,
                            void *recvbuf,
                            const int64_t *counts,
                            int datatype,
                            int op,
                            hopbine_comm_t comm,
                            hopbine_request_t *request);

// Starts hopbine_alltoallv(). The buffers must be left alone until the request is done; the lists need not.
int hopbine_ialltoallv(const void *sendbuf,
                       const int64_t *sendcounts,
                       const int64_t *sdispls,
                       void *recvbuf,
                       const int64_t *recvcounts,
                       const int64_t *rdispls,
                       int datatype,
                       hopbine_comm_t comm,
                       hopbine_request_t *request);

// Prepares hopbine_allreduce() on these buffers, to be started with hopbine_start(), again and again.
int hopbine_allreduce_init(const void *sendbuf,
                           void *recvbuf,
                           int64_t count,
                           int datatype,
                           int op,
                           hopbine_comm_t comm,
                           hopbine_request_t *request);

// Prepares hopbine_reduce() on these buffers, to be started with hopbine_start(), again and again.
int hopbine_reduce_init(const void *sendbuf,
                        void *recvbuf,
                        int64_t count,
                        int datatype,
                        int op,
                        int root,
                        hopbine_comm_t comm,
                        hopbine_request_t *request);

// Prepares hopbine_reduce_scatter_block() on these buffers, to be started with hopbine_start(), again and again.
int hopbine_reduce_scatter_block_init(const void *sendbuf,
                                      void *recvbuf,
                                      int64_t count,
                                      int datatype,
                                      int op,
                                      hopbine_comm_t comm,
                                      hopbine_request_t *request);

// Prepares hopbine_scan() on these buffers, to be started with hopbine_start(), again and again.
int hopbine_scan_init(const void *sendbuf,
                      void *recvbuf,
                      int64_t count,
                      int datatype,
                      int op,
                      hopbine_comm_t comm,
                      hopbine_request_t *request);

// Prepares hopbine_exscan() on these buffers, to be started with hopbine_start(), again and again.
int hopbine_exscan_init(const void *sendbuf,
                        void *recvbuf,
                        int64_t count,
                        int datatype,
                        int op,
                        hopbine_comm_t comm,
                        hopbine_request_t *request);

// Prepares hopbine_bcast() on these buffers, to be started with hopbine_start(), again and again.
int hopbine_bcast_init(void *buffer,
                       int64_t count,
                       int datatype,
                       int root,
                       hopbine_comm_t comm,
                       hopbine_request_t *request);

// Prepares hopbine_allgather() on these buffers, to be started with hopbine_start(), again and again.
int hopbine_allgather_init(const void *sendbuf,
                           void *recvbuf,
                           int64_t count,
                           int datatype,
                           hopbine_comm_t comm,
                           hopbine_request_t *request);

// Prepares hopbine_gather() on these buffers, to be started with hopbine_start(), again and again.
int hopbine_gather_init(const void *sendbuf,
                        void *recvbuf,
                        int64_t count,
                        int datatype,
                        int root,
                        hopbine_comm_t comm,
                        hopbine_request_t *request);

// Prepares hopbine_scatter() on these buffers, to be started with hopbine_start(), again and again.
int hopbine_scatter_init(const void *sendbuf,
                         void *recvbuf,
                         int64_t count,
                         int datatype,
                         int root,
                         hopbine_comm_t comm,
                         hopbine_request_t *request);

// Prepares hopbine_alltoall() on these buffers, to be started with hopbine_start(), again and again.
int hopbine_alltoall_init(const void *sendbuf,
                          void *recvbuf,
                          int64_t count,
                          int datatype,
                          hopbine_comm_t comm,
                          hopbine_request_t *request);

// Prepares hopbine_barrier() on these buffers, to be started with hopbine_start(), again and again.
int hopbine_barrier_init(hopbine_comm_t comm, hopbine_request_t *request);

// Prepares hopbine_allgatherv() on these buffers, with these lists, to be started with hopbine_start().
int hopbine_allgatherv_init(const void *sendbuf,
                            int64_t count,
                            void *recvbuf,
                            const int64_t *counts,
                            const int64_t *displs,
                            int datatype,
                            hopbine_comm_t comm,
                            hopbine_request_t *request);

// Prepares hopbine_gatherv() on these buffers, with these lists, to be started with hopbine_start().
int hopbine_gatherv_init(const void *sendbuf,
                         int64_t count,
                         void *recvbuf,
                         const int64_t *counts,
                         const int64_t *displs,
                         int datatype,
                         int root,
                         hopbine_comm_t comm,
                         hopbine_request_t *request);

// Prepares hopbine_scatterv() on these buffers, with these lists, to be started with hopbine_start().
int hopbine_scatterv_init(const void *sendbuf,
                          const int64_t *counts,
                          const int64_t *displs,
                          void *recvbuf,
                          int64_t count,
                          int datatype,
                          int root,
                          hopbine_comm_t comm,
                          hopbine_request_t *request);

// Prepares hopbine_reduce_scatter() on these buffers, with these lists, to be started with hopbine_start().
int hopbine_reduce_scatter_init(const void *sendbuf,
                                void *recvbuf,
                                const int64_t *counts,
                                int datatype,
                                int op,
                                hopbine_comm_t comm,
                                hopbine_request_t *request);

// Prepares hopbine_alltoallv() on these buffers, with these lists, to be started with hopbine_start().
int hopbine_alltoallv_init(const void *sendbuf,
                           const int64_t *sendcounts,
                           const int64_t *sdispls,
                           void *recvbuf,
                           const int64_t *recvcounts,
                           const int64_t *rdispls,
                           int datatype,
                           hopbine_comm_t comm,
                           hopbine_request_t *request);

// Sets `*rank` to the calling rank, from 0.
int hopbine_comm_rank(hopbine_comm_t comm, int *rank);

// Sets `*size` to the number of ranks.
int hopbine_comm_size(hopbine_comm_t comm, int *size);

// Describes the torus of the communicator. Sets `*n_dims` to the number of dimensions, at most 7. Sets the first
// `room` elements of `sizes` to the sizes of the dimensions and those of `coordinates` to the calling rank's
// coordinates; either list may be null.
int hopbine_comm_torus(hopbine_comm_t comm,
                       int room,
                       int *n_dims,
                       int *sizes,
                       int *coordinates);

// Duplicates a communicator. Calls on one of the two do not affect calls on the other. Collective: all ranks must
// call it.
int hopbine_comm_duplicate(hopbine_comm_t comm,
                           hopbine_comm_t *made);

// As hopbine_comm_duplicate(), for calls that are not blocking: it leaves barrier gates, which serve blocking calls
// only, to other communicators.
int hopbine_comm_duplicate_for_requests(hopbine_comm_t comm,
                                        hopbine_comm_t *made);

// Splits a communicator: one new communicator for each colour, with the ranks that pass this colour, ordered by key,
// and by rank at equal keys. A rank that passes HOPBINE_UNDEFINED gets HOPBINE_COMM_NULL. Collective: all ranks must
// call it.
int hopbine_comm_split(hopbine_comm_t comm,
                       int colour,
                       int64_t key,
                       hopbine_comm_t *made);

// Makes a communicator of the `n` ranks in the list `ranks` of `comm`, in the order of the list. Collective: all
// ranks of `comm` must call it. All ranks of a list pass the same list; every other rank passes a list of its own
// group, or an empty list. A rank that is not in its list gets HOPBINE_COMM_NULL.
int hopbine_comm_group(hopbine_comm_t comm,
                       int n,
                       const int *ranks,
                       hopbine_comm_t *made);

// Makes a communicator of the ranks whose torus coordinates differ from the caller's at most in the `n` dimensions
// `dims`: rows, columns, planes. Collective: all ranks must call it.
int hopbine_comm_sub_box(hopbine_comm_t comm,
                         int n,
                         const int *dims,
                         hopbine_comm_t *made);

// Makes a communicator of the `n` ranks in the list `ranks` of `comm`, in the order of the list. Unlike for
// hopbine_comm_group(), only these ranks call it. `agree` must broadcast among them: on each rank it returns the
// `number` that it gets on the first rank of the list. `argument` is passed to `agree`.
int hopbine_comm_join(hopbine_comm_t comm,
                      int n,
                      const int *ranks,
                      uint64_t (*agree)(uint64_t number, void *argument),
                      void *argument,
                      hopbine_comm_t *made);

// Makes a handle of the same communicator with options for its calls: the algorithm, the number of ports, and the
// largest length of a message in bytes. The algorithm is a name of `hopbine list`, the text of a schedule, or
// `search` for the best schedule under the network model. Null or 0 leaves the choice to hopbine. All ranks must
// pass the same options. The call is local.
int hopbine_comm_with(hopbine_comm_t comm,
                      const char *algorithm,
                      int ports,
                      int64_t segment_bytes,
                      hopbine_comm_t *made);

// Frees the handle and sets `*comm` to HOPBINE_COMM_NULL. Requests on the communicator continue. Only
// hopbine_finalize() frees the world's communicator.
int hopbine_comm_free(hopbine_comm_t *comm);

// Returns the message of this thread's last failed call; an empty string if no call has failed. The string is valid
// until the thread's next failed call.
const char *hopbine_last_error(void);

// Returns 1 if another rank reports the cause of this thread's last failed call, else 0. If a failure reaches all
// ranks of a large job, such as the loss of a rank, one message suffices: print it on the rank for which this
// function returns 0.
int hopbine_last_error_is_said_elsewhere(void);

// Returns the name of a code, such as "HOPBINE_ERR_ROOT": a static string, never null.
const char *hopbine_error_name(int code);

// Sets the error handler, which is called with `argument` whenever a call fails on any thread; null, the initial
// value, for none. The handler must be callable from any thread until another one is set. It may end the process.
// Returns when no other thread is in the handler that was set before, so that its argument can be freed: the caller
// must hold no lock that the handler takes. A handler that sets another one does not wait for other threads.
void hopbine_set_error_handler(hopbine_error_handler_t handler,
                               void *argument);

// Registers `bytes` bytes at `buffer` with the network, so that later calls on this memory, on any communicator,
// need no registration. Useful for buffers that are used often, if hopbine cannot detect that memory is unmapped
// (`hopbine info` says whether it can). The call is local; it does nothing on wires without registration. The memory
// must stay readable and writable until hopbine_deregister(). After a fork() of this process, deregister the memory
// and register it again before the next call: the network may reach the child's pages by the older registration.
int hopbine_register(hopbine_comm_t comm,
                     void *buffer,
                     int64_t bytes,
                     hopbine_registration_t *registration);

// Ends a registration and sets `*registration` to 0. No call in progress may use the memory.
int hopbine_deregister(hopbine_registration_t *registration);

// Prepares a call that this rank has made to be repeated by hopbine_repeat() and hopbine_repeat_start(): for libraries
// that know themselves which calls are alike. `function` is the name of the blocking function, for instance
// "hopbine_allreduce"; arguments that it does not have are null or 0, and `op` is -1. Stores null in `*repeated` if
// each such call needs its checks, or if a report is wanted. hopbine_repeat_free() frees the result.
int hopbine_repeat_prepare(const char *function,
                           const void *send,
                           void *recv,
                           int64_t count,
                           int datatype,
                           int op,
                           int root,
                           hopbine_comm_t comm,
                           hopbine_repeated_t **repeated);

// Repeats a call, blocking, on these buffers and with this root. Returns HOPBINE_NOT_REPEATED, and has done nothing,
// if the buffers or the root need the checks of the function, or the communicator has been freed. Meanwhile no other
// thread may free the communicator or end hopbine.
int hopbine_repeat(hopbine_repeated_t *repeated,
                   const void *send,
                   void *recv,
                   int root);

// Starts a call as hopbine_repeat() repeats it, and stores its request.
int hopbine_repeat_start(hopbine_repeated_t *repeated,
                         const void *send,
                         void *recv,
                         int root,
                         hopbine_request_t *request);

// Frees what hopbine_repeat_prepare() has stored; null is permitted. The communicator may have been freed before.
void hopbine_repeat_free(hopbine_repeated_t *repeated);

// Returns 1 if HOPBINE_REPORT requests a report, which hopbine_finalize() prints; else 0.
int hopbine_report_wanted(void);

// Adds a call that another library has performed to the report: its name, the bytes of its vector or block, what
// served it and why, and its duration in seconds.
int hopbine_report_add(const char *call,
                       uint64_t bytes,
                       const char *served_by,
                       double seconds);

// Writes to `text` which algorithm serves a blocking collective of `count` elements, and why. The text is cut to
// `room` bytes, including the terminating zero. `collective` is a name of `hopbine list`, such as "allreduce". `op`
// matters for reductions only.
int hopbine_explain(hopbine_comm_t comm,
                    const char *collective,
                    int64_t count,
                    int datatype,
                    int op,
                    char *text,
                    size_t room);

// Starts a persistent collective. Nothing else may use its buffers until it is done.
int hopbine_start(hopbine_request_t request);

// Sets `*done` to 1 if the collective is done or was not started, or if the request is HOPBINE_REQUEST_NULL,
// otherwise to 0. Frees a non-blocking request that is done and sets `*request` to HOPBINE_REQUEST_NULL. Without
// worker threads, a collective makes progress only in hopbine_test(), in hopbine_progress() and in calls that wait.
int hopbine_test(hopbine_request_t *request,
                 int *done);

// As hopbine_test(), but makes no progress: for programs that test many requests after one call of
// hopbine_progress().
int hopbine_look(hopbine_request_t *request, int *done);

// Makes progress on all operations of all communicators: polls up to `most` times, until something has changed since
// `*number` was set. Changes `*number` if anything has changed; while it stays the same, no request has completed.
int hopbine_progress(hopbine_comm_t comm,
                     int most,
                     uint64_t *number);

// Waits until the collective is done; returns at once if it was not started or if the request is
// HOPBINE_REQUEST_NULL. Then frees a non-blocking request, also if the collective failed, and sets `*request` to
// HOPBINE_REQUEST_NULL.
int hopbine_wait(hopbine_request_t *request);

// As hopbine_wait() for each of `n` requests, also after one fails. Returns the first failure.
int hopbine_waitall(int n, hopbine_request_t *requests);

// Frees a request, after waiting for its collective if this is in progress, and sets `*request` to
// HOPBINE_REQUEST_NULL. Does nothing for HOPBINE_REQUEST_NULL.
int hopbine_request_free(hopbine_request_t *request);

// Starts hopbine with the ranks that the environment describes (HOPBINE_RANK, HOPBINE_SIZE, HOPBINE_RENDEZVOUS,
// which `hopbine launch` sets, or variables of Open MPI's, MPICH's or Slurm's launcher; without any this process is
// the only rank). Sets `*world` to the communicator of all ranks. Collective: all ranks must call it.
int hopbine_init(hopbine_comm_t *world);

// As hopbine_init(), for ranks that another launcher has started. `*exchange` is copied; its functions must be
// callable from any thread until hopbine_finalize() has returned.
int hopbine_init_exchange(const hopbine_exchange_t *exchange,
                          hopbine_comm_t *world);

// Starts hopbine with the ranks of an MPI intracommunicator. Messages go over MPI unless hopbine has a faster wire.
// This function is for programs that do not link libhopbine_hb, whose hopbine_comm_from_mpi() takes an MPI_Comm
// itself. `comm` points to the MPI_Comm. `functions` is the result of hopbine_mpi_functions(), which is in
// sys/mpi/functions.c of hopbine's source; the program compiles it with its MPI. Later calls use the functions of
// the first call. MPI must be initialised before hopbine and finalised after it. Any thread that waits and may call
// MPI may call `progress` with `argument`, until hopbine_finalize() has returned, but below MPI_THREAD_MULTIPLE not
// while another thread calls MPI for hopbine. `progress` may be null; it must return or end the process: no C++
// exception and no longjmp() may leave it.
int hopbine_init_mpi(const void *functions,
                     const void *comm,
                     void (*progress)(void *argument),
                     void *argument,
                     hopbine_comm_t *world);

// Makes a communicator of the ranks of an MPI intracommunicator, in its rank order; `comm` points to the MPI_Comm.
// Collective: all its ranks must call it. They must be ranks of the world, which must have been started over the
// same MPI: by hopbine_init_mpi(), or in MPI_Init by libhopbine_hb or libhopbine_preload. Afterwards the two
// communicators are independent.
int hopbine_comm_of_mpi(const void *comm,
                        hopbine_comm_t *made);

// Returns the seconds of HOPBINE_TIMEOUT; 60 if it is not set, or to something that hopbine_init() refuses.
double hopbine_timeout(void);

// Restricts a mismatch between ranks to the call concerned, as in MPI. If ranks pass different counts, types or
// operators, the call fails with HOPBINE_ERR_MISMATCH on the ranks concerned, and later calls work. Without
// hopbine_spare(), the whole world fails, and every rank gets an error. The world also fails if messages do not
// match: another collective, root or algorithm, messages cut to other lengths, or on Tofu barrier gates on one rank
// and messages on another. All ranks must call it before their first collective.
int hopbine_spare(void);

// Waits for all ranks, finalises hopbine, and frees the world's communicator. Calls on other communicators and on
// requests then fail, except those that free them. hopbine_init() may be called again.
int hopbine_finalize(void);

// Sets `*started` to 1 between hopbine_init() and hopbine_finalize(), else to 0.
int hopbine_initialized(int *started);

// Returns the communicator of all ranks; HOPBINE_COMM_NULL if hopbine has not been started.
hopbine_comm_t hopbine_comm_world(void);

// Returns the name of the wire of the world's messages: "tofu", "shm", "emu" or "mpi"; an empty string if hopbine
// has not been started. The string is static, never null.
const char *hopbine_backend(void);

// Returns 1 if a thread that waits in hopbine has a core of its own, and therefore spins. Returns 0 if such a thread
// yields at once because there are more ranks than cores, or if hopbine has not been started.
int hopbine_own_cores(void);

// Returns the version of the library, such as "0.1.0": a static string, never null.
const char *hopbine_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HOPBINE_H */
