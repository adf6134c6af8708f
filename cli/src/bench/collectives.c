/* Times collectives of an MPI library; rank.rs beside this does the same with hopbine.
 *
 *   collectives COLLECTIVES SIZES BUDGET_MS [changing] [each|written]
 *
 * COLLECTIVES and SIZES (bytes) are lists with commas. A size is what a rank holds in all: the
 * vector of allreduce, bcast and reduce; all blocks together of reduce-scatter, allgather and
 * alltoall; of gather and scatter the root's blocks; of alltoallv (uniform, skewed, sparse: see `block`) about what it
 * sends on average, of allgatherv-uniform, gatherv-uniform and scatterv-uniform about what all send. iallreduce, ibcast,
 * ireduce, iallgather, ialltoall, igather, iscatter and ibarrier are started and waited for.
 * Sizes that do not divide into blocks are left out. Roots rotate from call to call,
 * so that no rank can run ahead. Each measurement is five batches of equally many calls; rank 0
 * prints `collective bytes microseconds`, the median batch of the slowest rank. With `changing` each
 * call has another length than the last, the size or up to twice that, or other blocks: 400 in turn. With `each` every
 * call comes behind a barrier, and is timed alone: the median call of those of the slowest ranks. With `written` what is
 * sent is written anew before that barrier.
 */
#ifdef INTERFACE
#include "interface.h"
#else
#include <mpi.h>
typedef int number_t;
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 5 };

static int rank, n_ranks;
static char *out, *in;
static int is_each, is_written;
/* Lengths that calls have in turn. */
static long n_lengths = 1;
/* Of alltoallv: by rank, bytes sent and received, and where they start. */
static number_t *sent, *sent_at, *received, *received_at;

/* The collective's name without the letter of non-blocking calls. */
static const char *blocking(const char *what)
{
    return what + (*what == 'i');
}

/* Whether all ranks have the same list. */
static int is_alike(const char *what)
{
    return !strcmp(what, "allgatherv-uniform") || !strcmp(what, "gatherv-uniform") || !strcmp(what, "scatterv-uniform");
}

static int is_vector(const char *what)
{
    return !strncmp(what, "alltoallv", 9) || is_alike(what);
}

/* Bytes that one rank has for another, or for all: up to twice the mean alike; 1000 of 1000 + p - 1 parts for
 * the next rank; four times the mean for one in four. */
static size_t block(const char *what, size_t bytes, int from, int to, long round)
{
    unsigned long long hash = (from + 1) * 0x9e3779b97f4a7c15ull ^ (to + 1) * 0xbf58476d1ce4e5b9ull;
    hash ^= (round % n_lengths) * 0xd6e8feb86659fd93ull;
    hash = (hash ^ hash >> 31) * 0x94d049bb133111ebull >> 33;
    size_t mean = bytes / n_ranks, part = bytes / (1000 + n_ranks - 1);
    if (!strcmp(what, "alltoallv-uniform") || is_alike(what))
        return hash % (2 * mean + 1);
    if (!strcmp(what, "alltoallv-skewed"))
        return to == (from + 1) % n_ranks ? bytes - part * (n_ranks - 1) : part;
    return hash % 4 ? 0 : 4 * mean;
}

static void make_blocks(const char *what, size_t bytes, long round)
{
    int alike = is_alike(what);
    for (int other = 0, out_at = 0, in_at = 0; other < n_ranks; other++) {
        sent[other] = (int)block(what, bytes, rank, alike ? 0 : other, round);
        received[other] = (int)block(what, bytes, other, alike ? 0 : rank, round);
        sent_at[other] = out_at, received_at[other] = in_at;
        out_at += sent[other], in_at += received[other];
    }
}

/* Bytes that this rank sends. */
static size_t n_sent(const char *what, size_t bytes, int root)
{
    int last = n_ranks - 1;
    what = blocking(what);
    if (rank != root && (!strcmp(what, "bcast") || !strncmp(what, "scatter", 7)))
        return 0;
    if (!strcmp(what, "scatterv-uniform"))
        return received_at[last] + received[last];
    if (is_vector(what))
        return is_alike(what) ? sent[rank] : sent_at[last] + sent[last];
    return strstr(what, "gather") ? bytes / n_ranks : bytes;
}

