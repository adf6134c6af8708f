/* Conjugate gradients on a distributed matrix, with hopbine alone: the 7-point Laplacian of an n x n x n grid. Its
 * rows are distributed in blocks. Each step gathers the search direction from all ranks and computes two dot
 * products.
 *
 *     cc -std=c99 -O2 cg.c $(pkg-config --cflags --libs hopbine) -lm -o cg
 *     hopbine launch -n 4 --backend shm ./cg 24
 */
#include <hopbine.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static hopbine_comm_t world;

static void check(int code) {
    if (code == HOPBINE_SUCCESS) return;
    fprintf(stderr, "%s: %s\n", hopbine_error_name(code), hopbine_last_error());
    exit(1);
}

static double dot(const double *x, const double *y, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    check(hopbine_allreduce(HOPBINE_IN_PLACE, &sum, 1, HOPBINE_DOUBLE, HOPBINE_SUM, world));
    return sum;
}

/* Multiplies rows `first` to `first` + `rows` - 1 of the matrix by x; rows beyond the grid pad the last block. */
static void multiply(int n, int64_t first, int64_t rows, const double *x, double *y) {
    const int64_t plane = (int64_t)n * n, all = plane * n;
    for (int64_t row = first; row < first + rows; row++) {
        const int64_t i = row % n, j = row / n % n, k = row / plane;
        double sum = x[row];
        if (row < all) {
            sum *= 6;
            if (i > 0) sum -= x[row - 1];
            if (i < n - 1) sum -= x[row + 1];
            if (j > 0) sum -= x[row - n];
            if (j < n - 1) sum -= x[row + n];
            if (k > 0) sum -= x[row - plane];
            if (k < n - 1) sum -= x[row + plane];
        }
        y[row - first] = sum;
    }
}

int main(int argc, char **argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 24;
    int rank, size;
    check(hopbine_init(&world));
    check(hopbine_comm_rank(world, &rank));
    check(hopbine_comm_size(world, &size));
    const int64_t all = (int64_t)n * n * n, rows = (all + size - 1) / size, first = rank * rows;
    double *direction = calloc((size_t)(rows * size), sizeof *direction);
    double *x = calloc((size_t)rows, sizeof *x), *r = calloc((size_t)rows, sizeof *r);
    double *p = calloc((size_t)rows, sizeof *p), *ap = calloc((size_t)rows, sizeof *ap);

    /* The right-hand side whose solution is 1 everywhere. */
    for (int64_t row = 0; row < all; row++) direction[row] = 1;
    multiply(n, first, rows, direction, r);
    for (int64_t i = 0; i < rows; i++) p[i] = r[i];
    double rr = dot(r, r, rows);
    const double enough = 1e-20 * rr;
    int steps = 0;
    for (; rr > enough && steps < 10 * n; steps++) {
        check(hopbine_allgather(p, direction, rows, HOPBINE_DOUBLE, world));
        multiply(n, first, rows, direction, ap);
        const double alpha = rr / dot(p, ap, rows);
        for (int64_t i = 0; i < rows; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * ap[i];
        }
        const double before = rr;
        rr = dot(r, r, rows);
        for (int64_t i = 0; i < rows; i++) p[i] = r[i] + rr / before * p[i];
    }

    double error = 0;
    for (int64_t i = 0; i < rows && first + i < all; i++) error = fmax(error, fabs(x[i] - 1));
    check(hopbine_allreduce(HOPBINE_IN_PLACE, &error, 1, HOPBINE_DOUBLE, HOPBINE_MAX, world));
    if (rank == 0)
        printf("%s: %d steps, error %.1e\n", error < 1e-8 ? "correct" : "WRONG", steps, error);
    check(hopbine_finalize());
    free(direction);
    free(x);
    free(r);
    free(p);
    free(ap);
    return error < 1e-8 ? 0 : 1;
}
