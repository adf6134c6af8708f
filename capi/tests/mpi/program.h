/* What the test programs have in common: MPI's calls plain, or with -DHB through HB_ calls; and
 * conditions that end the job with a message if they are not true. */
#include <mpi.h>

#include <stdio.h>
#ifdef HB
#include <hopbine_mpi.h>
#define CALL(name) HB_##name
#else
#define CALL(name) MPI_##name
#endif

/* In MPI_COMM_WORLD, or where the program says otherwise. */
static int rank, size;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %d of %d: not true: %s\n", __FILE__, __LINE__, rank, size, \
                    #condition);                                                                   \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                          \
        }                                                                                          \
    } while (0)
