/* Expands the signatures into all forms of MPI's collectives. */
#include "signatures.h"

#define UNPAREN(...) __VA_ARGS__

/* Every signature lists every member of struct call: GCC clears a partly initialised structure first, so slowly that
 * a short call takes a tenth longer. */
#define NO_TYPE ((MPI_Datatype)0)
#define NO_OP ((MPI_Op)0)
#define LISTS(N, ...) &(const struct lists){.is_wide = sizeof(N) > sizeof(int), __VA_ARGS__}

/* ALL_ENTRY_POINTS expands
 *
 *     ENTRY_POINT(Name, FORM, COLLECTIVE, (parameters), (arguments), members of struct call to `request`)
 *
 * for each form of each collective. The including file defines ENTRY_POINT. */
#define BLOCKING_FORM(Name, name, COLLECTIVE, P, A, M)                                             \
    ENTRY_POINT(Name, BLOCKING, COLLECTIVE, P, A, UNPAREN M, comm, NULL)
#define NONBLOCKING_FORM(Name, name, COLLECTIVE, P, A, M)                                          \
    ENTRY_POINT(I##name, NONBLOCKING, COLLECTIVE, (UNPAREN P, MPI_Request * request),              \
                (UNPAREN A, request), UNPAREN M, comm, request)
#define LARGE_BLOCKING_FORM(Name, name, COLLECTIVE, P, A, M)                                       \
    ENTRY_POINT(Name##_c, BLOCKING, COLLECTIVE, P, A, UNPAREN M, comm, NULL)
#define LARGE_NONBLOCKING_FORM(Name, name, COLLECTIVE, P, A, M)                                    \
    ENTRY_POINT(I##name##_c, NONBLOCKING, COLLECTIVE, (UNPAREN P, MPI_Request * request),          \
                (UNPAREN A, request), UNPAREN M, comm, request)
#define PERSISTENT_FORM(Name, name, COLLECTIVE, P, A, M)                                           \
    ENTRY_POINT(Name##_init, PERSISTENT, COLLECTIVE,                                               \
                (UNPAREN P, MPI_Info info, MPI_Request * request),                                 \
                (UNPAREN A, info, request), UNPAREN M, comm, request)
#define LARGE_PERSISTENT_FORM(Name, name, COLLECTIVE, P, A, M)                                     \
    ENTRY_POINT(Name##_init_c, PERSISTENT, COLLECTIVE,                                             \
                (UNPAREN P, MPI_Info info, MPI_Request * request),                                 \
                (UNPAREN A, info, request), UNPAREN M, comm, request)
#define ALL_ENTRY_POINTS                                                                           \
    SIGNATURES(BLOCKING_FORM, int, int)                                                            \
    SIGNATURES(NONBLOCKING_FORM, int, int)                                                         \
    BARRIER_SIGNATURE(BLOCKING_FORM)                                                               \
    BARRIER_SIGNATURE(NONBLOCKING_FORM)                                                            \
    SIGNATURES(LARGE_BLOCKING_FORM, MPI_Count, MPI_Aint)                                           \
    SIGNATURES(LARGE_NONBLOCKING_FORM, MPI_Count, MPI_Aint)                                        \
    SIGNATURES(PERSISTENT_FORM, int, int)                                                          \
    SIGNATURES(LARGE_PERSISTENT_FORM, MPI_Count, MPI_Aint)                                         \
    BARRIER_SIGNATURE(PERSISTENT_FORM)

/* In an entry point: `next` is MPI's own function, or null once SEEK has not found it. An MPI may lack functions of
 * MPI 4 even if its header declares them. */
#define NEXT(PARAMETERS)                                                                           \
    static int(*next) PARAMETERS;                                                                  \
    static int is_sought
#define SEEK(NAME, PARAMETERS)                                                                     \
    if (!__atomic_load_n(&is_sought, __ATOMIC_ACQUIRE)) {                                          \
        next = (int(*) PARAMETERS)find_mpi_function("PMPI_" #NAME);                                \
        __atomic_store_n(&is_sought, 1, __ATOMIC_RELEASE);                                         \
    }

/* Passes a call to MPI at once if hopbine is known not to serve it. */
#define PASS_AT_ONCE(NAME, COLLECTIVE, FORM, PARAMETERS, ARGUMENTS)                                \
    NEXT(PARAMETERS);                                                                              \
    if (is_unserved(COLLECTIVE, FORM, comm)) {                                                     \
        SEEK(NAME, PARAMETERS)                                                                     \
        if (next) return next ARGUMENTS;                                                           \
    }

/* Passes the call to MPI. */
#define PASS(NAME, FORM, PARAMETERS, ARGUMENTS)                                                    \
    SEEK(NAME, PARAMETERS)                                                                         \
    return next ? passed(&call, next ARGUMENTS) : call_missing_function(&call, #NAME, INFO_OF_##FORM)
#define INFO_OF_BLOCKING MPI_INFO_NULL
#define INFO_OF_NONBLOCKING MPI_INFO_NULL
#define INFO_OF_PERSISTENT info
