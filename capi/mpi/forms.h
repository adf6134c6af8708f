/* The prototypes of MPI's collectives, once: DOORS(X, N, D) calls
 *
 *     X(Name, name, COLLECTIVE, (parameters), (arguments), (members of struct call))
 *
 * for each, with counts of type N and displacements of type D: int and int, or MPI_Count and
 * MPI_Aint for the forms whose names end in _c. */
#define UNPAREN(...) __VA_ARGS__

#define DOORS(X, N, D)                                                                             \
    X(Allreduce, allreduce, ALLREDUCE,                                                             \
      (const void *send, void *recv, N n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),            \
      (send, recv, n, type, op, comm),                                                             \
      (.send = send, .recv = recv, .recv_count = n, .recv_type = type, .op = op, .comm = comm))    \
    X(Reduce, reduce, REDUCE,                                                                      \
      (const void *send, void *recv, N n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),  \
      (send, recv, n, type, op, root, comm),                                                       \
      (.send = send, .recv = recv, .recv_count = n, .recv_type = type, .op = op, .root = root,     \
       .comm = comm))                                                                              \
    X(Reduce_scatter_block, reduce_scatter_block, REDUCE_SCATTER_BLOCK,                            \
      (const void *send, void *recv, N n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),            \
      (send, recv, n, type, op, comm),                                                             \
      (.send = send, .recv = recv, .recv_count = n, .recv_type = type, .op = op, .comm = comm))    \
    X(Bcast, bcast, BCAST, (void *buffer, N n, MPI_Datatype type, int root, MPI_Comm comm),        \
      (buffer, n, type, root, comm),                                                               \
      (.recv = buffer, .recv_count = n, .recv_type = type, .root = root, .comm = comm))            \
    X(Allgather, allgather, ALLGATHER,                                                             \
      (const void *send, N n, MPI_Datatype type, void *recv, N m, MPI_Datatype to, MPI_Comm comm), \
      (send, n, type, recv, m, to, comm),                                                          \
      (.send = send, .send_count = n, .send_type = type, .recv = recv, .recv_count = m,            \
       .recv_type = to, .comm = comm))                                                             \
    X(Gather, gather, GATHER,                                                                      \
      (const void *send, N n, MPI_Datatype type, void *recv, N m, MPI_Datatype to, int root,       \
       MPI_Comm comm),                                                                             \
      (send, n, type, recv, m, to, root, comm),                                                    \
      (.send = send, .send_count = n, .send_type = type, .recv = recv, .recv_count = m,            \
       .recv_type = to, .root = root, .comm = comm))                                               \
    X(Scatter, scatter, SCATTER,                                                                   \
      (const void *send, N n, MPI_Datatype type, void *recv, N m, MPI_Datatype to, int root,       \
       MPI_Comm comm),                                                                             \
      (send, n, type, recv, m, to, root, comm),                                                    \
      (.send = send, .send_count = n, .send_type = type, .recv = recv, .recv_count = m,            \
       .recv_type = to, .root = root, .comm = comm))                                               \
    X(Alltoall, alltoall, ALLTOALL,                                                                \
      (const void *send, N n, MPI_Datatype type, void *recv, N m, MPI_Datatype to, MPI_Comm comm), \
      (send, n, type, recv, m, to, comm),                                                          \
      (.send = send, .send_count = n, .send_type = type, .recv = recv, .recv_count = m,            \
       .recv_type = to, .comm = comm))                                                             \
    X(Allgatherv, allgatherv, ALLGATHERV,                                                          \
      (const void *send, N n, MPI_Datatype type, void *recv, const N counts[], const D displs[],   \
       MPI_Datatype to, MPI_Comm comm),                                                            \
      (send, n, type, recv, counts, displs, to, comm),                                             \
      (.send = send, .send_count = n, .send_type = type, .recv = recv, .recv_type = to,            \
       .recv_counts = counts, .recv_displs = displs, .is_wide = sizeof(N) > sizeof(int),           \
       .comm = comm))                                                                              \
    X(Gatherv, gatherv, GATHERV,                                                                   \
      (const void *send, N n, MPI_Datatype type, void *recv, const N counts[], const D displs[],   \
       MPI_Datatype to, int root, MPI_Comm comm),                                                  \
      (send, n, type, recv, counts, displs, to, root, comm),                                       \
      (.send = send, .send_count = n, .send_type = type, .recv = recv, .recv_type = to,            \
       .recv_counts = counts, .recv_displs = displs, .is_wide = sizeof(N) > sizeof(int),           \
       .root = root,                                                                               \
       .comm = comm))                                                                              \
    X(Scatterv, scatterv, SCATTERV,                                                                \
      (const void *send, const N counts[], const D displs[], MPI_Datatype type, void *recv, N m,   \
       MPI_Datatype to, int root, MPI_Comm comm),                                                  \
      (send, counts, displs, type, recv, m, to, root, comm),                                       \
      (.send = send, .send_type = type, .send_counts = counts, .send_displs = displs,              \
       .is_wide = sizeof(N) > sizeof(int), .recv = recv, .recv_count = m, .recv_type = to,         \
       .root = root, .comm = comm))                                                                \
    X(Alltoallv, alltoallv, ALLTOALLV,                                                             \
      (const void *send, const N counts[], const D displs[], MPI_Datatype type, void *recv,        \
       const N to_counts[], const D to_displs[], MPI_Datatype to, MPI_Comm comm),                  \
      (send, counts, displs, type, recv, to_counts, to_displs, to, comm),                          \
      (.send = send, .send_type = type, .send_counts = counts, .send_displs = displs,              \
       .recv = recv, .recv_type = to, .recv_counts = to_counts, .recv_displs = to_displs,          \
       .is_wide = sizeof(N) > sizeof(int), .comm = comm))                                          \
    X(Alltoallw, alltoallw, ALLTOALLW,                                                             \
      (const void *send, const N counts[], const D displs[], const MPI_Datatype types[],           \
       void *recv, const N to_counts[], const D to_displs[], const MPI_Datatype to_types[],        \
       MPI_Comm comm),                                                                             \
      (send, counts, displs, types, recv, to_counts, to_displs, to_types, comm),                   \
      (.send = send, .recv = recv, .comm = comm))                                                  \
    X(Reduce_scatter, reduce_scatter, REDUCE_SCATTER,                                              \
      (const void *send, void *recv, const N counts[], MPI_Datatype type, MPI_Op op,               \
       MPI_Comm comm),                                                                             \
      (send, recv, counts, type, op, comm),                                                        \
      (.send = send, .recv = recv, .recv_type = type, .send_counts = counts,                       \
       .is_wide = sizeof(N) > sizeof(int), .op = op, .comm = comm))                                \
    X(Scan, scan, SCAN,                                                                            \
      (const void *send, void *recv, N n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),            \
      (send, recv, n, type, op, comm),                                                             \
      (.send = send, .recv = recv, .recv_count = n, .recv_type = type, .op = op, .comm = comm))    \
    X(Exscan, exscan, EXSCAN,                                                                      \
      (const void *send, void *recv, N n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),            \
      (send, recv, n, type, op, comm),                                                             \
      (.send = send, .recv = recv, .recv_count = n, .recv_type = type, .op = op, .comm = comm))

/* A barrier has no counts, and so no second form. */
#define BARRIER_DOOR(X) X(Barrier, barrier, BARRIER, (MPI_Comm comm), (comm), (.comm = comm))
