/* FFTW's transforms over MPI, forward and backward with transposed order, compared with the transform of one process.
 */
#include <fftw3-mpi.h>
#include <math.h>
#include <stdio.h>

static double value(ptrdiff_t at) { return sin(0.1 * (double)at) + (double)(at % 7); }

int main(int argc, char **argv) {
    enum { A = 24, B = 20, C = 18 };
    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    int rank;
    ptrdiff_t rows, first, columns, first_column;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const ptrdiff_t shape[3] = {A, B, C};
    const ptrdiff_t room = fftw_mpi_local_size_many_transposed(
        3, shape, 1, FFTW_MPI_DEFAULT_BLOCK, FFTW_MPI_DEFAULT_BLOCK, MPI_COMM_WORLD, &rows, &first, &columns, &first_column);
    fftw_complex *mine = fftw_alloc_complex((size_t)room), *all = fftw_alloc_complex(A * B * C);
    fftw_plan there = fftw_mpi_plan_dft_3d(A, B, C, mine, mine, MPI_COMM_WORLD, FFTW_FORWARD, FFTW_ESTIMATE | FFTW_MPI_TRANSPOSED_OUT);
    fftw_plan back = fftw_mpi_plan_dft_3d(A, B, C, mine, mine, MPI_COMM_WORLD, FFTW_BACKWARD, FFTW_ESTIMATE | FFTW_MPI_TRANSPOSED_IN);
    fftw_plan alone = fftw_plan_dft_3d(A, B, C, all, all, FFTW_FORWARD, FFTW_ESTIMATE);
    for (ptrdiff_t i = 0; i < A * B * C; i++) all[i][0] = value(i), all[i][1] = 0;
    for (ptrdiff_t i = 0; i < rows * B * C; i++) mine[i][0] = value(first * B * C + i), mine[i][1] = 0;
    fftw_execute(there);
    fftw_execute(alone);
    double error = 0, worst;
    for (ptrdiff_t b = 0; b < columns; b++)
        for (ptrdiff_t a = 0; a < A; a++)
            for (ptrdiff_t c = 0; c < C; c++) {
                const double *const here = mine[(b * A + a) * C + c], *const right = all[(a * B + first_column + b) * C + c];
                error = fmax(error, fmax(fabs(here[0] - right[0]), fabs(here[1] - right[1])));
            }
    fftw_execute(back);
    for (ptrdiff_t i = 0; i < rows * B * C; i++)
        error = fmax(error, fabs(mine[i][0] / (A * B * C) - value(first * B * C + i)));
    MPI_Allreduce(&error, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) printf("%s\n", worst < 1e-8 ? "transformed there and back" : "WRONG");
    MPI_Finalize();
    return 0;
}
