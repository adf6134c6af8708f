/* The prototypes of MPI's collectives, once: DOORS(X, N, D) calls
 *
 *     X(Name, name, COLLECTIVE, (parameters), (arguments), (members of struct call, `send` to `root`))
 *
 * for each, with counts of type N and displacements of type D: int and int, or MPI_Count and
 * MPI_Aint for the forms whose names end in _c. */
#define UNPAREN(...) __VA_ARGS__

/* A structure that is not initialised whole is cleared first, and by GCC so slowly that a short call
 * takes a tenth longer: so every row has every member. */
#define NO_TYPE ((MPI_Datatype)0)
#define NO_OP ((MPI_Op)0)
#define LISTS(N, ...) &(const struct lists){.is_wide = sizeof(N) > sizeof(int), __VA_ARGS__}

#define DOORS(X, N, D)                                                                             \
    X(Allreduce, allreduce, ALLREDUCE,                                                             \
      (const void *send, void *recv, N n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),            \
      (send, recv, n, type, op, comm),                                                             \
      (send, 0, NO_TYPE, recv, n, type, NULL, op, 0))                                              \
    X(Reduce, reduce, REDUCE,                                                                      \
      (const void *send, void *recv, N n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),  \
      (send, recv, n, type, op, root, comm),                                                       \
      (send, 0, NO_TYPE, recv, n, type, NULL, op, root))                                           \
    X(Reduce_scatter_block, reduce_scatter_block, REDUCE_SCATTER_BLOCK,                            \
      (const void *send, void *recv, N n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),            \
      (send, recv, n, type, op, comm),                                                             \
      (send, 0, NO_TYPE, recv, n, type, NULL, op, 0))                                              \
    X(Bcast, bcast, BCAST, (void *buffer, N n, MPI_Datatype type, int root, MPI_Comm comm),        \
      (buffer, n, type, root, comm),                                                               \
      (NULL, 0, NO_TYPE, buffer, n, type, NULL, NO_OP, root))                                      \
    X(Allgather, allgather, ALLGATHER,                                                             \
      (const void *send, N n, MPI_Datatype type, void *recv, N m, MPI_Datatype to, MPI_Comm comm), \
      (send, n, type, recv, m, to, comm),                                                          \
      (send, n, type, recv, m, to, NULL, NO_OP, 0))                                                \
    X(Gather, gather, GATHER,                                                                      \
      (const void *send, N n, MPI_Datatype type, void *recv, N m, MPI_Datatype to, int root,       \
       MPI_Comm comm),                                                                             \
      (send, n, type, recv, m, to, root, comm),                                                    \
      (send, n, type, recv, m, to, NULL, NO_OP, root))                                             \
    X(Scatter, scatter, SCATTER,                                                                   \
      (const void *send, N n, MPI_Datatype type, void *recv, N m, MPI_Datatype to, int root,       \
       MPI_Comm comm),                                                                             \
      (send, n, type, recv, m, to, root, comm),                                                    \
      (send, n, type, recv, m, to, NULL, NO_OP, root))                                             \
    X(Alltoall, alltoall, ALLTOALL,                                                                \
      (const void *send, N n, MPI_Datatype type, void *recv, N m, MPI_Datatype to, MPI_Comm comm), \
      (send, n, type, recv, m, to, comm),                                                          \
      (send, n, type, recv, m, to, NULL, NO_OP, 0))                                                \
    X(Allgatherv, allgatherv, ALLGATHERV,                                                          \
      (const void *send, N n, MPI_Datatype type, void *recv, const N counts[], const D displs[],   \
       MPI_Datatype to, MPI_Comm comm),                                                            \
      (send, n, type, recv, counts, displs, to, comm),                                             \
      (send, n, type, recv, 0, to, LISTS(N, .recv_counts = counts, .recv_displs = displs),         \
       NO_OP, 0))                                                                                  \
    X(Gatherv, gatherv, GATHERV,                                                                   \
      (const void *send, N n, MPI_Datatype type, void *recv, const N counts[], const D displs[],   \
       MPI_Datatype to, int root, MPI_Comm comm),                                                  \
      (send, n, type, recv, counts, displs, to, root, comm),                                       \
      (send, n, type, recv, 0, to, LISTS(N, .recv_counts = counts, .recv_displs = displs),         \
       NO_OP, root))                                                                               \
    X(Scatterv, scatterv, SCATTERV,                                                                \
      (const void *send, const N counts[], const D displs[], MPI_Datatype type, void *recv, N m,   \
       MPI_Datatype to, int root, MPI_Comm comm),                                                  \
      (send, counts, displs, type, recv, m, to, root, comm),                                       \
      (send, 0, type, recv, m, to, LISTS(N, .send_counts = counts, .send_displs = displs),         \
       NO_OP, root))                                                                               \
    X(Alltoallv, alltoallv, ALLTOALLV,                                                             \
      (const void *send, const N counts[], const D displs[], MPI_Datatype type, void *recv,        \
       const N to_counts[], const D to_displs[], MPI_Datatype to, MPI_Comm comm),                  \
      (send, counts, displs, type, recv, to_counts, to_displs, to, comm),                          \
      (send, 0, type, recv, 0, to, LISTS(N, .send_counts = counts, .send_displs = displs,          \
       .recv_counts = to_counts, .recv_displs = to_displs), NO_OP, 0))                             \
    X(Alltoallw, alltoallw, ALLTOALLW,                                                             \
      (const void *send, const N counts[], const D displs[], const MPI_Datatype types[],           \
       void *recv, const N to_counts[], const D to_displs[], const MPI_Datatype to_types[],        \
       MPI_Comm comm),                                                                             \
      (send, counts, displs, types, recv, to_counts, to_displs, to_types, comm),                   \
      (send, 0, NO_TYPE, recv, 0, NO_TYPE, LISTS(N, .send_counts = counts, .send_displs = displs,  \
       .recv_counts = to_counts, .recv_displs = to_displs, .send_types = types,                    \
       .recv_types = to_types), NO_OP, 0))                                                         \
    X(Reduce_scatter, reduce_scatter, REDUCE_SCATTER,                                              \
      (const void *send, void *recv, const N counts[], MPI_Datatype type, MPI_Op op,               \
       MPI_Comm comm),                                                                             \
      (send, recv, counts, type, op, comm),                                                        \
      (send, 0, NO_TYPE, recv, 0, type, LISTS(N, .send_counts = counts), op, 0))                   \
    X(Scan, scan, SCAN,                                                                            \
      (const void *send, void *recv, N n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),            \
      (send, recv, n, type, op, comm),                                                             \
      (send, 0, NO_TYPE, recv, n, type, NULL, op, 0))                                              \
    X(Exscan, exscan, EXSCAN,                                                                      \
      (const void *send, void *recv, N n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),            \
      (send, recv, n, type, op, comm),                                                             \
      (send, 0, NO_TYPE, recv, n, type, NULL, op, 0))

