/* Common part of the test programs: MPI's calls by their own names, or with -DHB through HB_ calls; and EXPECT, which
 * ends the job with a message if its condition is false. */
#include <mpi.h>

#include <stdio.h>
#ifdef HB
#include <hopbine_mpi.h>
#define CALL(name) HB_##name
#else
#define CALL(name) MPI_##name
#endif

/* Of MPI_COMM_WORLD, unless a program sets others. */
static int rank, size;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %d of %d: not true: %s\n", __FILE__, __LINE__, rank, size, \
                    #condition);                                                                   \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                          \
        }                                                                                          \
    } while (0)
