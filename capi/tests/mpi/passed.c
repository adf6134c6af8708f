/* HB_ calls, some served by hopbine and some passed to MPI, for a report that counts them: 3 allreduces of one int on
 * a communicator that the program made, 5 on a communicator of one rank, 7 alltoallw without data, a reduce_scatter on
 * an intercommunicator, whose list of counts, one for each rank of this group, ends with a page, and two scatters,
 * which HOPBINE_EXCEPT leaves to MPI. Prints "all are made" on rank 0. */
#define _GNU_SOURCE
#define HB
#include "program.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_RANKS = 16 };

/* A scatter from `root`, the first rank, with garbage for arguments that are not significant. */
static void scatter(int root, MPI_Comm comm) {
    const MPI_Datatype none = (MPI_Datatype)(intptr_t)12345;
    int values[MOST_RANKS], value = 1;
    const int sends = rank == 0, receives = root != MPI_ROOT;
    for (int r = 0; r < size; r++) values[r] = 1 + r;
    CALL(Scatter)(sends ? values : NULL, sends ? 1 : 7, sends ? MPI_INT : none, receives ? &value : NULL, receives ? 1 : 7,
                  receives ? MPI_INT : none, root, comm);
    EXPECT(value == 1 || rank > 0);
}

/* One group is the first rank, the other one all further ranks. */
static void between_groups(void) {
    MPI_Comm group, between;
    const long page = sysconf(_SC_PAGESIZE);
    char *const pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
    const int n = rank == 0 ? 1 : size - 1;
    int *const counts = (int *)(pages + page) - n, mine[MOST_RANKS], sums[MOST_RANKS];
    for (int r = 0; r < size; r++) mine[r] = 1;
    for (int r = 0; r < n; r++) counts[r] = (size - 1) / n;
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, 0, &group);
    MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, rank > 0 ? 0 : 1, 0, &between);
    CALL(Reduce_scatter)(mine, sums, counts, MPI_INT, MPI_SUM, between);
    EXPECT(sums[0] == size - n);
    scatter(rank == 0 ? MPI_ROOT : 0, between);
    MPI_Comm_free(&between);
    MPI_Comm_free(&group);
    munmap(pages, 2 * page);
}

int main(int argc, char **argv) {
    MPI_Comm own;
    int one = 1, sum = 0;
    static const int nothing[MOST_RANKS];
    MPI_Datatype types[MOST_RANKS];
    MPI_Init(&argc, &argv);
    HB_Init();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(size <= MOST_RANKS);
    for (int r = 0; r < size; r++) types[r] = MPI_INT;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    for (int k = 0; k < 3; k++) CALL(Allreduce)(&one, &sum, 1, MPI_INT, MPI_SUM, own);
    EXPECT(sum == size);
    for (int k = 0; k < 5; k++) CALL(Allreduce)(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    EXPECT(sum == 1);
    for (int k = 0; k < 7; k++) CALL(Alltoallw)(&one, nothing, nothing, types, &sum, nothing, nothing, types, own);
    scatter(0, own);
    MPI_Comm_free(&own);
    between_groups();
    if (rank == 0) puts("all are made");
    MPI_Finalize();
    return 0;
}
