/* MPI's tests of things other than requests. Messages may have arrived during a call that hopbine served, so these
 * tests are repeated (RETEST in interposed.h). */
#include "interposed.h"
#include "common.h"

#define TEST(NAME, PARAMETERS, ARGUMENTS)                                                          \
    EXPORTED int NAME PARAMETERS {                                                                 \
        FIND(P##NAME);                                                                             \
        RETEST(code, *flag, next ARGUMENTS)                                                        \
        return code;                                                                               \
    }                                                                                              \
    ALIAS_PMPI(NAME, PARAMETERS)

TEST(MPI_Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status), (source, tag, comm, flag, status))
TEST(MPI_Improbe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status),
     (source, tag, comm, flag, message, status))
TEST(MPI_Win_test, (MPI_Win win, int *flag), (win, flag))
