/* Is a collective slower than what it could be built from? The guidelines of Traeff, Gropp and Thakur, "Self-consistent
 * MPI Performance Guidelines" (IEEE TPDS 21, 2010), with the compositions of Hunold and Carpen-Amarie, "Tuning MPI
 * Collectives by Verifying Performance Guidelines" (HPC Asia 2018). benches/consistency.sh runs it.
 *
 *   consistency SIZES ROUNDS BUDGET_MS [COLLECTIVE]...
 *
 * SIZES (bytes) is a list with commas; without names all collectives are verified. A size is what a rank holds in all:
 * a vector, or all blocks together. Irregular forms have equal counts: then a regular call is not to be slower than
 * its irregular form, and an irregular form not slower than what it could be built from. An exscan, which folds one
 * vector less, is not to be slower than a scan.
 *
 * In each round both sides of a guideline are called in turn, each behind a barrier, for the budget; a time is the
 * median of the slowest rank's. Roots rotate. Rank 0 prints `collective composition bytes us us ratio least most`: the
 * median times over the rounds, and of the rounds' ratios of the collective to the composition the median, the least
 * and the largest.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CALLS = 1000, MOST_ROUNDS = 99 };

static int rank, n_ranks;
/* What is sent, received, and received between two calls of a composition: twice the largest size each. */
static double *out, *in, *between;
/* Of irregular forms: blocks in bytes, in doubles, and one block that is the whole vector. */
static int *counts, *starts, *doubles, *whole, *zeros;

static const MPI_Comm comm = MPI_COMM_WORLD;
#define BLOCK (int)(bytes / n_ranks), MPI_BYTE
#define VECTOR (int)(bytes / 8), MPI_DOUBLE

static void allreduce(size_t bytes, int root) { (void)root; MPI_Allreduce(out, in, VECTOR, MPI_SUM, comm); }
static void reduce(size_t bytes, int root) { MPI_Reduce(out, in, VECTOR, MPI_SUM, root, comm); }
static void bcast(size_t bytes, int root) { MPI_Bcast(in, VECTOR, root, comm); }
static void scan(size_t bytes, int root) { (void)root; MPI_Scan(out, in, VECTOR, MPI_SUM, comm); }
static void exscan(size_t bytes, int root) { (void)root; MPI_Exscan(out, in, VECTOR, MPI_SUM, comm); }
static void allgather(size_t bytes, int root) { (void)root; MPI_Allgather(out, BLOCK, in, BLOCK, comm); }
static void alltoall(size_t bytes, int root) { (void)root; MPI_Alltoall(out, BLOCK, in, BLOCK, comm); }
static void gather(size_t bytes, int root) { MPI_Gather(out, BLOCK, in, BLOCK, root, comm); }
static void scatter(size_t bytes, int root) { MPI_Scatter(out, BLOCK, in, BLOCK, root, comm); }
static void barrier(size_t bytes, int root) { (void)bytes, (void)root; MPI_Barrier(comm); }
static void reduce_scatter(size_t bytes, int root)
{
    (void)root;
    MPI_Reduce_scatter_block(out, in, (int)(bytes / 8 / n_ranks), MPI_DOUBLE, MPI_SUM, comm);
}

