/* HB_Allreduce and the others: MPI's collectives under another name, served by hopbine if it can. If
 * libhopbine_preload.so is loaded, it defines these names, and the functions of this library are not called. */
#include "common.h"

#include "forms.h"
#include "interposed.h"
#include <hopbine_mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Ends a program of another kind of MPI than this library's: MPI's handles are other types there. All MPIs of the standard
 * ABI are of one kind, whatever their names. */
static void refuse_another_kind(void) {
#if defined MPI_ABI_VERSION
    const char *const own = NULL;
#elif defined OPEN_MPI
    const char *const own = "Open MPI";
#else
    const char *const own = "MPICH";
#endif
    const char *const kind = kind_of_mpi();
    if (!own || !kind || strcmp(own, kind) == 0) return;
    fprintf(stderr, "hopbine: the program has %s, but its libhopbine_hb.so was built for %s; link that of lib/hopbine/%s\n",
            kind, own, strcmp(kind, "MPICH") == 0 ? "mpich" : "openmpi");
    _exit(1);
}

/* HOPBINE_START=call on one rank holds for all ranks. HB_Init is libhopbine_preload.so's if that is loaded. */
static void start_at_init(void) {
    refuse_another_kind();
    const int starts = start_wanted() != AT_CALL;
    int all = 0;
    struct watch watch;
    begin_watch(&watch);
    PMPI_Allreduce(&starts, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    end_watch(&watch);
    if (all) HB_Init();
}

EXPORTED int hopbine_comm_from_mpi(MPI_Comm comm, hopbine_comm_t *made) {
    int is_started = 0, compared = MPI_UNEQUAL;
    hopbine_initialized(&is_started);
    if (!is_started && comm != MPI_COMM_NULL) PMPI_Comm_compare(comm, MPI_COMM_WORLD, &compared);
    if (compared != MPI_UNEQUAL) HB_Init();
    return hopbine_comm_of_mpi(&comm, made);
}

__attribute__((constructor)) static void add_start(void) { library.start_at_init = start_at_init; }

#define ENTRY_POINT(NAME, FORM, COLLECTIVE, PARAMETERS, ARGUMENTS, ...)                            \
    EXPORTED int HB_##NAME PARAMETERS {                                                            \
        PASS_AT_ONCE(NAME, COLLECTIVE, FORM, PARAMETERS, ARGUMENTS)                                \
        struct call call = {COLLECTIVE, FORM, __VA_ARGS__, NULL, 0};                               \
        int code;                                                                                  \
        if (status == NEVER_TRIED) start_with(comm, FORM);                                         \
        if (serve(&call, &code)) return code;                                                      \
        PASS(NAME, FORM, PARAMETERS, ARGUMENTS);                                                   \
    }

ALL_ENTRY_POINTS
