/* Conjugate gradients on a distributed matrix: the 7-point Laplacian of an n x n x n grid. Its rows are distributed
 * in blocks whose sizes differ by at most one. Each step gathers the search direction and computes two dot products.
 *
 *     mpicc -O2 cg.c $(pkg-config --cflags --libs hopbine-hb) -lm -o cg
 *     mpirun -n 4 ./cg 24
 */
#include <hopbine_mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int n, rank, size, *counts, *displs;

/* The parts are added in the order of ranks: otherwise the rounding would depend on the algorithm of the sum. */
static double dot(const double *a, const double *b, double *parts) {
    double part = 0, total = 0;
    for (int i = 0; i < counts[rank]; i++) part += a[i] * b[i];
    HB_Allgather(&part, 1, MPI_DOUBLE, parts, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++) total += parts[r];
    return total;
}

/* Multiplies this rank's rows of the matrix by a. */
static void multiply(const double *a, double *product) {
    for (int row = displs[rank]; row < displs[rank] + counts[rank]; row++) {
        const int i = row % n, j = row / n % n, k = row / (n * n);
        double sum = 6 * a[row];
        if (i > 0) sum -= a[row - 1];
        if (i < n - 1) sum -= a[row + 1];
        if (j > 0) sum -= a[row - n];
        if (j < n - 1) sum -= a[row + n];
        if (k > 0) sum -= a[row - n * n];
        if (k < n - 1) sum -= a[row + n * n];
        product[row - displs[rank]] = sum;
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    n = argc > 1 ? atoi(argv[1]) : 24;
    const int all = n * n * n;
    counts = malloc(2 * (size_t)size * sizeof *counts), displs = counts + size;
    for (int r = 0; r < size; r++) {
        displs[r] = (int)((long)all * r / size);
        counts[r] = (int)((long)all * (r + 1) / size) - displs[r];
    }
    const int rows = counts[rank];
    double *direction = malloc(sizeof(double) * (size_t)all), *parts = malloc(sizeof(double) * (size_t)size);
    double *x = calloc(4 * (size_t)rows + 1, sizeof *x), *r = x + rows, *p = r + rows, *ap = p + rows;

    /* The right-hand side whose solution is 1 everywhere. */
    for (int i = 0; i < all; i++) direction[i] = 1;
    multiply(direction, r);
    for (int i = 0; i < rows; i++) p[i] = r[i];
    double rr = dot(r, r, parts);
    const double enough = 1e-20 * rr;
    int steps = 0;
    for (; rr > enough && steps < 10 * n; steps++) {
        HB_Allgatherv(p, rows, MPI_DOUBLE, direction, counts, displs, MPI_DOUBLE, MPI_COMM_WORLD);
        multiply(direction, ap);
        const double alpha = rr / dot(p, ap, parts), before = rr;
        for (int i = 0; i < rows; i++) x[i] += alpha * p[i], r[i] -= alpha * ap[i];
        rr = dot(r, r, parts);
        for (int i = 0; i < rows; i++) p[i] = r[i] + rr / before * p[i];
    }
    double error = 0;
    for (int i = 0; i < rows; i++) error = fmax(error, fabs(x[i] - 1));
    HB_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) printf("%s: %d steps, error %.3e\n", error < 1e-8 ? "correct" : "WRONG", steps, error);
    free(x);
    free(parts);
    free(direction);
    free(counts);
    MPI_Finalize();
    return error < 1e-8 ? 0 : 1;
}