/* A barrier has no counts, and so no second form. */
#define BARRIER_DOOR(X)                                                                            \
    X(Barrier, barrier, BARRIER, (MPI_Comm comm), (comm),                                          \
      (NULL, 0, NO_TYPE, NULL, 0, NO_TYPE, NULL, NO_OP, 0))

/* All forms of all of them: EVERY_DOOR calls
 *
 *     DOOR(Name, FORM, COLLECTIVE, (parameters), (arguments), members of struct call to `request`)
 *
 * for each, which a file that uses it defines. */
#define BLOCKING_DOOR(Name, name, COLLECTIVE, P, A, M)                                             \
    DOOR(Name, BLOCKING, COLLECTIVE, P, A, UNPAREN M, comm, NULL)
#define NONBLOCKING_DOOR(Name, name, COLLECTIVE, P, A, M)                                          \
    DOOR(I##name, NONBLOCKING, COLLECTIVE, (UNPAREN P, MPI_Request * request),                     \
         (UNPAREN A, request), UNPAREN M, comm, request)
#define LARGE_BLOCKING_DOOR(Name, name, COLLECTIVE, P, A, M)                                       \
    DOOR(Name##_c, BLOCKING, COLLECTIVE, P, A, UNPAREN M, comm, NULL)
#define LARGE_NONBLOCKING_DOOR(Name, name, COLLECTIVE, P, A, M)                                    \
    DOOR(I##name##_c, NONBLOCKING, COLLECTIVE, (UNPAREN P, MPI_Request * request),                 \
         (UNPAREN A, request), UNPAREN M, comm, request)
#if MPI_VERSION >= 4
#define PERSISTENT_DOOR(Name, name, COLLECTIVE, P, A, M)                                           \
    DOOR(Name##_init, PERSISTENT, COLLECTIVE, (UNPAREN P, MPI_Info info, MPI_Request * request),   \
         (UNPAREN A, info, request), UNPAREN M, comm, request)
#define LARGE_PERSISTENT_DOOR(Name, name, COLLECTIVE, P, A, M)                                     \
    DOOR(Name##_init_c, PERSISTENT, COLLECTIVE, (UNPAREN P, MPI_Info info, MPI_Request * request), \
         (UNPAREN A, info, request), UNPAREN M, comm, request)
#define DOORS_OF_MPI_4                                                                             \
    DOORS(LARGE_BLOCKING_DOOR, MPI_Count, MPI_Aint)                                                \
    DOORS(LARGE_NONBLOCKING_DOOR, MPI_Count, MPI_Aint)                                             \
    DOORS(PERSISTENT_DOOR, int, int)                                                               \
    DOORS(LARGE_PERSISTENT_DOOR, MPI_Count, MPI_Aint)                                              \
    BARRIER_DOOR(PERSISTENT_DOOR)
#else
#define DOORS_OF_MPI_4
#endif
#define EVERY_DOOR                                                                                 \
    DOORS(BLOCKING_DOOR, int, int)                                                                 \
    DOORS(NONBLOCKING_DOOR, int, int)                                                              \
    BARRIER_DOOR(BLOCKING_DOOR)                                                                    \
    BARRIER_DOOR(NONBLOCKING_DOOR)                                                                 \
    DOORS_OF_MPI_4