/* Bytes that must divide a size. */
static size_t unit(const char *what)
{
    what = blocking(what);
    if (!strcmp(what, "reduce-scatter"))
        return 8 * (size_t)n_ranks;
    const char *blocks[] = {"allgather", "alltoall", "gather", "scatter"};
    for (int i = 0; i < (int)(sizeof blocks / sizeof *blocks); i++)
        if (!strcmp(what, blocks[i]))
            return (size_t)n_ranks;
    return !strcmp(what, "bcast") ? 1 : 8;
}

/* The last root of a batch of as many calls as ranks. */
static int last_root(void)
{
    return n_ranks - 1;
}

/* What `hopbine bench` does not time. */
#ifndef INTERFACE
static void start(const char *what, size_t bytes, int root, MPI_Request *request)
{
    int doubles = (int)(bytes / 8), block = (int)(bytes / n_ranks);
    if (!strcmp(what, "iallreduce"))
        MPI_Iallreduce(out, in, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, request);
    else if (!strcmp(what, "ibcast"))
        MPI_Ibcast(in, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD, request);
    else if (!strcmp(what, "ireduce"))
        MPI_Ireduce(out, in, doubles, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD, request);
    else if (!strcmp(what, "igather"))
        MPI_Igather(out, block, MPI_BYTE, in, block, MPI_BYTE, root, MPI_COMM_WORLD, request);
    else if (!strcmp(what, "iscatter"))
        MPI_Iscatter(out, block, MPI_BYTE, in, block, MPI_BYTE, root, MPI_COMM_WORLD, request);
    else if (!strcmp(what, "iallgather"))
        MPI_Iallgather(out, block, MPI_BYTE, in, block, MPI_BYTE, MPI_COMM_WORLD, request);
    else if (!strcmp(what, "ialltoall"))
        MPI_Ialltoall(out, block, MPI_BYTE, in, block, MPI_BYTE, MPI_COMM_WORLD, request);
    else
        MPI_Ibarrier(MPI_COMM_WORLD, request);
}

