/* A Fourier transform of n x n numbers: rows, a transpose by HB_Alltoall, rows again.
 *
 *     mpicc -O2 fft.c $(pkg-config --cflags --libs hopbine-hb) -lm -o fft
 *     mpirun -n 4 ./fft 256        n: a power of two and a multiple of the number of ranks
 *
 * The program transforms forward and back, and prints the error of the result. */
#include <complex.h>
#include <hopbine_mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Transforms one row of n numbers in place; direction is -1 for forward, 1 for backward. */
static void transform(double complex *x, int n, int direction) {
    for (int i = 1, j = 0; i < n; i++) {
        int bit = n >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j |= bit;
        if (i < j) {
            const double complex swapped = x[i];
            x[i] = x[j];
            x[j] = swapped;
        }
    }
    for (int half = 1; half < n; half *= 2)
        for (int k = 0; k < half; k++) {
            const double complex turn = cexp(direction * I * acos(-1) * k / half);
            for (int i = k; i < n; i += 2 * half) {
                const double complex even = x[i], odd = turn * x[i + half];
                x[i] = even + odd;
                x[i + half] = even - odd;
            }
        }
}

/* Transposes the matrix: blocks of rows x rows go to their ranks, which transpose each one on arrival. */
static void transpose(double complex *x, double complex *work, int n, int rows, int size) {
    for (int r = 0; r < size; r++)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < rows; j++) work[(r * rows + i) * rows + j] = x[i * n + r * rows + j];
    HB_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, work, rows * rows, MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < rows; j++) x[i * n + r * rows + j] = work[(r * rows + j) * rows + i];
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int n = argc > 1 ? atoi(argv[1]) : 256;
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (n < 1 || n % size || (n & (n - 1))) {
        if (rank == 0) fprintf(stderr, "%d is no power of two that %d ranks divide\n", n, size);
        MPI_Finalize();
        return 1;
    }
    const int rows = n / size;
    double complex *x = malloc((size_t)rows * (size_t)n * sizeof *x), *work = malloc((size_t)rows * (size_t)n * sizeof *x);
    for (int i = 0; i < rows * n; i++) x[i] = sin(rank * rows * n + i) + I * cos(3 * i);

    for (int way = -1; way <= 1; way += 2)
        for (int dimension = 0; dimension < 2; dimension++) {
            for (int i = 0; i < rows; i++) transform(x + i * n, n, way);
            transpose(x, work, n, rows, size);
        }
    double error = 0, energy = 0;
    for (int i = 0; i < rows * n; i++) {
        const double complex began = sin(rank * rows * n + i) + I * cos(3 * i);
        error = fmax(error, cabs(x[i] / ((double)n * n) - began));
        energy += creal(x[i]) * creal(x[i]) + cimag(x[i]) * cimag(x[i]);
    }
    HB_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    HB_Allreduce(MPI_IN_PLACE, &energy, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%d x %d: %s, error %.3e, energy %.8e\n", n, n, error < 1e-10 ? "correct" : "WRONG", error, energy);
    free(x);
    free(work);
    MPI_Finalize();
    return error < 1e-10 ? 0 : 1;
}
