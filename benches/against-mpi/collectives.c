/* Times collectives of an MPI library; examples/collectives.rs does the same with hopbine.
 *
 *   collectives COLLECTIVES SIZES BUDGET_MS [changing]
 *
 * COLLECTIVES and SIZES (bytes) are lists with commas. A size is what a rank holds in all: the
 * vector of allreduce, bcast and reduce; all blocks together of reduce-scatter, allgather and
 * alltoall; of alltoallv (uniform, skewed, sparse: see `block`) about what it sends on average, of
 * allgatherv-uniform about what all send.
 * Sizes that do not divide into blocks are left out. Roots rotate from call to call,
 * so that no rank can run ahead. Each measurement is five batches of equally many calls; rank 0
 * prints `collective bytes microseconds`, the median batch of the slowest rank. With `changing` each
 * call has another length than the last, the size or up to twice that, or other blocks: 400 in turn.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 5 };

static int rank, n_ranks;
static char *out, *in;
/* Lengths that calls have in turn. */
static long n_lengths = 1;
/* Of alltoallv: by rank, bytes sent and received, and where they start. */
static int *sent, *sent_at, *received, *received_at;

static int is_allgatherv(const char *what)
{
    return !strcmp(what, "allgatherv-uniform");
}

static int is_vector(const char *what)
{
    return !strncmp(what, "alltoallv", 9) || is_allgatherv(what);
}

/* Bytes that one rank has for another, or for all: up to twice the mean alike; 1000 of 1000 + p - 1 parts for
 * the next rank; four times the mean for one in four. */
static size_t block(const char *what, size_t bytes, int from, int to, long round)
{
    unsigned long long hash = (from + 1) * 0x9e3779b97f4a7c15ull ^ (to + 1) * 0xbf58476d1ce4e5b9ull;
    hash ^= (round % n_lengths) * 0xd6e8feb86659fd93ull;
    hash = (hash ^ hash >> 31) * 0x94d049bb133111ebull >> 33;
    size_t mean = bytes / n_ranks, part = bytes / (1000 + n_ranks - 1);
    if (!strcmp(what, "alltoallv-uniform") || is_allgatherv(what))
        return hash % (2 * mean + 1);
    if (!strcmp(what, "alltoallv-skewed"))
        return to == (from + 1) % n_ranks ? bytes - part * (n_ranks - 1) : part;
    return hash % 4 ? 0 : 4 * mean;
}

static void make_blocks(const char *what, size_t bytes, long round)
{
    int is_alike = is_allgatherv(what);
    for (int other = 0, out_at = 0, in_at = 0; other < n_ranks; other++) {
        sent[other] = (int)block(what, bytes, rank, is_alike ? 0 : other, round);
        received[other] = (int)block(what, bytes, other, is_alike ? 0 : rank, round);
        sent_at[other] = out_at, received_at[other] = in_at;
        out_at += sent[other], in_at += received[other];
    }
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

static int call(const char *what, size_t bytes, long round)
{
    int root = (int)(round % n_ranks);
    if (n_lengths > 1 && is_vector(what))
        make_blocks(what, bytes, round);
    else if (n_lengths > 1)
        bytes += bytes * (size_t)(round % n_lengths) / n_lengths / unit(what) * unit(what);
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
    if (is_allgatherv(what))
        return MPI_Allgatherv(out, sent[rank], MPI_BYTE, in, received, received_at, MPI_BYTE, MPI_COMM_WORLD);
    if (is_vector(what))
        return MPI_Alltoallv(out, sent, sent_at, MPI_BYTE, in, received, received_at, MPI_BYTE, MPI_COMM_WORLD);
    return MPI_Barrier(MPI_COMM_WORLD);
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
    } else if (is_vector(what)) {
        wrong = memcmp(in, out, received_at[n_ranks - 1] + received[n_ranks - 1]) != 0;
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
    if (is_vector(what)) {
        make_blocks(what, bytes, 0);
        memset(in, 0, bytes);
    }
    batch(what, bytes, n_ranks);
    if (n_lengths == 1)
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
    if (argc == 5 && !strcmp(argv[4], "changing"))
        n_lengths = 400;
    else if (argc != 4) {
        fprintf(stderr, "usage: collectives COLLECTIVES SIZES BUDGET_MS [changing]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    size_t most = 8;
    for (const char *at = argv[2]; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t bytes = strtoull(at, NULL, 10);
        most = bytes > most ? bytes : most;
    }
    if (strstr(argv[1], "alltoallv") || strstr(argv[1], "allgatherv") || n_lengths > 1)
        most *= 4;
    out = malloc(most), in = malloc(most);
    sent = calloc(4 * n_ranks, sizeof *sent);
    sent_at = sent + n_ranks, received = sent + 2 * n_ranks, received_at = sent + 3 * n_ranks;
    if (!out || !in || !sent)
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
