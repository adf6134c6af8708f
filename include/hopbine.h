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

/* The version of this header; hopbine_version() tells the library's. */
#define HOPBINE_VERSION_MAJOR 0
#define HOPBINE_VERSION_MINOR 1
#define HOPBINE_VERSION_PATCH 0

/* Deprecated: names of before 0.1.0, which the next minor version drops. */
#ifdef __GNUC__
#define HOPBINE_DEPRECATED _Pragma("GCC warning \"deprecated: hopbine_reduce_scatter has no v at its end\"")
#else
#define HOPBINE_DEPRECATED
#endif
#define hopbine_reduce_scatterv HOPBINE_DEPRECATED hopbine_reduce_scatter
#define hopbine_ireduce_scatterv HOPBINE_DEPRECATED hopbine_ireduce_scatter
#define hopbine_reduce_scatterv_init HOPBINE_DEPRECATED hopbine_reduce_scatter_init


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

// The smaller one; NaN if either is.
#define HOPBINE_MIN 2

// The larger one; NaN if either is.
#define HOPBINE_MAX 3

// 1 if both are nonzero, else 0.
#define HOPBINE_LAND 4

// 1 if one is nonzero, else 0.
#define HOPBINE_LOR 5

// 1 if exactly one is nonzero, else 0.
#define HOPBINE_LXOR 6

// Bits set in both.
#define HOPBINE_BAND 7

// Bits set in one.
#define HOPBINE_BOR 8

// Bits set in exactly one.
#define HOPBINE_BXOR 9

// Of pairs the one with the smallest value and, where values are equal, the lowest location; NaN before all.
#define HOPBINE_MINLOC 10

// The same with the largest value.
#define HOPBINE_MAXLOC 11

// The colour of a rank that takes part in no communicator.
#define HOPBINE_UNDEFINED (-1)

// All is well.
#define HOPBINE_SUCCESS 0

// Not a communicator: null, freed, or another number.
#define HOPBINE_ERR_COMM 1

// Not a request, or one that is in use.
#define HOPBINE_ERR_REQUEST 2

// A negative count, or one whose bytes no memory could hold.
#define HOPBINE_ERR_COUNT 3

// Not an element type.
#define HOPBINE_ERR_TYPE 4

// Not an operator, or not one for this type.
#define HOPBINE_ERR_OP 5

// The root is no rank of the communicator.
#define HOPBINE_ERR_ROOT 6

// A null buffer, or buffers that overlap.
#define HOPBINE_ERR_BUFFER 7

// Any other argument.
#define HOPBINE_ERR_ARG 8

// hopbine_init() has not been called, or hopbine_finalize() has; or hopbine_init() is called twice.
#define HOPBINE_ERR_STATE 9

// An environment variable or an option has a wrong value.
#define HOPBINE_ERR_SETTING 10

// The world could not be set up, or the ranks did not meet.
#define HOPBINE_ERR_STARTUP 11

// A wait was too long (HOPBINE_TIMEOUT).
#define HOPBINE_ERR_TIMEOUT 12

// A rank is gone, has failed, or has left.
#define HOPBINE_ERR_LOST 13

// The network, shared memory or MPI failed, or an earlier call did.
#define HOPBINE_ERR_WIRE 14

// No algorithm of that name, or it does not serve the call.
#define HOPBINE_ERR_ALGORITHM 15

// An error within hopbine: please report it.
#define HOPBINE_ERR_INTERNAL 16

// Ranks made different calls: another collective, count, type, operator or root.
#define HOPBINE_ERR_MISMATCH 17

// A communicator. Freed by hopbine_comm_free().
typedef uint64_t hopbine_comm_t;

// A request: a collective under way, or a persistent one.
typedef uint64_t hopbine_request_t;

// What a handler is called with: the code, its message, which is valid during the call, and the
// argument it was set with. It runs on the thread of the call that failed, which returns the
// code when the handler returns.
typedef void (*hopbine_error_handler_t)(int code, const char *message, void *argument);

// Memory that is registered. Ended by hopbine_deregister().
typedef uint64_t hopbine_registration_t;

// How ranks that another launcher has started exchange what hopbine needs to start.
typedef struct {
  // This rank.
  int rank;
  // Number of ranks.
  int size;
  // An allgather: gives every rank at `all` the `bytes` bytes at `mine` of all ranks, in rank order; `bytes`
  // is the same on all ranks. Returns 0, or another number if it has failed. Called by
  // hopbine_init_exchange() and hopbine_finalize().
  int (*allgather)(const void *mine, void *all, int64_t bytes, void *argument);
  // Called now and then by a thread that waits in hopbine, so that another library makes progress meanwhile;
  // may be null.
  void (*progress)(void *argument);
  // The last argument of both functions.
  void *argument;
} hopbine_exchange_t;

// No communicator.
#define HOPBINE_COMM_NULL 0

