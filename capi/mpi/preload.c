/* libhopbine_mpi.so: MPI's collectives themselves, for programs that cannot be changed.
 *
 * A call from hopbine goes straight to MPI's own (`within`). */
#define _GNU_SOURCE
#include "doors.h"

#include "forms.h"
#include "interposed.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* libhopbine_hb.so looks for this: requests are served where it is. */
DOOR_OUT extern const int hopbine_interposes_mpi;
const int hopbine_interposes_mpi = 1;

void *behind(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found) return found;
    fprintf(stderr, "hopbine: the MPI library has no %s\n", name);
    abort();
}

/* Open MPI's Fortran interfaces call PMPI_X. MPICH's call MPI_X for what has buffers; PMPI_X its MPI_File_
 * calls have, which hold a lock of MPI's meanwhile: what waits there must be MPI's own. */
#ifdef OPEN_MPI
#define ALSO(NAME, PARAMETERS) BOTH(NAME, PARAMETERS)
#else
#define ALSO(NAME, PARAMETERS)
#endif

#define DOOR(NAME, FORM, COLLECTIVE, PARAMETERS, ARGUMENTS, ...)                                   \
    DOOR_OUT int NAME PARAMETERS {                                                                 \
        FIND(P##NAME);                                                                             \
        struct call call = {COLLECTIVE, FORM, __VA_ARGS__, NULL, 0};                               \
        int code;                                                                                  \
        if (serve(&call, &code)) return code;                                                      \
        return passed(&call, next ARGUMENTS);                                                      \
    }                                                                                              \
    ALSO(NAME, PARAMETERS)

#define BLOCKING_DOOR(Name, name, COLLECTIVE, P, A, M)                                             \
    DOOR(MPI_##Name, BLOCKING, COLLECTIVE, P, A, UNPAREN M, comm, NULL)
#define NONBLOCKING_DOOR(Name, name, COLLECTIVE, P, A, M)                                          \
    DOOR(MPI_I##name, NONBLOCKING, COLLECTIVE, (UNPAREN P, MPI_Request * request),                 \
         (UNPAREN A, request), UNPAREN M, comm, request)
DOORS(BLOCKING_DOOR, int, int)
DOORS(NONBLOCKING_DOOR, int, int)
BARRIER_DOOR(BLOCKING_DOOR)
BARRIER_DOOR(NONBLOCKING_DOOR)

#if MPI_VERSION >= 4
#define LARGE_BLOCKING_DOOR(Name, name, COLLECTIVE, P, A, M)                                       \
    DOOR(MPI_##Name##_c, BLOCKING, COLLECTIVE, P, A, UNPAREN M, comm, NULL)
#define LARGE_NONBLOCKING_DOOR(Name, name, COLLECTIVE, P, A, M)                                    \
    DOOR(MPI_I##name##_c, NONBLOCKING, COLLECTIVE, (UNPAREN P, MPI_Request * request),             \
         (UNPAREN A, request), UNPAREN M, comm, request)
#define PERSISTENT_DOOR(Name, name, COLLECTIVE, P, A, M)                                           \
    DOOR(MPI_##Name##_init, PERSISTENT, COLLECTIVE,                                                \
         (UNPAREN P, MPI_Info info, MPI_Request * request), (UNPAREN A, info, request),            \
         UNPAREN M, comm, request)
DOORS(LARGE_BLOCKING_DOOR, MPI_Count, MPI_Aint)
DOORS(LARGE_NONBLOCKING_DOOR, MPI_Count, MPI_Aint)
#define LARGE_PERSISTENT_DOOR(Name, name, COLLECTIVE, P, A, M)                                     \
    DOOR(MPI_##Name##_init_c, PERSISTENT, COLLECTIVE,                                              \
         (UNPAREN P, MPI_Info info, MPI_Request * request), (UNPAREN A, info, request),            \
         UNPAREN M, comm, request)
DOORS(PERSISTENT_DOOR, int, int)
DOORS(LARGE_PERSISTENT_DOOR, MPI_Count, MPI_Aint)
BARRIER_DOOR(PERSISTENT_DOOR)
#endif

/* MPICH's mpi_f08 calls PMPI_Barrier: its own names are taken. */
#ifdef MPICH
static void give(int code, MPI_Fint *error) {
    if (error) *error = code;
}

DOOR_OUT void mpi_barrier_f08_(const MPI_Fint *comm, MPI_Fint *error);
void mpi_barrier_f08_(const MPI_Fint *comm, MPI_Fint *error) { give(MPI_Barrier(MPI_Comm_f2c(*comm)), error); }

/* A request is the same in Fortran. */
DOOR_OUT void mpi_ibarrier_f08_(const MPI_Fint *comm, MPI_Request *request, MPI_Fint *error);
void mpi_ibarrier_f08_(const MPI_Fint *comm, MPI_Request *request, MPI_Fint *error) {
    give(MPI_Ibarrier(MPI_Comm_f2c(*comm), request), error);
}

#if MPI_VERSION >= 4
DOOR_OUT void mpi_barrier_init_f08_(const MPI_Fint *comm, const MPI_Fint *info, MPI_Request *request,
                                    MPI_Fint *error);
void mpi_barrier_init_f08_(const MPI_Fint *comm, const MPI_Fint *info, MPI_Request *request, MPI_Fint *error) {
    give(MPI_Barrier_init(MPI_Comm_f2c(*comm), MPI_Info_f2c(*info), request), error);
}
#endif
#endif

DOOR_OUT int MPI_Init(int *argc, char ***argv) {
    FIND(PMPI_Init);
    int code = next(argc, argv);
    if (code == MPI_SUCCESS) start();
    return code;
}
BOTH(MPI_Init, (int *argc, char ***argv))

DOOR_OUT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    FIND(PMPI_Init_thread);
    int code = next(argc, argv, required, provided);
    if (code == MPI_SUCCESS) start();
    return code;
}
BOTH(MPI_Init_thread, (int *argc, char ***argv, int required, int *provided))
