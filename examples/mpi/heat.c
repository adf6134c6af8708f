/* Heat in a box, in 3-D: halos by MPI messages, the residual by HB_Allreduce.
 *
 *     mpicc -O2 heat.c $(pkg-config --cflags --libs hopbine-hb) -lm -o heat
 *     mpirun -n 8 ./heat 48 100
 *
 * With HB_ renamed to MPI_ (or under libhopbine_preload.so) it prints the same.
 */
#include <hopbine_mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int n = argc > 1 ? atoi(argv[1]) : 48, steps = argc > 2 ? atoi(argv[2]) : 100;
    int rank, size, dims[3] = {0, 0, 0}, wraps[3] = {0, 0, 0}, at[3], here[3], first[3];
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 3, dims);
    if (n < dims[0]) {
        fprintf(stderr, "heat: %d cells for %d ranks in a row: each needs one\n", n, dims[0]);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 3, dims, wraps, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_coords(grid, rank, 3, at);
    for (int d = 0; d < 3; d++) {
        first[d] = n * at[d] / dims[d];
        here[d] = n * (at[d] + 1) / dims[d] - first[d];
    }

    /* This rank's cells and one layer of halo cells; the first index varies slowest. */
    const int stride[3] = {(here[1] + 2) * (here[2] + 2), here[2] + 2, 1};
    const int all = stride[0] * (here[0] + 2);
    double *now = calloc((size_t)all, sizeof *now), *next = calloc((size_t)all, sizeof *next);
    /* One face of the box is hot. */
    if (at[0] == 0)
        for (int i = 0; i < stride[0]; i++) now[i] = next[i] = 1;

    /* Types of the inner cells of a layer perpendicular to each dimension. */
    MPI_Datatype layer[3];
    for (int d = 0; d < 3; d++) {
        const int sizes[3] = {here[0] + 2, here[1] + 2, here[2] + 2}, starts[3] = {1, 1, 1};
        int parts[3] = {here[0], here[1], here[2]}, begin[3] = {starts[0], starts[1], starts[2]};
        parts[d] = 1;
        begin[d] = 0;
        MPI_Type_create_subarray(3, sizes, parts, begin, MPI_ORDER_C, MPI_DOUBLE, &layer[d]);
        MPI_Type_commit(&layer[d]);
    }

    double change = 0;
    for (int step = 0; step < steps; step++) {
        for (int d = 0; d < 3; d++) {
            int below, above;
            MPI_Cart_shift(grid, d, 1, &below, &above);
            double *const low = now, *const high = now + here[d] * stride[d];
            MPI_Sendrecv(high, 1, layer[d], above, d, low, 1, layer[d], below, d, grid, MPI_STATUS_IGNORE);
            MPI_Sendrecv(low + stride[d], 1, layer[d], below, d, high + stride[d], 1, layer[d], above, d, grid,
                         MPI_STATUS_IGNORE);
        }
        change = 0;
        for (int i = 1; i <= here[0]; i++)
            for (int j = 1; j <= here[1]; j++)
                for (int k = 1; k <= here[2]; k++) {
                    const int c = i * stride[0] + j * stride[1] + k;
                    const double around = now[c - stride[0]] + now[c + stride[0]] + now[c - stride[1]] +
                                          now[c + stride[1]] + now[c - 1] + now[c + 1];
                    next[c] = now[c] + (around - 6 * now[c]) / 8;
                    change = fmax(change, fabs(next[c] - now[c]));
                }
        HB_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_MAX, grid);
        double *const old = now;
        now = next;
        next = old;
    }
    /* The heat as an integer, in units of 1e-9: its sum does not depend on the order. */
    long long heat = 0, total = 0;
    for (int i = 1; i <= here[0]; i++)
        for (int j = 1; j <= here[1]; j++)
            for (int k = 1; k <= here[2]; k++)
                heat += llround(1e9 * now[i * stride[0] + j * stride[1] + k]);
    HB_Reduce(&heat, &total, 1, MPI_LONG_LONG, MPI_SUM, 0, grid);
    if (rank == 0) printf("%d^3 cells, %d steps: heat %.9f, last change %.15e\n", n, steps, 1e-9 * (double)total, change);
    for (int d = 0; d < 3; d++) MPI_Type_free(&layer[d]);
    MPI_Comm_free(&grid);
    free(now);
    free(next);
    MPI_Finalize();
    return 0;
}
