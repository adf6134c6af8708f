/* MPI's functions that start, free and cancel requests. */
#include "interposed.h"
#include "requests.h"

EXPORTED int MPI_Start(MPI_Request *request) {
    FIND(PMPI_Start);
    const int code = next(request);
    if (code == MPI_SUCCESS && !has_none(&n_requests)) start_requests(1, request);
    return code;
}
ALIAS_PMPI(MPI_Start, (MPI_Request *request))

EXPORTED int MPI_Startall(int n, MPI_Request requests[]) {
    FIND(PMPI_Startall);
    const int code = next(n, requests);
    if (code == MPI_SUCCESS && !has_none(&n_requests)) start_requests(n, requests);
    return code;
}
ALIAS_PMPI(MPI_Startall, (int n, MPI_Request requests[]))

EXPORTED int MPI_Request_free(MPI_Request *request) {
    FIND(PMPI_Request_free);
    MPI_Comm comm;
    if (has_none(&n_requests) || !request || free_request(*request, &comm)) return next(request);
    PMPI_Comm_call_errhandler(comm, MPI_ERR_REQUEST);
    return MPI_ERR_REQUEST;
}
ALIAS_PMPI(MPI_Request_free, (MPI_Request *request))

/* A collective cannot be cancelled. */
EXPORTED int MPI_Cancel(MPI_Request *request) {
    FIND(PMPI_Cancel);
    MPI_Comm comm;
    if (has_none(&n_requests) || !request || !is_served(*request, &comm)) return next(request);
    PMPI_Comm_call_errhandler(comm, MPI_ERR_REQUEST);
    return MPI_ERR_REQUEST;
}
ALIAS_PMPI(MPI_Cancel, (MPI_Request *request))
