/* The calls of MPI's that collectives.c makes, by hopbine's C interface. */
#include <hopbine.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef int64_t number_t;
typedef hopbine_request_t MPI_Request;

static hopbine_comm_t world;

/* MPI ends the job when a call fails. */
static int checked(int code)
{
    if (code != HOPBINE_SUCCESS) {
        fprintf(stderr, "%s\n", hopbine_last_error());
        exit(1);
    }
    return code;
}

static double MPI_Wtime(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

#define MPI_COMM_WORLD world
#define MPI_BYTE HOPBINE_UINT8
#define MPI_DOUBLE HOPBINE_DOUBLE
#define MPI_SUM HOPBINE_SUM
#define MPI_MAX HOPBINE_MAX
#define MPI_Init(argc, argv) checked(hopbine_init(&world))
#define MPI_Finalize() checked(hopbine_finalize())
#define MPI_Abort(comm, code) exit(code)
#define MPI_Comm_rank(comm, rank) checked(hopbine_comm_rank(comm, rank))
#define MPI_Comm_size(comm, size) checked(hopbine_comm_size(comm, size))
#define MPI_Wait(request, status) checked(hopbine_wait(request))
#define MPI_Barrier(comm) checked(hopbine_barrier(comm))
#define MPI_Bcast(data, n, type, root, comm) checked(hopbine_bcast(data, n, type, root, comm))
#define MPI_Allreduce(send, recv, n, type, op, comm) checked(hopbine_allreduce(send, recv, n, type, op, comm))
#define MPI_Reduce(send, recv, n, type, op, root, comm) checked(hopbine_reduce(send, recv, n, type, op, root, comm))
#define MPI_Reduce_scatter_block(send, recv, n, type, op, comm)                                    \
    checked(hopbine_reduce_scatter_block(send, recv, n, type, op, comm))
#define MPI_Allgather(send, n, type, recv, m, to, comm) checked(hopbine_allgather(send, recv, n, type, comm))
#define MPI_Alltoall(send, n, type, recv, m, to, comm) checked(hopbine_alltoall(send, recv, n, type, comm))
#define MPI_Alltoallv(send, counts, displs, type, recv, to_counts, to_displs, to, comm)            \
    checked(hopbine_alltoallv(send, counts, displs, recv, to_counts, to_displs, type, comm))