static void reduce_bcast(size_t bytes, int root)
{
    reduce(bytes, root);
    bcast(bytes, root);
}
static void reduce_scatter_allgather(size_t bytes, int root)
{
    (void)root;
    MPI_Reduce_scatter_block(out, between, (int)(bytes / 8 / n_ranks), MPI_DOUBLE, MPI_SUM, comm);
    MPI_Allgather(between, BLOCK, in, BLOCK, comm);
}
static void reduce_scatter_gather(size_t bytes, int root)
{
    MPI_Reduce_scatter_block(out, between, (int)(bytes / 8 / n_ranks), MPI_DOUBLE, MPI_SUM, comm);
    MPI_Gather(between, BLOCK, in, BLOCK, root, comm);
}
static void reduce_then_scatter(size_t bytes, int root)
{
    MPI_Reduce(out, between, VECTOR, MPI_SUM, root, comm);
    MPI_Scatter(between, BLOCK, in, BLOCK, root, comm);
}
static void scatter_allgather(size_t bytes, int root)
{
    MPI_Scatter(in, BLOCK, between, BLOCK, root, comm);
    MPI_Allgather(between, BLOCK, in, BLOCK, comm);
}
static void gather_bcast(size_t bytes, int root)
{
    gather(bytes, root);
    bcast(bytes, root);
}
static void exscan_and_own(size_t bytes, int root)
{
    exscan(bytes, root);
    MPI_Reduce_local(out, in, VECTOR, MPI_SUM);
}
/* A rank's exclusive result is the inclusive one of the rank before it. */
static void scan_and_shift(size_t bytes, int root)
{
    (void)root;
    MPI_Scan(out, between, VECTOR, MPI_SUM, comm);
    MPI_Sendrecv(between, VECTOR, rank + 1 < n_ranks ? rank + 1 : MPI_PROC_NULL, 0, in, VECTOR,
                 rank > 0 ? rank - 1 : MPI_PROC_NULL, 0, comm, MPI_STATUS_IGNORE);
}

static void set_blocks(size_t bytes)
{
    for (int at = 0; at < n_ranks; at++) {
        counts[at] = (int)(bytes / n_ranks), starts[at] = counts[at] * at;
        doubles[at] = (int)(bytes / 8 / n_ranks);
    }
}
static void allgatherv(size_t bytes, int root)
{
    (void)root;
    MPI_Allgatherv(out, BLOCK, in, counts, starts, MPI_BYTE, comm);
}
static void alltoallv(size_t bytes, int root)
{
    (void)bytes, (void)root;
    MPI_Alltoallv(out, counts, starts, MPI_BYTE, in, counts, starts, MPI_BYTE, comm);
}
static void gatherv(size_t bytes, int root)
{
    MPI_Gatherv(out, BLOCK, in, counts, starts, MPI_BYTE, root, comm);
}
static void scatterv(size_t bytes, int root)
{
    MPI_Scatterv(out, counts, starts, MPI_BYTE, in, BLOCK, root, comm);
}
static void reduce_scatter_v(size_t bytes, int root)
{
    (void)bytes, (void)root;
    MPI_Reduce_scatter(out, in, doubles, MPI_DOUBLE, MPI_SUM, comm);
}

static void whole_allgatherv(size_t bytes, int root)
{
    whole[root] = (int)bytes;
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, whole, zeros, MPI_BYTE, comm);
    whole[root] = 0;
}
static void gatherv_bcast(size_t bytes, int root)
{
    gatherv(bytes, root);
    bcast(bytes, root);
}
static void same_alltoallv(size_t bytes, int root)
{
    (void)bytes, (void)root;
    MPI_Alltoallv(out, counts, zeros, MPI_BYTE, in, counts, starts, MPI_BYTE, comm);
}
static void scatterv_by_each(size_t bytes, int root)
{
    (void)root;
    for (int each = 0; each < n_ranks; each++)
        MPI_Scatterv(out, counts, starts, MPI_BYTE, (char *)in + starts[each], BLOCK, each, comm);
}
static void reduce_then_scatterv(size_t bytes, int root)
{
    MPI_Reduce(out, between, VECTOR, MPI_SUM, root, comm);
    MPI_Scatterv(between, counts, starts, MPI_BYTE, in, BLOCK, root, comm);
}

typedef void call_t(size_t bytes, int root);
enum form { ONCE, HALVES, TWICE };

/* A collective, and what it should not be slower than: a composition, two calls of half the size, or one of twice. */
typedef struct {
    const char *name, *built;
    call_t *call, *composition;
    enum form form;
} guideline_t;

