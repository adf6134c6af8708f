/* libhopbine_mpi.so: MPI's collectives under their own names, for programs that cannot be changed;
 * libhopbine_preload.so passes the program's calls to it. HB_ calls are aliases here: the functions of
 * libhopbine_hb.so pass unserved calls to MPI, so a call would enter twice.
 *
 * A call from within hopbine goes straight to MPI's own function (`within`). */
#include "doors.h"

#include "forms.h"
#include "fortran.h"
#include "interposed.h"
#include <hopbine_mpi.h>

/* Open MPI's Fortran interfaces call PMPI_X. MPICH's call MPI_X for collectives with buffers. In MPICH, PMPI_X must
 * stay MPI's own: its MPI_File_ calls call PMPI_X while they hold a lock of MPI's. */
#ifdef OPEN_MPI
#define ALSO(NAME, PARAMETERS) BOTH(NAME, PARAMETERS)
#else
#define ALSO(NAME, PARAMETERS)
#endif

#define DOOR(NAME, FORM, COLLECTIVE, PARAMETERS, ARGUMENTS, ...)                                   \
    DOOR_OUT int MPI_##NAME PARAMETERS {                                                           \
        PASS_AT_ONCE(NAME, COLLECTIVE, FORM, PARAMETERS, ARGUMENTS)                                \
        struct call call = {COLLECTIVE, FORM, __VA_ARGS__, NULL, 0};                               \
        int code;                                                                                  \
        if (serve(&call, &code)) return code;                                                      \
        PASS(NAME, FORM, PARAMETERS, ARGUMENTS);                                                   \
    }                                                                                              \
    DOOR_OUT extern int HB_##NAME PARAMETERS __attribute__((alias("MPI_" #NAME)));                 \
    ALSO(MPI_##NAME, PARAMETERS)

EVERY_DOOR

/* Open MPI 4's names of the persistent collectives. */
#ifdef OPEN_MPI
#define EXTENSION(Name, name, COLLECTIVE, P, A, M)                                                 \
    DOOR_OUT extern int MPIX_##Name##_init(UNPAREN P, MPI_Info info, MPI_Request *request)         \
        __attribute__((alias("MPI_" #Name "_init")));                                              \
    DOOR_OUT extern int PMPIX_##Name##_init(UNPAREN P, MPI_Info info, MPI_Request *request)        \
        __attribute__((alias("MPI_" #Name "_init")));
DOORS(EXTENSION, int, int)
BARRIER_DOOR(EXTENSION)

/* mpi_f08 of MPICH and its derivatives calls PMPI_Barrier, so the Fortran procedures are interposed by name. */
#else
static void give(int code, fint *error) {
    if (error) *error = code;
}

DOOR_OUT void mpi_barrier_f08_(const fint *comm, fint *error);
void mpi_barrier_f08_(const fint *comm, fint *error) { give(MPI_Barrier(comm_of_f(*comm)), error); }

DOOR_OUT void mpi_ibarrier_f08_(const fint *comm, fint *request, fint *error);
void mpi_ibarrier_f08_(const fint *comm, fint *request, fint *error) {
    MPI_Request made = MPI_REQUEST_NULL;
    give(MPI_Ibarrier(comm_of_f(*comm), &made), error);
    *request = f_of_request(made);
}

DOOR_OUT void mpi_barrier_init_f08_(const fint *comm, const fint *info, fint *request, fint *error);
void mpi_barrier_init_f08_(const fint *comm, const fint *info, fint *request, fint *error) {
    MPI_Request made = MPI_REQUEST_NULL;
    give(MPI_Barrier_init(comm_of_f(*comm), info_of_f(*info), &made), error);
    *request = f_of_request(made);
}
#endif