// No request: waiting for it returns at once. Also what a call gives that is done when it returns.
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
// x - 1, and `recvbuf` of rank 0 stays as it is.
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

// The calling rank, from 0.
int hopbine_comm_rank(hopbine_comm_t comm, int *rank);

// The number of ranks.
int hopbine_comm_size(hopbine_comm_t comm, int *size);

// The torus: sets `*n_dims`, and the sizes of the first `room` dimensions and the calling rank's
// coordinates in them, where the lists are not null. There are 7 dimensions at most.
int hopbine_comm_torus(hopbine_comm_t comm, int room, int *n_dims, int *sizes, int *coordinates);

// Makes a second communicator of the same ranks. Calls on one do not affect calls on the other. All ranks must
// call it.
int hopbine_comm_duplicate(hopbine_comm_t comm,
                           hopbine_comm_t *made);

// Makes a communicator for each colour, of the ranks that give it, in the order of their keys
// and, where these are equal, of their ranks. With HOPBINE_UNDEFINED a rank gets
// HOPBINE_COMM_NULL. All ranks must call it.
int hopbine_comm_split(hopbine_comm_t comm, int colour, int64_t key, hopbine_comm_t *made);

// Makes a communicator of these `n` ranks of `comm`, in this order. All ranks of `comm` must call it. The ranks of a
// list give the same list, others a list of their own or an empty one. A rank that is not in its list gets
// HOPBINE_COMM_NULL.
int hopbine_comm_group(hopbine_comm_t comm,
                       int n,
                       const int *ranks,
                       hopbine_comm_t *made);

// Makes a communicator of the ranks that differ from this one only in the given `n` dimensions
// of the torus: rows, columns, planes. All ranks must call it.
int hopbine_comm_sub_box(hopbine_comm_t comm, int n, const int *dims, hopbine_comm_t *made);

// Makes a communicator of these `n` ranks of `comm`, in this order. Unlike hopbine_comm_group(), only these ranks call
// it. `agree` must be a broadcast among them: on each it returns the number that it is given on the first one.
int hopbine_comm_join(hopbine_comm_t comm,
                      int n,
                      const int *ranks,
                      uint64_t (*agree)(uint64_t number, void *argument),
                      void *argument,
                      hopbine_comm_t *made);

// Makes a handle of the same communicator whose calls use this algorithm, this many ports, and messages of at
// most this many bytes. The algorithm is a name of `hopbine list`, the text of a schedule, or `search` for the
// best schedule under the network model. Null and 0 leave the choice to hopbine. All ranks must give the same.
// Nothing is sent.
int hopbine_comm_with(hopbine_comm_t comm,
                      const char *algorithm,
                      int ports,
                      int64_t segment_bytes,
                      hopbine_comm_t *made);

// Frees the handle; `*comm` becomes HOPBINE_COMM_NULL. Requests on it continue. Only hopbine_finalize() frees
// the world's communicator.
int hopbine_comm_free(hopbine_comm_t *comm);

// The message of this thread's last call that failed; empty if none has. Valid until the thread's next call
// that fails.
const char *hopbine_last_error(void);

// 1 if another rank has what was wrong with this thread's last call that failed as well, and says so; else 0. Of a
// failure that all ranks of a large job come to know, such as a rank that is gone, one message is enough: that of the
// rank for which this is 0.
int hopbine_last_error_is_said_elsewhere(void);

// The name of a code, such as "HOPBINE_ERR_ROOT". Never null, always valid.
const char *hopbine_error_name(int code);

// Sets a function that is called with `argument` whenever a call fails on any thread; null, as at first, for
// none. It must be callable from any thread until another one is set, and may end the process.
void hopbine_set_error_handler(hopbine_error_handler_t handler,
                               void *argument);

// Registers memory with the network, so that later calls on it, of any communicator, need no registration.
// This helps buffers that are used often, if hopbine does not learn of memory that is unmapped (`hopbine info`
// says whether it does). The call is local, and does nothing on wires without registration. The memory must
// stay readable and writable until hopbine_deregister().
int hopbine_register(hopbine_comm_t comm,
                     void *buffer,
                     int64_t bytes,
                     hopbine_registration_t *registration);

// Ends a registration, and sets it to 0. No call may be using the memory.
int hopbine_deregister(hopbine_registration_t *registration);

// 1 if HOPBINE_REPORT asks for a report, which hopbine_finalize() then prints; else 0.
int hopbine_report_wanted(void);

// Adds a call that another library has performed to the report: its name, the bytes of its vector or block,
// what served it and why, and how long it took.
int hopbine_report_add(const char *call,
                       uint64_t bytes,
                       const char *served_by,
                       double seconds);

// Writes to `text`, cut to `room` bytes with its final zero, which algorithm serves a blocking collective of
// `count` elements, and why. `collective` is its name in `hopbine list`, such as "allreduce".
int hopbine_explain(hopbine_comm_t comm,
                    const char *collective,
                    int64_t count,
                    int datatype,
                    int op,
                    char *text,
                    size_t room);

