/* Calls that make communicators. hopbine makes a communicator of its own for each, which all ranks have to take part
 * in. In these calls all ranks are present, while a later non-blocking call must not wait for others. Also
 * MPIX_Comm_revoke, after which calls on the communicator go to MPI, and fail. */
#include "interposed.h"
#include "common.h"

#define CREATOR(NAME, PARAMETERS, ARGUMENTS)                                                       \
    EXPORTED int NAME PARAMETERS {                                                                 \
        FIND(P##NAME);                                                                             \
        const int code = next ARGUMENTS;                                                           \
        if (code == MPI_SUCCESS && made) create_state(*made, comm);                                \
        return code;                                                                               \
    }                                                                                              \
    ALIAS_PMPI(NAME, PARAMETERS)

CREATOR(MPI_Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made))
CREATOR(MPI_Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made), (comm, info, made))
CREATOR(MPI_Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made), (comm, group, made))
CREATOR(MPI_Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made), (comm, group, tag, made))
CREATOR(MPI_Comm_split, (MPI_Comm comm, int colour, int key, MPI_Comm *made), (comm, colour, key, made))
CREATOR(MPI_Comm_split_type, (MPI_Comm comm, int kind, int key, MPI_Info info, MPI_Comm *made),
        (comm, kind, key, info, made))
CREATOR(MPI_Cart_create,
        (MPI_Comm comm, int n, const int sizes[], const int periods[], int reorder, MPI_Comm *made),
        (comm, n, sizes, periods, reorder, made))
CREATOR(MPI_Cart_sub, (MPI_Comm comm, const int kept[], MPI_Comm *made), (comm, kept, made))
CREATOR(MPI_Graph_create,
        (MPI_Comm comm, int n, const int index[], const int edges[], int reorder, MPI_Comm *made),
        (comm, n, index, edges, reorder, made))
CREATOR(MPI_Dist_graph_create,
        (MPI_Comm comm, int n, const int sources[], const int degrees[], const int destinations[],
         const int weights[], MPI_Info info, int reorder, MPI_Comm *made),
        (comm, n, sources, degrees, destinations, weights, info, reorder, made))
CREATOR(MPI_Dist_graph_create_adjacent,
        (MPI_Comm comm, int n_in, const int sources[], const int in_weights[], int n_out,
         const int destinations[], const int out_weights[], MPI_Info info, int reorder, MPI_Comm *made),
        (comm, n_in, sources, in_weights, n_out, destinations, out_weights, info, reorder, made))
CREATOR(MPI_Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *made), (comm, high, made))

EXPORTED int MPIX_Comm_revoke(MPI_Comm comm);
int PMPIX_Comm_revoke(MPI_Comm comm);
EXPORTED int MPIX_Comm_revoke(MPI_Comm comm) {
    static __typeof__(&PMPIX_Comm_revoke) next;
    /* A program may look up whether MPI has this function, and find this one. */
    if (!next) next = (__typeof__(next))find_mpi_function("PMPIX_Comm_revoke");
    if (!next) return MPI_ERR_UNSUPPORTED_OPERATION;
    mark_revoked(comm);
    return next(comm);
}
ALIAS_PMPI(MPIX_Comm_revoke, (MPI_Comm comm))
