/* Calls that free communicators, from which they are noted until MPI returns. */
#include "common.h"

#include "interposed.h"

/* Whether MPI frees no communicator of this handle. Its error handler may not return, and a note would stay. */
static int is_refused(MPI_Comm comm) {
    return comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF || comm == MPI_COMM_NULL;
}

#define FREE(NAME)                                                                                 \
    EXPORTED int NAME(MPI_Comm *comm) {                                                            \
        FIND(P##NAME);                                                                             \
        if (!comm || is_refused(*comm)) return next(comm);                                         \
        /* A delete callback may free another one. */                                              \
        const MPI_Comm outer = set_dying(*comm);                                                   \
        const int code = next(comm);                                                               \
        set_dying(outer);                                                                          \
        return code;                                                                               \
    }                                                                                              \
    ALIAS_PMPI(NAME, (MPI_Comm *comm))

FREE(MPI_Comm_free)
FREE(MPI_Comm_disconnect)
