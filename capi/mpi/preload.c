/* libhopbine_mpi.so: MPI's collectives themselves, for programs that cannot be changed.
 *
 * The library stands before MPI's (LD_PRELOAD, or linked first). MPICH's Fortran interfaces call
 * MPI_X; Open MPI's call PMPI_X, as do its own components, so both names are taken and MPI's own is
 * found behind. A call from within MPI, or from hopbine, goes straight there (`within`). */
#define _GNU_SOURCE
#include "doors.h"

#include "forms.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found) return found;
    fprintf(stderr, "hopbine: the MPI library has no %s\n", name);
    abort();
}

/* MPI's own function, kept in `next`. */
#define FIND(NAME)                                                                                 \
    do {                                                                                           \
        if (!next) next = (__typeof__(next))real(#NAME);                                           \
    } while (0)

#ifdef OPEN_MPI
#define ALSO(NAME, PARAMETERS) DOOR_OUT extern int P##NAME PARAMETERS __attribute__((alias(#NAME)));
#else
#define ALSO(NAME, PARAMETERS)
#endif

#define DOOR(NAME, FORM, COLLECTIVE, PARAMETERS, ARGUMENTS, ...)                                   \
    DOOR_OUT int NAME PARAMETERS {                                                                 \
        static __typeof__(&P##NAME) next;                                                          \
        struct call call = {.collective = COLLECTIVE, .form = FORM, __VA_ARGS__};                  \
        int code;                                                                                  \
        if (serve(&call, &code)) return code;                                                      \
        within++;                                                                                  \
        FIND(P##NAME);                                                                             \
        code = next ARGUMENTS;                                                                     \
        within--;                                                                                  \
        return passed(&call, code);                                                                \
    }                                                                                              \
    ALSO(NAME, PARAMETERS)

#define BLOCKING_DOOR(Name, name, COLLECTIVE, P, A, M)                                             \
    DOOR(MPI_##Name, BLOCKING, COLLECTIVE, P, A, UNPAREN M)
#define NONBLOCKING_DOOR(Name, name, COLLECTIVE, P, A, M)                                          \
    DOOR(MPI_I##name, NONBLOCKING, COLLECTIVE, (UNPAREN P, MPI_Request * request),                 \
         (UNPAREN A, request), UNPAREN M)
DOORS(BLOCKING_DOOR, int, int)
DOORS(NONBLOCKING_DOOR, int, int)
BARRIER_DOOR(BLOCKING_DOOR)
BARRIER_DOOR(NONBLOCKING_DOOR)

#if MPI_VERSION >= 4
#define LARGE_BLOCKING_DOOR(Name, name, COLLECTIVE, P, A, M)                                       \
    DOOR(MPI_##Name##_c, BLOCKING, COLLECTIVE, P, A, UNPAREN M)
#define LARGE_NONBLOCKING_DOOR(Name, name, COLLECTIVE, P, A, M)                                    \
    DOOR(MPI_I##name##_c, NONBLOCKING, COLLECTIVE, (UNPAREN P, MPI_Request * request),             \
         (UNPAREN A, request), UNPAREN M)
#define PERSISTENT_DOOR(Name, name, COLLECTIVE, P, A, M)                                           \
    DOOR(MPI_##Name##_init, PERSISTENT, COLLECTIVE,                                                \
         (UNPAREN P, MPI_Info info, MPI_Request * request), (UNPAREN A, info, request), UNPAREN M)
DOORS(LARGE_BLOCKING_DOOR, MPI_Count, MPI_Aint)
DOORS(LARGE_NONBLOCKING_DOOR, MPI_Count, MPI_Aint)
DOORS(PERSISTENT_DOOR, int, int)
BARRIER_DOOR(PERSISTENT_DOOR)
#endif

DOOR_OUT int MPI_Init(int *argc, char ***argv) {
    static __typeof__(&PMPI_Init) next;
    FIND(PMPI_Init);
    int code = next(argc, argv);
    if (code == MPI_SUCCESS) start();
    return code;
}
ALSO(MPI_Init, (int *argc, char ***argv))

DOOR_OUT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    static __typeof__(&PMPI_Init_thread) next;
    FIND(PMPI_Init_thread);
    int code = next(argc, argv, required, provided);
    if (code == MPI_SUCCESS) start();
    return code;
}
ALSO(MPI_Init_thread, (int *argc, char ***argv, int required, int *provided))
