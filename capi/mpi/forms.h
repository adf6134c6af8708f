/* Expands the signatures into all forms of MPI's collectives. */
#include "signatures.h"

#define UNPAREN(...) __VA_ARGS__

/* Every signature lists every member of struct call: GCC clears a partly initialised structure first, so slowly that
 * a short call takes a tenth longer. */
#define NO_TYPE ((MPI_Datatype)0)
#define NO_OP ((MPI_Op)0)
#define LISTS(N, ...) &(const struct lists){.is_wide = sizeof(N) > sizeof(int), __VA_ARGS__}

/* EVERY_DOOR expands
 *
 *     DOOR(Name, FORM, COLLECTIVE, (parameters), (arguments), members of struct call to `request`)
 *
 * for each form of each collective. The including file defines DOOR. */
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
#define PERSISTENT_DOOR(Name, name, COLLECTIVE, P, A, M)                                           \
    DOOR(Name##_init, PERSISTENT, COLLECTIVE, (UNPAREN P, MPI_Info info, MPI_Request * request),   \
         (UNPAREN A, info, request), UNPAREN M, comm, request)
#define LARGE_PERSISTENT_DOOR(Name, name, COLLECTIVE, P, A, M)                                     \
    DOOR(Name##_init_c, PERSISTENT, COLLECTIVE, (UNPAREN P, MPI_Info info, MPI_Request * request), \
         (UNPAREN A, info, request), UNPAREN M, comm, request)
#define EVERY_DOOR                                                                                 \
    DOORS(BLOCKING_DOOR, int, int)                                                                 \
    DOORS(NONBLOCKING_DOOR, int, int)                                                              \
    BARRIER_DOOR(BLOCKING_DOOR)                                                                    \
    BARRIER_DOOR(NONBLOCKING_DOOR)                                                                 \
    DOORS(LARGE_BLOCKING_DOOR, MPI_Count, MPI_Aint)                                                \
    DOORS(LARGE_NONBLOCKING_DOOR, MPI_Count, MPI_Aint)                                             \
    DOORS(PERSISTENT_DOOR, int, int)                                                               \
    DOORS(LARGE_PERSISTENT_DOOR, MPI_Count, MPI_Aint)                                              \
    BARRIER_DOOR(PERSISTENT_DOOR)

/* Within a door: `next` is MPI's own function, or null once SEEK has not found it. An MPI may lack functions of MPI 4
 * even if its header declares them. */
#define NEXT(PARAMETERS)                                                                           \
    static int(*next) PARAMETERS;                                                                  \
    static int is_sought
#define SEEK(NAME, PARAMETERS)                                                                     \
    if (!__atomic_load_n(&is_sought, __ATOMIC_ACQUIRE)) {                                          \
        next = (int(*) PARAMETERS)find_behind("PMPI_" #NAME);                                      \
        __atomic_store_n(&is_sought, 1, __ATOMIC_RELEASE);                                         \
    }

/* Passes a call to MPI at once if hopbine is known not to serve it. */
#define PASS_AT_ONCE(NAME, COLLECTIVE, FORM, PARAMETERS, ARGUMENTS)                                \
    NEXT(PARAMETERS);                                                                              \
    if (is_of_mpi(COLLECTIVE, FORM, comm)) {                                                                         \
        SEEK(NAME, PARAMETERS)                                                                     \
        if (next) return next ARGUMENTS;                                                           \
    }

/* Passes the call to MPI. */
#define PASS(NAME, FORM, PARAMETERS, ARGUMENTS)                                                    \
    SEEK(NAME, PARAMETERS)                                                                         \
    return next ? passed(&call, next ARGUMENTS) : make_without(&call, #NAME, INFO_OF_##FORM)
#define INFO_OF_BLOCKING MPI_INFO_NULL
#define INFO_OF_NONBLOCKING MPI_INFO_NULL
#define INFO_OF_PERSISTENT info
