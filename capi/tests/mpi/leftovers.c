/* Checks that the MPI objects which HB_Init makes are freed. If hopbine cannot be started on all ranks (`cannot`), or
 * on one rank with another setting (`one NAME VALUE`): at once; also if the program has started hopbine itself with the ranks in
 * another order (`turned`). Else in MPI_Finalize, also if the program has started hopbine itself (`own`). Counts calls
 * from hopbine's libraries, which find these definitions before MPI's. Prints "nothing is left" on rank 0. */
#define _GNU_SOURCE
#define HB
#include "program.h"

#include "../../../sys/mpi/functions.h"
#include <dlfcn.h>
#include <hopbine.h>
#include <stdlib.h>
#include <string.h>

static int n_comms, n_groups, n_requests;

/* Whether a call comes directly from a library of this name, not from a function that the library calls. */
static int is_its(const void *caller, const char *library) {
    Dl_info from;
    return dladdr(caller, &from) && strstr(from.dli_fname, library);
}

#define COUNT(LIBRARY, NAME, PARAMETERS, ARGUMENTS, N, BY)                                         \
    int NAME PARAMETERS {                                                                          \
        int(*const next) PARAMETERS = (int(*) PARAMETERS)dlsym(RTLD_NEXT, #NAME);                  \
        if (is_its(__builtin_return_address(0), LIBRARY)) N += BY;                                 \
        return next ARGUMENTS;                                                                     \
    }
COUNT("libhopbine", PMPI_Comm_split, (MPI_Comm comm, int colour, int key, MPI_Comm *made), (comm, colour, key, made),
      n_comms, 1)
COUNT("libhopbine", PMPI_Comm_free, (MPI_Comm * comm), (comm), n_comms, -1)
COUNT("libhopbine_hb", PMPI_Comm_group, (MPI_Comm comm, MPI_Group *group), (comm, group), n_groups, 1)
COUNT("libhopbine_hb", PMPI_Group_free, (MPI_Group * group), (group), n_groups, -1)

/* The receive that the library posts on a communicator of one rank, unlike messages between ranks; its wait is
 * counted, too. */
static MPI_Request alone = MPI_REQUEST_NULL;

int PMPI_Irecv(void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) {
    int(*const next)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) =
        (__typeof__(&MPI_Irecv))dlsym(RTLD_NEXT, "PMPI_Irecv");
    const int code = next(data, n, type, from, tag, comm, request);
    int n_ranks = 0;
    PMPI_Comm_size(comm, &n_ranks);
    if (n_ranks == 1 && is_its(__builtin_return_address(0), "libhopbine_hb")) alone = *request, n_requests++;
    return code;
}

int PMPI_Wait(MPI_Request *request, MPI_Status *status) {
    int(*const next)(MPI_Request *, MPI_Status *) = (__typeof__(&MPI_Wait))dlsym(RTLD_NEXT, "PMPI_Wait");
    if (*request == alone && alone != MPI_REQUEST_NULL) alone = MPI_REQUEST_NULL, n_requests--;
    return next(request, status);
}

int main(int argc, char **argv) {
    int mine = 1, sum = 0, told;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    told = rank;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *const how = argc > 1 ? argv[1] : "";
    const int one = strcmp(how, "one") == 0, cannot = one || strcmp(how, "cannot") == 0, own = strcmp(how, "own") == 0;
    const int turned = strcmp(how, "turned") == 0;
    MPI_Comm everybody = MPI_COMM_WORLD;
    hopbine_comm_t world;
    if (turned) MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &everybody);
    if (one && rank == 1) setenv(argv[2], argv[3], 1);
    if (own || turned) EXPECT(hopbine_init_mpi(hopbine_mpi_functions(), &everybody, NULL, NULL, &world) == HOPBINE_SUCCESS);
    HB_Init();
    EXPECT(cannot || turned ? n_comms == 0 && n_groups == 0 && n_requests == 0 : n_comms > 0 && n_groups > 0 && n_requests > 0);
    CALL(Allreduce)(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(sum == size);
    CALL(Bcast)(&told, 1, MPI_INT, 0, MPI_COMM_WORLD);
    EXPECT(told == 0);
    if (own || turned) EXPECT(hopbine_finalize() == HOPBINE_SUCCESS);
    MPI_Finalize();
    if (n_comms || n_groups || n_requests) {
        fprintf(stderr, "rank %d: left: %d communicators, %d groups, %d requests\n", rank, n_comms, n_groups, n_requests);
        return 1;
    }
    if (rank == 0) puts("nothing is left");
    return 0;
}