static int call_other(const char *what, size_t bytes, int root)
{
    int block = (int)(bytes / n_ranks);
    if (*what == 'i') {
        MPI_Request request;
        start(what, bytes, root, &request);
        return MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (!strcmp(what, "gather"))
        return MPI_Gather(out, block, MPI_BYTE, in, block, MPI_BYTE, root, MPI_COMM_WORLD);
    if (!strcmp(what, "scatter"))
        return MPI_Scatter(out, block, MPI_BYTE, in, block, MPI_BYTE, root, MPI_COMM_WORLD);
    if (!strcmp(what, "gatherv-uniform"))
        return MPI_Gatherv(out, received[rank], MPI_BYTE, in, received, received_at, MPI_BYTE, root, MPI_COMM_WORLD);
    if (!strcmp(what, "scatterv-uniform"))
        return MPI_Scatterv(out, received, received_at, MPI_BYTE, in, received[rank], MPI_BYTE, root, MPI_COMM_WORLD);
    if (is_alike(what))
        return MPI_Allgatherv(out, sent[rank], MPI_BYTE, in, received, received_at, MPI_BYTE, MPI_COMM_WORLD);
    return MPI_Barrier(MPI_COMM_WORLD);
}
#else
static int call_other(const char *what, size_t bytes, int root)
{
    (void)what, (void)bytes, (void)root;
    return MPI_Barrier(MPI_COMM_WORLD);
}
#endif

/* Returns the bytes of this round's call; blocks that change are made anew. */
static size_t prepare(const char *what, size_t bytes, long round)
{
    if (n_lengths > 1 && is_vector(what))
        make_blocks(what, bytes, round);
    else if (n_lengths > 1)
        bytes += bytes * (size_t)(round % n_lengths) / n_lengths / unit(what) * unit(what);
    return bytes;
}

static int call(const char *what, size_t bytes, int root)
{
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
    if (!strncmp(what, "alltoallv", 9))
        return MPI_Alltoallv(out, sent, sent_at, MPI_BYTE, in, received, received_at, MPI_BYTE, MPI_COMM_WORLD);
    return call_other(what, bytes, root);
}

/* All inputs are the same byte again and again, so all results are known. */
static void verify(const char *what, size_t bytes)
{
    int wrong = 0;
    what = blocking(what);
    if (!strcmp(what, "reduce") && rank != last_root())
        return;
    if (!strcmp(what, "allreduce") || !strcmp(what, "reduce-scatter") || !strcmp(what, "reduce")) {
        size_t n = bytes / 8 / (!strcmp(what, "reduce-scatter") ? n_ranks : 1);
        double sum = n_ranks * *(double *)out;
        for (size_t i = 0; i < n; i++)
            wrong |= ((double *)in)[i] < sum * (1 - 1e-12) || ((double *)in)[i] > sum * (1 + 1e-12);
    } else if (!strcmp(what, "allgather") || !strcmp(what, "alltoall") || !strcmp(what, "bcast")) {
        wrong = memcmp(in, out, bytes) != 0;
    } else if (!strcmp(what, "gather")) {
        wrong = rank == last_root() && memcmp(in, out, bytes) != 0;
    } else if (!strcmp(what, "scatter")) {
        wrong = memcmp(in, out, bytes / n_ranks) != 0;
    } else if (!strcmp(what, "gatherv-uniform")) {
        wrong = rank == last_root() && memcmp(in, out, received_at[n_ranks - 1] + received[n_ranks - 1]) != 0;
    } else if (!strcmp(what, "scatterv-uniform")) {
        wrong = memcmp(in, out, received[rank]) != 0;
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
        call(what, prepare(what, bytes, round), (int)(round % n_ranks));
    double mine = MPI_Wtime() - start, slowest;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of so many calls, each behind a barrier, of which each takes as long as on the slowest rank. */
static double apart(const char *what, size_t bytes, long count)
{
    double *times = malloc(2 * count * sizeof *times), *slowest = times + count;
    if (!times)
        MPI_Abort(MPI_COMM_WORLD, 3);
    for (long round = 0; round < count; round++) {
        size_t length = prepare(what, bytes, round);
        int root = (int)(round % n_ranks);
        if (is_written)
            memset(strstr(what, "bcast") ? in : out, 0x40, n_sent(what, length, root));
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        call(what, length, root);
        times[round] = MPI_Wtime() - start;
    }
    MPI_Allreduce(times, slowest, (int)count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    qsort(slowest, count, sizeof *slowest, by_value);
    double median = slowest[count / 2];
    free(times);
    return median;
}

static void measure(const char *what, size_t bytes, double budget)
{
    if (bytes % unit(what) != 0)
        return;
    long count = 1;
    if (is_vector(what))
        make_blocks(what, bytes, 0);
    /* What an earlier call has left cannot pass for a result. The first root is rank 0. */
    memset(in, 0, bytes);
    if (strstr(what, "bcast") && rank == 0)
        memcpy(in, out, bytes);
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
    if (is_each) {
        long n = count * BATCHES < 8 ? 8 : count * BATCHES > 1500 ? 1500 : count * BATCHES;
        double median = apart(what, bytes, n);
        if (rank == 0)
            printf("%s %zu %.3f\n", what, bytes, median * 1e6);
        return;
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
    int is_wrong = argc < 4;
    for (int at = 4; at < argc; at++) {
        int is_changing = !strcmp(argv[at], "changing");
        is_written |= !strcmp(argv[at], "written");
        is_each |= is_written || !strcmp(argv[at], "each");
        is_wrong |= !is_changing && !is_written && !is_each;
        if (is_changing)
            n_lengths = 400;
    }
    if (is_wrong) {
        fprintf(stderr, "usage: collectives COLLECTIVES SIZES BUDGET_MS [changing] [each|written]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    size_t most = 8;
    for (const char *at = argv[2]; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t bytes = strtoull(at, NULL, 10);
        most = bytes > most ? bytes : most;
    }
    if (strstr(argv[1], "-uniform") || strstr(argv[1], "alltoallv") || n_lengths > 1)
        most *= 4;
    out = malloc(most), in = malloc(most);
    sent = calloc(4 * n_ranks, sizeof *sent);
    sent_at = sent + n_ranks, received = sent + 2 * n_ranks, received_at = sent + 3 * n_ranks;
    if (!out || !in || !sent)
        MPI_Abort(MPI_COMM_WORLD, 3);
    memset(out, 0x40, most);
    memset(in, 0, most);
    for (char *what = strtok(argv[1], ","); what; what = strtok(NULL, ",")) {
        if (!strcmp(what, "barrier") || !strcmp(what, "ibarrier")) {
            measure(what, 0, atof(argv[3]) * 1e-3);
            continue;
        }
        for (const char *at = argv[2]; *at; at += strcspn(at, ","), at += *at == ',')
            measure(what, strtoull(at, NULL, 10), atof(argv[3]) * 1e-3);
    }
    MPI_Finalize();
    return 0;
}
