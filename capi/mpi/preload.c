/* libhopbine_mpi.so: MPI's collectives themselves, for programs that cannot be changed. HB_ calls are the same
 * functions here: with those of libhopbine_hb.so, which pass on what they do not serve, a call would come twice.
 *
 * A call from hopbine goes straight to MPI's own (`within`). */
#include "doors.h"

#include "forms.h"
#include "interposed.h"
#include <hopbine_mpi.h>

/* Open MPI's Fortran interfaces call PMPI_X. MPICH's call MPI_X for what has buffers; PMPI_X its MPI_File_
 * calls have, which hold a lock of MPI's meanwhile: what waits there must be MPI's own. */
#ifdef OPEN_MPI
#define ALSO(NAME, PARAMETERS) BOTH(NAME, PARAMETERS)
#else
#define ALSO(NAME, PARAMETERS)
#endif

#define DOOR(NAME, FORM, COLLECTIVE, PARAMETERS, ARGUMENTS, ...)                                   \
    DOOR_OUT int MPI_##NAME PARAMETERS {                                                           \
        FIND(PMPI_##NAME);                                                                         \
        struct call call = {COLLECTIVE, FORM, __VA_ARGS__, NULL, 0};                               \
        int code;                                                                                  \
        if (serve(&call, &code)) return code;                                                      \
        return passed(&call, next ARGUMENTS);                                                      \
    }                                                                                              \
    DOOR_OUT extern int HB_##NAME PARAMETERS __attribute__((alias("MPI_" #NAME)));                 \
    ALSO(MPI_##NAME, PARAMETERS)

EVERY_DOOR

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
