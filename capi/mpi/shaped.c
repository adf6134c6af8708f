/* HB_Allreduce and its kin: MPI's collectives under another name, served by hopbine where it can. Where
 * libhopbine_mpi.so is loaded, these names are its own (preload.c), and nothing of this library is called. */
#include "doors.h"

#include "forms.h"
#include "requests.h"
#include <hopbine_mpi.h>
#include <stdlib.h>
#include <strings.h>

/* HOPBINE_START=call on one rank holds for all. Where libhopbine_mpi.so is loaded HB_Init is its own. */
void start_at_init(void) {
    const char *const when = getenv("HOPBINE_START");
    const int starts = !when || strcasecmp(when, "call") != 0;
    int all = 0;
    PMPI_Allreduce(&starts, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all) HB_Init();
}

#define DOOR(NAME, FORM, COLLECTIVE, PARAMETERS, ARGUMENTS, ...)                                   \
    DOOR_OUT int HB_##NAME PARAMETERS {                                                            \
        struct call call = {COLLECTIVE, FORM, __VA_ARGS__, NULL, 0};                               \
        int code;                                                                                  \
        if (status == NEVER_TRIED) start_with(comm, FORM);                                         \
        if (serve(&call, &code)) return code;                                                      \
        return passed(&call, PMPI_##NAME ARGUMENTS);                                               \
    }

/* A request is served by libhopbine_mpi.so only, since waiting for it must be served, too. */
const char *against_requests(void) { return "a request, without libhopbine_mpi.so"; }

int serve_request(struct call *call, struct state *state, int *code, int *error) {
    (void)state, (void)code, (void)error;
    return call->reason = against_requests(), 0;
}

void forget_comm(MPI_Comm comm) { (void)comm; }

void end_background(void) {}

EVERY_DOOR
