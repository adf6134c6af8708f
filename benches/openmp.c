/* A program that computes with OpenMP between allreduces: what it costs where hopbine's workers share cores with its
 * threads. benches/openmp.sh compiles and runs it.
 *
 *     openmp STEPS BYTES MICROSECONDS
 *
 * Each step computes for about MICROSECONDS on every thread and adds up BYTES over all ranks. Rank 0 prints the
 * median time of a step and of its computing, in microseconds. */
#include <hopbine.h>

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void check(int code) {
    if (code == HOPBINE_SUCCESS) return;
    fprintf(stderr, "%s: %s\n", hopbine_error_name(code), hopbine_last_error());
    exit(1);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* As much work as that, on each thread; the sum keeps the compiler from leaving it out. */
static double compute(long rounds) {
    double sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        double x = 1.0 + omp_get_thread_num();
        for (long i = 0; i < rounds; i++) x = x * 0.999999 + 1e-6;
        sum += x;
    }
    return sum;
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "openmp STEPS BYTES MICROSECONDS\n"), 2;
    const int steps = atoi(argv[1]);
    const long n = atol(argv[2]) / (long)sizeof(double);
    const double wanted = atof(argv[3]);
    hopbine_comm_t world;
    int rank;
    check(hopbine_init(&world));
    check(hopbine_comm_rank(world, &rank));
    double *vector = calloc((size_t)n, sizeof *vector), *step = calloc((size_t)steps, sizeof *step),
           *part = calloc((size_t)steps, sizeof *part), kept = compute(1000);

    /* How many rounds that is, on the quickest of a few trials; the same for all ranks. */
    double best = 1e30;
    for (int i = 0; i < 20; i++) {
        const double start = now();
        kept += compute(100000);
        if (now() - start < best) best = now() - start;
    }
    int64_t rounds = (int64_t)(wanted / best * 100000);
    check(hopbine_bcast(&rounds, 1, HOPBINE_INT64, 0, world));

    for (int i = -steps / 10; i < steps; i++) {
        check(hopbine_barrier(world));
        const double start = now();
        kept += compute(rounds);
        const double computed = now();
        check(hopbine_allreduce(HOPBINE_IN_PLACE, vector, n, HOPBINE_DOUBLE, HOPBINE_SUM, world));
        if (i >= 0) step[i] = now() - start, part[i] = computed - start;
    }
    qsort(step, (size_t)steps, sizeof *step, by_value);
    qsort(part, (size_t)steps, sizeof *part, by_value);
    if (rank == 0) printf("%.1f %.1f\n", step[steps / 2], part[steps / 2]);
    if (kept == 0) puts("");
    free(vector), free(step), free(part);
    check(hopbine_finalize());
}
