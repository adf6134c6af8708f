/* libhopbine_mpi.so: MPI's collectives under their own names, for programs that cannot be changed;
 * libhopbine_preload.so passes the program's calls to it. HB_ calls are aliases here: the functions of
 * libhopbine_hb.so pass unserved calls to MPI, so a call would enter twice.
 *
 * A call from within hopbine goes straight to MPI's own function (`in_hopbine`). */
#include "common.h"

#include "forms.h"
#include "fortran.h"
#include "interposed.h"
#include <hopbine_mpi.h>

/* Open MPI's Fortran interfaces call PMPI_X. MPICH's call MPI_X for collectives with buffers. In MPICH, PMPI_X must
 * stay MPI's own: its MPI_File_ calls call PMPI_X while they hold a lock of MPI's. */
#ifdef OPEN_MPI
#define ALIAS_PMPI_OF_OPEN_MPI(NAME, PARAMETERS) ALIAS_PMPI(NAME, PARAMETERS)
#else
#define ALIAS_PMPI_OF_OPEN_MPI(NAME, PARAMETERS)
#endif

#define ENTRY_POINT(NAME, FORM, COLLECTIVE, PARAMETERS, ARGUMENTS, ...)                            \
    EXPORTED int MPI_##NAME PARAMETERS {                                                           \
        PASS_AT_ONCE(NAME, COLLECTIVE, FORM, PARAMETERS, ARGUMENTS)                                \
        struct call call = {COLLECTIVE, FORM, __VA_ARGS__, NULL, 0};                               \
        int code;                                                                                  \
        if (serve(&call, &code)) return code;                                                      \
        PASS(NAME, FORM, PARAMETERS, ARGUMENTS);                                                   \
    }                                                                                              \
    EXPORTED extern int HB_##NAME PARAMETERS __attribute__((alias("MPI_" #NAME)));                 \
    ALIAS_PMPI_OF_OPEN_MPI(MPI_##NAME, PARAMETERS)

ALL_ENTRY_POINTS

/* Open MPI 4's names of the persistent collectives. */
#ifdef OPEN_MPI
#define EXTENSION(Name, name, COLLECTIVE, P, A, M)                                                 \
    EXPORTED extern int MPIX_##Name##_init(UNPAREN P, MPI_Info info, MPI_Request *request)         \
        __attribute__((alias("MPI_" #Name "_init")));                                              \
    EXPORTED extern int PMPIX_##Name##_init(UNPAREN P, MPI_Info info, MPI_Request *request)        \
        __attribute__((alias("MPI_" #Name "_init")));
SIGNATURES(EXTENSION, int, int)
BARRIER_SIGNATURE(EXTENSION)

/* mpi_f08 of MPICH and its derivatives calls PMPI_Barrier, so the Fortran procedures are interposed by name. */
#else
static void give(int code, fint *error) {
    if (error) *error = code;
}

EXPORTED void mpi_barrier_f08_(const fint *comm, fint *error);
void mpi_barrier_f08_(const fint *comm, fint *error) { give(MPI_Barrier(comm_of_f(*comm)), error); }

EXPORTED void mpi_ibarrier_f08_(const fint *comm, fint *request, fint *error);
void mpi_ibarrier_f08_(const fint *comm, fint *request, fint *error) {
    MPI_Request made = MPI_REQUEST_NULL;
    give(MPI_Ibarrier(comm_of_f(*comm), &made), error);
    *request = f_of_request(made);
}

EXPORTED void mpi_barrier_init_f08_(const fint *comm, const fint *info, fint *request, fint *error);
void mpi_barrier_init_f08_(const fint *comm, const fint *info, fint *request, fint *error) {
    MPI_Request made = MPI_REQUEST_NULL;
    give(MPI_Barrier_init(comm_of_f(*comm), info_of_f(*info), &made), error);
    *request = f_of_request(made);
}
#endif
