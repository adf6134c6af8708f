/* HB_Allreduce and its kin: MPI's collectives under another name, served by hopbine where it can. */
#include "doors.h"

#include "forms.h"
#include "requests.h"
#include <hopbine_mpi.h>
#include <stdio.h>

/* There will be no report if hopbine never starts: whoever wants one is told why. */
static void say_unstarted(void) {
    static int is_said;
    int is_there = 0, rank = 0;
    if (within || __atomic_exchange_n(&is_said, 1, __ATOMIC_RELAXED) || !hopbine_report_wanted()) return;
    PMPI_Initialized(&is_there);
    if (is_there) PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (is_there && rank == 0)
        fputs("hopbine: MPI serves HB_ calls until HB_Init, or the first of them on MPI_COMM_WORLD\n", stderr);
}

/* Also for programs that never call HB_Init: the first call on MPI_COMM_WORLD starts hopbine. */
static void start_on(MPI_Comm comm) {
    if (comm == MPI_COMM_WORLD) start();
    else if (status == NEVER_TRIED) say_unstarted();
}

DOOR_OUT int HB_Init(void) {
    start();
    return MPI_SUCCESS;
}

#define DOOR(NAME, REAL, FORM, COLLECTIVE, PARAMETERS, ARGUMENTS, ...)                             \
    DOOR_OUT int NAME PARAMETERS {                                                                 \
        struct call call = {COLLECTIVE, FORM, __VA_ARGS__, NULL, 0};                               \
        int code;                                                                                  \
        start_on(comm);                                                                            \
        if (serve(&call, &code)) return code;                                                      \
        return passed(&call, REAL ARGUMENTS);                                                      \
    }

/* A request is served by libhopbine_mpi.so only, since waiting for it must be served, too: where that is,
 * a call that gives one is the interposed one. */
const char *against_requests(void) { return "a request, without libhopbine_mpi.so"; }

int serve_request(struct call *call, struct state *state, int *code, int *error) {
    (void)state, (void)code, (void)error;
    return call->reason = against_requests(), 0;
}

void forget_comm(MPI_Comm comm) { (void)comm; }

void end_background(void) {}

extern const int hopbine_interposes_mpi __attribute__((weak));

#define REQUEST_DOOR(NAME, REAL, FORM, COLLECTIVE, PARAMETERS, ARGUMENTS, ...)                     \
    DOOR_OUT int NAME PARAMETERS {                                                                 \
        struct call call = {COLLECTIVE, FORM, __VA_ARGS__, NULL, 0};                               \
        int code;                                                                                  \
        start_on(comm);                                                                            \
        if (&hopbine_interposes_mpi || within) return REAL ARGUMENTS;                              \
        if (serve(&call, &code)) return code;                                                      \
        return passed(&call, REAL ARGUMENTS);                                                      \
    }

#define BLOCKING_DOOR(Name, name, COLLECTIVE, P, A, M)                                             \
    DOOR(HB_##Name, PMPI_##Name, BLOCKING, COLLECTIVE, P, A, UNPAREN M, comm, NULL)
#define NONBLOCKING_DOOR(Name, name, COLLECTIVE, P, A, M)                                          \
    REQUEST_DOOR(HB_I##name, MPI_I##name, NONBLOCKING, COLLECTIVE,                                 \
                 (UNPAREN P, MPI_Request * request), (UNPAREN A, request), UNPAREN M, comm,         \
                 request)
DOORS(BLOCKING_DOOR, int, int)
DOORS(NONBLOCKING_DOOR, int, int)
BARRIER_DOOR(BLOCKING_DOOR)
BARRIER_DOOR(NONBLOCKING_DOOR)

#if MPI_VERSION >= 4
#define LARGE_BLOCKING_DOOR(Name, name, COLLECTIVE, P, A, M)                                       \
    DOOR(HB_##Name##_c, PMPI_##Name##_c, BLOCKING, COLLECTIVE, P, A, UNPAREN M, comm, NULL)
#define LARGE_NONBLOCKING_DOOR(Name, name, COLLECTIVE, P, A, M)                                    \
    REQUEST_DOOR(HB_I##name##_c, MPI_I##name##_c, NONBLOCKING, COLLECTIVE,                         \
                 (UNPAREN P, MPI_Request * request), (UNPAREN A, request), UNPAREN M, comm,         \
                 request)
#define PERSISTENT_DOOR(Name, name, COLLECTIVE, P, A, M)                                           \
    REQUEST_DOOR(HB_##Name##_init, MPI_##Name##_init, PERSISTENT, COLLECTIVE,                      \
                 (UNPAREN P, MPI_Info info, MPI_Request * request), (UNPAREN A, info, request),    \
                 UNPAREN M, comm, request)
#define LARGE_PERSISTENT_DOOR(Name, name, COLLECTIVE, P, A, M)                                     \
    REQUEST_DOOR(HB_##Name##_init_c, MPI_##Name##_init_c, PERSISTENT, COLLECTIVE,                  \
                 (UNPAREN P, MPI_Info info, MPI_Request * request), (UNPAREN A, info, request),    \
                 UNPAREN M, comm, request)
DOORS(LARGE_BLOCKING_DOOR, MPI_Count, MPI_Aint)
DOORS(LARGE_NONBLOCKING_DOOR, MPI_Count, MPI_Aint)
DOORS(PERSISTENT_DOOR, int, int)
DOORS(LARGE_PERSISTENT_DOOR, MPI_Count, MPI_Aint)
BARRIER_DOOR(PERSISTENT_DOOR)
#endif
