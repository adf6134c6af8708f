/* What a call costs more that hopbine passes on to MPI: nanoseconds per call, the least of so many rounds. Plain and under
 * libhopbine_preload.so, with something for this MPI and with nothing, in turn:
 *
 *     mpicc -O2 benches/passed.c -o passed
 *     for i in 1 2 3; do mpirun -n 1 ./passed; mpirun -n 1 env LD_PRELOAD=PREFIX/lib/libhopbine_preload.so ./passed; done
 *
 * A rank alone: hopbine serves none of these calls. With a number, it makes so many of the first kind and no others, for
 * tools that count instructions. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 1000, CALLS = 1000 };

static void test(void) {
    MPI_Request request = MPI_REQUEST_NULL;
    int flag;
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

static void barrier(void) { MPI_Barrier(MPI_COMM_SELF); }

static void allreduce(void) {
    int in = 1, out;
    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*call)(void);
    } calls[] = {{"test", test}, {"barrier", barrier}, {"allreduce", allreduce}};
    MPI_Init(&argc, &argv);
    for (int n = argc > 1 ? atoi(argv[1]) : 0; n > 0; n--) test();
    for (size_t c = 0; argc == 1 && c < sizeof calls / sizeof *calls; c++) {
        double least = 1;
        for (int round = 0; round < ROUNDS; round++) {
            const double start = MPI_Wtime();
            for (int n = 0; n < CALLS; n++) calls[c].call();
            const double time = (MPI_Wtime() - start) / CALLS;
            if (time < least) least = time;
        }
        printf("%s %.1f ns%s", calls[c].name, 1e9 * least, c + 1 < sizeof calls / sizeof *calls ? ", " : "\n");
    }
    MPI_Finalize();
    return 0;
}