#define SIZES_OF(name, call) {name, "two-of-half", call, call, HALVES}, {name, "twice-the-size", call, call, TWICE}
static const guideline_t GUIDELINES[] = {
    {"allgather", "allreduce", allgather, allreduce, ONCE},
    {"allgather", "alltoall", allgather, alltoall, ONCE},
    {"allgather", "allgatherv", allgather, allgatherv, ONCE},
    {"allgather", "gather+bcast", allgather, gather_bcast, ONCE},
    {"allreduce", "reduce+bcast", allreduce, reduce_bcast, ONCE},
    {"allreduce", "reduce-scatter+allgather", allreduce, reduce_scatter_allgather, ONCE},
    {"allgatherv", "allreduce", allgatherv, allreduce, ONCE},
    {"allgatherv", "alltoallv", allgatherv, same_alltoallv, ONCE},
    {"allgatherv", "gatherv+bcast", allgatherv, gatherv_bcast, ONCE},
    {"alltoall", "alltoallv", alltoall, alltoallv, ONCE},
    {"alltoallv", "scatterv-by-each", alltoallv, scatterv_by_each, ONCE},
    {"bcast", "allgatherv", bcast, whole_allgatherv, ONCE},
    {"bcast", "scatter+allgather", bcast, scatter_allgather, ONCE},
    {"gather", "allgather", gather, allgather, ONCE},
    {"gather", "gatherv", gather, gatherv, ONCE},
    {"gather", "reduce", gather, reduce, ONCE},
    {"gatherv", "allgatherv", gatherv, allgatherv, ONCE},
    {"gatherv", "reduce", gatherv, reduce, ONCE},
    {"reduce", "allreduce", reduce, allreduce, ONCE},
    {"reduce", "reduce-scatter+gather", reduce, reduce_scatter_gather, ONCE},
    {"reduce-scatter", "allreduce", reduce_scatter, allreduce, ONCE},
    {"reduce-scatter", "reduce+scatter", reduce_scatter, reduce_then_scatter, ONCE},
    {"reduce-scatter", "reduce-scatter-v", reduce_scatter, reduce_scatter_v, ONCE},
    {"reduce-scatter-v", "allreduce", reduce_scatter_v, allreduce, ONCE},
    {"reduce-scatter-v", "reduce+scatterv", reduce_scatter_v, reduce_then_scatterv, ONCE},
    {"exscan", "scan", exscan, scan, ONCE},
    {"exscan", "scan+sendrecv", exscan, scan_and_shift, ONCE},
    {"scan", "exscan+reduce-local", scan, exscan_and_own, ONCE},
    {"scatter", "bcast", scatter, bcast, ONCE},
    {"scatter", "scatterv", scatter, scatterv, ONCE},
    {"scatterv", "bcast", scatterv, bcast, ONCE},
    {"barrier", "allreduce", barrier, allreduce, ONCE},
    SIZES_OF("allgather", allgather),
    SIZES_OF("allreduce", allreduce),
    SIZES_OF("alltoall", alltoall),
    SIZES_OF("bcast", bcast),
    SIZES_OF("exscan", exscan),
    SIZES_OF("gather", gather),
    SIZES_OF("reduce", reduce),
    SIZES_OF("reduce-scatter", reduce_scatter),
    SIZES_OF("scan", scan),
    SIZES_OF("scatter", scatter),
    SIZES_OF("allgatherv", allgatherv),
    SIZES_OF("alltoallv", alltoallv),
    SIZES_OF("gatherv", gatherv),
    SIZES_OF("reduce-scatter-v", reduce_scatter_v),
    SIZES_OF("scatterv", scatterv),
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of `n` values, which are sorted. */
static double median(double *values, int n)
{
    qsort(values, n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Seconds of one side's call behind a barrier on this rank. */
static double timed(const guideline_t *of, int is_built, size_t bytes, int root)
{
    enum form form = is_built ? of->form : ONCE;
    call_t *call = is_built ? of->composition : of->call;
    size_t size = form == HALVES ? bytes / 2 : form == TWICE ? 2 * bytes : bytes;
    set_blocks(size);
    MPI_Barrier(comm);
    double began = MPI_Wtime();
    call(size, root);
    if (form == HALVES) {
        out += size / 8, in += size / 8;
        call(size, root);
        out -= size / 8, in -= size / 8;
    }
    return MPI_Wtime() - began;
}

/* The median seconds of both sides, called in turn `n` times. */
static void round_of(const guideline_t *of, size_t bytes, int n, double medians[2])
{
    static double mine[2][MOST_CALLS], slowest[2][MOST_CALLS];
    for (int call = 0; call < n; call++)
        for (int side = 0; side < 2; side++)
            mine[side][call] = timed(of, side, bytes, call % n_ranks);
    for (int side = 0; side < 2; side++) {
        MPI_Allreduce(mine[side], slowest[side], n, MPI_DOUBLE, MPI_MAX, comm);
        medians[side] = median(slowest[side], n);
    }
}

static void verify(const guideline_t *of, size_t bytes, int rounds, double budget)
{
    double medians[2], times[2][MOST_ROUNDS], ratios[MOST_ROUNDS];
    round_of(of, bytes, 2 * n_ranks, medians);
    round_of(of, bytes, 2 * n_ranks, medians);
    int n = (int)(budget / (medians[0] + medians[1])) / n_ranks * n_ranks;
    n = n < 2 * n_ranks ? 2 * n_ranks : n > MOST_CALLS ? MOST_CALLS : n;
    /* All ranks have the same medians, and so the same number. */
    for (int round = 0; round < rounds; round++) {
        round_of(of, bytes, n, medians);
        times[0][round] = medians[0], times[1][round] = medians[1];
        ratios[round] = medians[0] / medians[1];
    }
    if (rank != 0)
        return;
    double ratio = median(ratios, rounds);
    printf("%s %s %zu %.3f %.3f %.3f %.3f %.3f\n", of->name, of->built, bytes, median(times[0], rounds) * 1e6,
           median(times[1], rounds) * 1e6, ratio, ratios[0], ratios[rounds - 1]);
    fflush(stdout);
}

static int is_asked_for(const guideline_t *of, int n_names, char **names)
{
    for (int at = 0; at < n_names; at++)
        if (!strcmp(names[at], of->name))
            return 1;
    return n_names == 0;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &n_ranks);
    int rounds = argc > 2 ? atoi(argv[2]) : 0;
    double budget = argc > 3 ? atof(argv[3]) * 1e-3 : 0;
    if (rounds < 1 || rounds > MOST_ROUNDS || budget <= 0 || 2 * n_ranks > MOST_CALLS) {
        fprintf(stderr, "usage: consistency SIZES ROUNDS BUDGET_MS [COLLECTIVE]..., with 1 to %d rounds\n",
                MOST_ROUNDS);
        MPI_Abort(comm, 2);
    }
    size_t most = 8;
    for (const char *at = argv[1]; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t bytes = strtoull(at, NULL, 10);
        most = bytes > most ? bytes : most;
    }
    out = calloc(2, most), in = calloc(2, most), between = calloc(2, most);
    counts = calloc(5 * (size_t)n_ranks, sizeof *counts);
    if (!out || !in || !between || !counts)
        MPI_Abort(comm, 3);
    starts = counts + n_ranks, doubles = starts + n_ranks, whole = doubles + n_ranks, zeros = whole + n_ranks;
    for (size_t at = 0; at < sizeof GUIDELINES / sizeof *GUIDELINES; at++) {
        const guideline_t *of = &GUIDELINES[at];
        if (!is_asked_for(of, argc - 4, argv + 4))
            continue;
        if (of->call == barrier) {
            verify(of, 8, rounds, budget);
            continue;
        }
        for (const char *size = argv[1]; *size; size += strcspn(size, ","), size += *size == ',') {
            size_t bytes = strtoull(size, NULL, 10);
            /* Halves have whole elements for each rank. */
            if (bytes % (16 * (size_t)n_ranks) == 0)
                verify(of, bytes, rounds, budget);
        }
    }
    MPI_Finalize();
    return 0;
}
