/* MPI's collectives. Generated from src/comm/forms/table.rs: `HOPBINE_TEST_BLESS=1 cargo test -p hopbine-capi
 * --test generated` writes it. */
#ifndef HOPBINE_SIGNATURES_H
#define HOPBINE_SIGNATURES_H

enum collective {
    ALLREDUCE,
    REDUCE,
    REDUCE_SCATTER_BLOCK,
    BCAST,
    ALLGATHER,
    GATHER,
    SCATTER,
    ALLTOALL,
    BARRIER,
    ALLGATHERV,
    GATHERV,
    SCATTERV,
    ALLTOALLV,
    REDUCE_SCATTER,
    SCAN,
    EXSCAN,
    N_SERVED, /* From here on all go to MPI. */
    ALLTOALLW = N_SERVED,
    N_COLLECTIVES,
};

/* The prototypes, once: SIGNATURES(X, N, D) calls
 *
 *     X(Name, name, COLLECTIVE, (parameters), (arguments), (members of struct call, `send` to `root`))
 *
 * for each, with counts of type N and displacements of type D: int and int, or MPI_Count and
 * MPI_Aint for the forms whose names end in _c. */
#define SIGNATURES(X, N, D)                                                                        \
    X(Allreduce, allreduce, ALLREDUCE,                                                             \
      (const void *send, void *recv, N n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),            \
      (send, recv, n, type, op, comm),                                                             \
      (send, 0, NO_TYPE, recv, n, type, NULL, op, 0))                                              \
    X(Reduce, reduce, REDUCE,                                                                      \
      (const void *send, void *recv, N n, MPI_Datatype type, MPI_Op op, int root,                  \
      MPI_Comm comm),                                                                              \
      (send, recv, n, type, op, root, comm),                                                       \
      (send, 0, NO_TYPE, recv, n, type, NULL, op, root))                                           \
    X(Reduce_scatter_block, reduce_scatter_block, REDUCE_SCATTER_BLOCK,                            \
      (const void *send, void *recv, N n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),            \
      (send, recv, n, type, op, comm),                                                             \
      (send, 0, NO_TYPE, recv, n, type, NULL, op, 0))                                              \
    X(Bcast, bcast, BCAST,                                                                         \
      (void *buffer, N n, MPI_Datatype type, int root, MPI_Comm comm),                             \
      (buffer, n, type, root, comm),                                                               \
      (NULL, 0, NO_TYPE, buffer, n, type, NULL, NO_OP, root))                                      \
    X(Allgather, allgather, ALLGATHER,                                                             \
      (const void *send, N n, MPI_Datatype type, void *recv, N m, MPI_Datatype to,                 \
      MPI_Comm comm),                                                                              \
      (send, n, type, recv, m, to, comm),                                                          \
      (send, n, type, recv, m, to, NULL, NO_OP, 0))                                                \
    X(Gather, gather, GATHER,                                                                      \
      (const void *send, N n, MPI_Datatype type, void *recv, N m, MPI_Datatype to, int root,       \
      MPI_Comm comm),                                                                              \
      (send, n, type, recv, m, to, root, comm),                                                    \
      (send, n, type, recv, m, to, NULL, NO_OP, root))                                             \
    X(Scatter, scatter, SCATTER,                                                                   \
      (const void *send, N n, MPI_Datatype type, void *recv, N m, MPI_Datatype to, int root,       \
      MPI_Comm comm),                                                                              \
      (send, n, type, recv, m, to, root, comm),                                                    \
      (send, n, type, recv, m, to, NULL, NO_OP, root))                                             \
    X(Alltoall, alltoall, ALLTOALL,                                                                \
      (const void *send, N n, MPI_Datatype type, void *recv, N m, MPI_Datatype to,                 \
      MPI_Comm comm),                                                                              \
      (send, n, type, recv, m, to, comm),                                                          \
      (send, n, type, recv, m, to, NULL, NO_OP, 0))                                                \
    X(Allgatherv, allgatherv, ALLGATHERV,                                                          \
      (const void *send, N n, MPI_Datatype type, void *recv, const N counts[], const D displs[],   \
      MPI_Datatype to, MPI_Comm comm),                                                             \
      (send, n, type, recv, counts, displs, to, comm),                                             \
      (send, n, type, recv, 0, to, LISTS(N, .recv_counts = counts, .recv_displs = displs),         \
      NO_OP, 0))                                                                                   \
    X(Gatherv, gatherv, GATHERV,                                                                   \
      (const void *send, N n, MPI_Datatype type, void *recv, const N counts[], const D displs[],   \
      MPI_Datatype to, int root, MPI_Comm comm),                                                   \
      (send, n, type, recv, counts, displs, to, root, comm),                                       \
      (send, n, type, recv, 0, to, LISTS(N, .recv_counts = counts, .recv_displs = displs),         \
      NO_OP, root))                                                                                \
    X(Scatterv, scatterv, SCATTERV,                                                                \
      (const void *send, const N counts[], const D displs[], MPI_Datatype type, void *recv, N m,   \
      MPI_Datatype to, int root, MPI_Comm comm),                                                   \
      (send, counts, displs, type, recv, m, to, root, comm),                                       \
      (send, 0, type, recv, m, to, LISTS(N, .send_counts = counts, .send_displs = displs),         \
      NO_OP, root))                                                                                \
    X(Alltoallv, alltoallv, ALLTOALLV,                                                             \
      (const void *send, const N counts[], const D displs[], MPI_Datatype type, void *recv,        \
      const N to_counts[], const D to_displs[], MPI_Datatype to, MPI_Comm comm),                   \
      (send, counts, displs, type, recv, to_counts, to_displs, to, comm),                          \
      (send, 0, type, recv, 0, to, LISTS(N, .send_counts = counts, .send_displs = displs,          \
      .recv_counts = to_counts, .recv_displs = to_displs), NO_OP, 0))                              \
    X(Reduce_scatter, reduce_scatter, REDUCE_SCATTER,                                              \
      (const void *send, void *recv, const N counts[], MPI_Datatype type, MPI_Op op,               \
      MPI_Comm comm),                                                                              \
      (send, recv, counts, type, op, comm),                                                        \
      (send, 0, NO_TYPE, recv, 0, type, LISTS(N, .send_counts = counts), op, 0))                   \
    X(Scan, scan, SCAN,                                                                            \
      (const void *send, void *recv, N n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),            \
      (send, recv, n, type, op, comm),                                                             \
      (send, 0, NO_TYPE, recv, n, type, NULL, op, 0))                                              \
    X(Exscan, exscan, EXSCAN,                                                                      \
      (const void *send, void *recv, N n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),            \
      (send, recv, n, type, op, comm),                                                             \
      (send, 0, NO_TYPE, recv, n, type, NULL, op, 0))                                              \
    X(Alltoallw, alltoallw, ALLTOALLW,                                                             \
      (const void *send, const N counts[], const D displs[], const MPI_Datatype types[],           \
      void *recv, const N to_counts[], const D to_displs[], const MPI_Datatype to_types[],         \
      MPI_Comm comm),                                                                              \
      (send, counts, displs, types, recv, to_counts, to_displs, to_types, comm),                   \
      (send, 0, NO_TYPE, recv, 0, NO_TYPE, LISTS(N, .send_counts = counts,                         \
      .send_displs = displs, .send_types = types, .recv_counts = to_counts,                        \
      .recv_displs = to_displs, .recv_types = to_types), NO_OP, 0))

/* A barrier has no counts, and so no second form. */
#define BARRIER_SIGNATURE(X)                                                                       \
    X(Barrier, barrier, BARRIER,                                                                   \
      (MPI_Comm comm),                                                                             \
      (comm),                                                                                      \
      (NULL, 0, NO_TYPE, NULL, 0, NO_TYPE, NULL, NO_OP, 0))

#endif