// Starts the persistent collective. Its buffers must be left alone until it is done.
int hopbine_start(hopbine_request_t request);

// Sets `*done` to 1 if the collective is done, or was not started, or the request is HOPBINE_REQUEST_NULL; to
// 0 otherwise. A non-blocking request that is done is freed, and `*request` becomes HOPBINE_REQUEST_NULL.
// Without worker threads a collective makes progress in such calls only.
int hopbine_test(hopbine_request_t *request,
                 int *done);

// As hopbine_test(), but makes no progress: for programs that test many requests after one call of
// hopbine_progress().
int hopbine_look(hopbine_request_t *request, int *done);

// Makes progress on all operations of all communicators, in up to `most` attempts, until something has moved
// since `*number` was set. It changes `*number` if anything has moved: as long as that stays the same, no
// request is done.
int hopbine_progress(hopbine_comm_t comm,
                     int most,
                     uint64_t *number);

// Waits until the collective is done; returns at once if it was not started or the request is
// HOPBINE_REQUEST_NULL. A non-blocking request is then freed, also if the collective failed, and `*request`
// becomes HOPBINE_REQUEST_NULL.
int hopbine_wait(hopbine_request_t *request);

// As hopbine_wait() for each of `n` requests, also if one fails; the first failure is returned.
int hopbine_waitall(int n, hopbine_request_t *requests);

// Frees a request, after waiting for its collective if it is under way; `*request` becomes
// HOPBINE_REQUEST_NULL. Freeing HOPBINE_REQUEST_NULL does nothing.
int hopbine_request_free(hopbine_request_t *request);

// Joins the world that the environment describes (HOPBINE_RANK, HOPBINE_SIZE,
// HOPBINE_RENDEZVOUS, which `hopbine launch` sets; without them this process alone), and sets
// `*world` to the communicator of all its ranks. All ranks must call it.
int hopbine_init(hopbine_comm_t *world);

// As hopbine_init(), for ranks that another launcher has started. The structure is copied; its functions must
// be callable from any thread until hopbine_finalize() has returned.
int hopbine_init_exchange(const hopbine_exchange_t *exchange,
                          hopbine_comm_t *world);

// Starts hopbine with the ranks of an intracommunicator of MPI. Messages go over MPI where nothing is faster.
// This function is for programs that do not link libhopbine_hb, whose hopbine_comm_from_mpi() takes an
// MPI_Comm itself. `comm` points to the MPI_Comm. `functions` is the result of hopbine_mpi_functions(), which
// is in sys/mpi/functions.c of hopbine's source and which the program compiles with its MPI; that of the first
// call is used by all. MPI must be initialised before and finalised after hopbine. Any thread that waits may
// call `progress` with `argument`, until hopbine_finalize() has returned; it may be null.
int hopbine_init_mpi(const void *functions,
                     const void *comm,
                     void (*progress)(void *argument),
                     void *argument,
                     hopbine_comm_t *world);

// Makes a communicator of the ranks of an intracommunicator of MPI, in its order; `comm` points to the
// MPI_Comm. All its ranks call it. They must be ranks of the world, which must have been started over the same
// MPI: by hopbine_init_mpi(), or in MPI_Init by libhopbine_hb or libhopbine_preload. Afterwards the two
// communicators are independent.
int hopbine_comm_of_mpi(const void *comm,
                        hopbine_comm_t *made);

// Lets calls that differ fail alone, as in MPI: if ranks give another count, type or operator, the call fails
// on the ranks concerned (HOPBINE_ERR_MISMATCH), and later calls are served. Without it the whole world fails,
// and every rank gets an error. The world also fails where messages do not match: another collective, root or
// algorithm, or lengths that are cut differently. All ranks must call it before their first collective.
int hopbine_spare(void);

// Leaves the world after waiting for all ranks, and frees the world's communicator. Other communicators and
// requests then refuse every call except those that free them. hopbine_init() may follow.
int hopbine_finalize(void);

// Sets `*started` to 1 between hopbine_init() and hopbine_finalize(), to 0 otherwise.
int hopbine_initialized(int *started);

// The communicator of all ranks; HOPBINE_COMM_NULL if hopbine has not been started.
hopbine_comm_t hopbine_comm_world(void);

// What carries the world's messages: "tofu", "shm", "emu" or "mpi"; empty if hopbine has not been
// started. Never null, always valid.
const char *hopbine_backend(void);

// 1 if a thread that waits in hopbine has a core of its own, and therefore spins; 0 if it yields at once,
// because there are more ranks than cores, or if hopbine has not been started.
int hopbine_own_cores(void);

// The library's version, such as "0.1.0". Never null, always valid.
const char *hopbine_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HOPBINE_H */
