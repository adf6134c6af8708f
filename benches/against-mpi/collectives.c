/* Times collectives of an MPI library; examples/collectives.rs does the same with hopbine.
 *
 *   collectives COLLECTIVES SIZES BUDGET_MS
 *
 * COLLECTIVES and SIZES (bytes) are lists with commas. A size is what a rank holds in all: the
 * vector of allreduce, bcast and reduce; all blocks together of reduce-scatter, allgather and
 * alltoall. Sizes that do not divide into blocks are left out. Roots rotate from call to call,
 * so that no rank can run ahead. Each measurement is five batches of equally many calls; rank 0
 * prints `collective bytes microseconds`, the median batch of the slowest rank.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 5 };

static int rank, n_ranks;
static char *out, *in;

static int call(const char *what, size_t bytes, long round)
{
    int root = (int)(round % n_ranks);
    int doubles = (int)(bytes / 8), block = (int)(bytes / n_ranks);
    if (!strcmp(what, "allreduce"))
        return MPI_Allreduce(out, in, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (!strcmp(what, "reduce-scatter"))
        return MPI_Reduce_scatter_block(out, in, doubles / n_ranks, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (!strcmp(what, "allgather"))
        return MPI_Allgather(out, block, MPI_BYTE, in, block, MPI_BYTE, MPI_COMM_WORLD);
    if (!strcmp(what, "bcast"))
        return MPI_Bcast(in, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    if (!strcmp(what, "reduce"))
        return MPI_Reduce(out, in, doubles, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
    if (!strcmp(what, "alltoall"))
        return MPI_Alltoall(out, block, MPI_BYTE, in, block, MPI_BYTE, MPI_COMM_WORLD);
    return MPI_Barrier(MPI_COMM_WORLD);
}

/* Bytes that must divide a size. */
static size_t unit(const char *what)
{
    if (!strcmp(what, "reduce-scatter"))
        return 8 * (size_t)n_ranks;
    if (!strcmp(what, "allgather") || !strcmp(what, "alltoall"))
        return (size_t)n_ranks;
    return !strcmp(what, "bcast") ? 1 : 8;
}

/* All inputs are the same byte again and again, so all results are known. */
static void verify(const char *what, size_t bytes)
{
    int wrong = 0;
    if (!strcmp(what, "allreduce") || !strcmp(what, "reduce-scatter")) {
        size_t n = bytes / 8 / (!strcmp(what, "allreduce") ? 1 : n_ranks);
        double sum = n_ranks * *(double *)out;
        for (size_t i = 0; i < n; i++)
            wrong |= ((double *)in)[i] < sum * (1 - 1e-12) || ((double *)in)[i] > sum * (1 + 1e-12);
    } else if (!strcmp(what, "allgather") || !strcmp(what, "alltoall")) {
        wrong = memcmp(in, out, bytes) != 0;
    }
    if (wrong) {
        fprintf(stderr, "rank %d: %s of %zu bytes is wrong\n", rank, what, bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Seconds of `count` calls on the slowest rank. */
static double batch(const char *what, size_t bytes, long count)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (long round = 0; round < count; round++)
        call(what, bytes, round);
    double mine = MPI_Wtime() - start, slowest;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *what, size_t bytes, double budget)
{
    if (bytes % unit(what) != 0)
        return;
    long count = 1;
    batch(what, bytes, n_ranks);
    verify(what, bytes);
    double once = batch(what, bytes, n_ranks) / n_ranks;
    while (once * count < budget / BATCHES && count < 1000000) {
        long next = (long)(budget / BATCHES / once) + 1;
        count = next < 8 * count ? next : 8 * count;
        once = batch(what, bytes, count) / count;
        if (next <= count)
            break;
    }
    double times[BATCHES];
    for (int i = 0; i < BATCHES; i++)
        times[i] = batch(what, bytes, count) / count;
    qsort(times, BATCHES, sizeof times[0], by_value);
    if (rank == 0)
        printf("%s %zu %.3f\n", what, bytes, times[BATCHES / 2] * 1e6);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    if (argc != 4) {
        fprintf(stderr, "usage: collectives COLLECTIVES SIZES BUDGET_MS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    size_t most = 8;
    for (const char *at = argv[2]; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t bytes = strtoull(at, NULL, 10);
        most = bytes > most ? bytes : most;
    }
    out = malloc(most), in = malloc(most);
    if (!out || !in)
        MPI_Abort(MPI_COMM_WORLD, 3);
    memset(out, 0x40, most);
    memset(in, 0, most);
    for (char *what = strtok(argv[1], ","); what; what = strtok(NULL, ",")) {
        if (!strcmp(what, "barrier")) {
            measure(what, 0, atof(argv[3]) * 1e-3);
            continue;
        }
        for (const char *at = argv[2]; *at; at += strcspn(at, ","), at += *at == ',')
            measure(what, strtoull(at, NULL, 10), atof(argv[3]) * 1e-3);
    }
    MPI_Finalize();
    return 0;
}
