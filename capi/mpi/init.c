/* MPI_Init and MPI_Init_thread, which start hopbine. Fortran's interfaces call them, too, by their MPI_ or PMPI_
 * name. */
#include "common.h"

#include "interposed.h"
static int initialised(int code) {
    if (code != MPI_SUCCESS || status != NEVER_TRIED) return code;
    library.start_at_init();
    return code;
}

EXPORTED int MPI_Init(int *argc, char ***argv) {
    FIND(PMPI_Init);
    return initialised(next(argc, argv));
}
ALIAS_PMPI(MPI_Init, (int *argc, char ***argv))

EXPORTED int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    FIND(PMPI_Init_thread);
    return initialised(next(argc, argv, required, provided));
}
ALIAS_PMPI(MPI_Init_thread, (int *argc, char ***argv, int required, int *provided))
