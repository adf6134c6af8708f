/* MPI's tests of things other than requests. Messages may have arrived during a call that hopbine served, so these
 * tests are repeated (LOOK in interposed.h). */
#include "interposed.h"
#include "doors.h"

#define TEST(NAME, PARAMETERS, ARGUMENTS)                                                          \
    DOOR_OUT int NAME PARAMETERS {                                                                 \
        FIND(P##NAME);                                                                             \
        LOOK(code, *flag, next ARGUMENTS)                                                          \
        return code;                                                                               \
    }                                                                                              \
    BOTH(NAME, PARAMETERS)

TEST(MPI_Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status), (source, tag, comm, flag, status))
TEST(MPI_Improbe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status),
     (source, tag, comm, flag, message, status))
TEST(MPI_Win_test, (MPI_Win win, int *flag), (win, flag))
