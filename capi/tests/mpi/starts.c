/* HB_ calls in a program that never calls HB_Init, on communicators that it makes: of half of the ranks each, or of
 * all (`all`). With `thread`, MPI_Init_thread in place of MPI_Init. Prints "the sums are right" on rank 0. */
#define HB
#include "program.h"

#include <string.h>

int main(int argc, char **argv) {
    MPI_Comm own;
    int mine = 1, sum = 0, expected, level, all = 0, thread = 0;
    for (int at = 1; at < argc; at++) {
        all |= strcmp(argv[at], "all") == 0;
        thread |= strcmp(argv[at], "thread") == 0;
    }
    if (thread) MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    else MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, all ? 0 : rank % 2, rank, &own);
    MPI_Comm_size(own, &expected);
    for (int k = 0; k < 3; k++) {
        CALL(Allreduce)(&mine, &sum, 1, MPI_INT, MPI_SUM, own);
        EXPECT(sum == expected);
    }
    MPI_Comm_free(&own);
    if (rank == 0) puts("the sums are right");
    MPI_Finalize();
    return 0;
}
