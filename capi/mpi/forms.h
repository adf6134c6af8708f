/* All forms of MPI's collectives, from their signatures. */
#include "signatures.h"

#define UNPAREN(...) __VA_ARGS__

/* A structure that is not initialised whole is cleared first, and by GCC so slowly that a short call
 * takes a tenth longer: so every row has every member. */
#define NO_TYPE ((MPI_Datatype)0)
#define NO_OP ((MPI_Op)0)
#define LISTS(N, ...) &(const struct lists){.is_wide = sizeof(N) > sizeof(int), __VA_ARGS__}

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
