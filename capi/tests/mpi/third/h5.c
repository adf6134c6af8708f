/* Parallel HDF5: all ranks write a matrix, in slabs of different heights and in chunks, and read it back transposed.
 * Prints "read what was written" on rank 0. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 60, COLUMNS = 48 };
static int rank, size;

static void whole(const char *name, int is_written, int is_chunked, int *slab, hsize_t first, hsize_t count, int by_columns) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), how = H5Pcreate(H5P_DATASET_XFER), made = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    H5Pset_dxpl_mpio(how, H5FD_MPIO_COLLECTIVE);
    hsize_t all[] = {ROWS, COLUMNS}, chunk[] = {7, 11};
    if (is_chunked) H5Pset_chunk(made, 2, chunk);
    hsize_t start[] = {by_columns ? 0 : first, by_columns ? first : 0}, n[] = {by_columns ? ROWS : count, by_columns ? count : COLUMNS};
    hid_t file = is_written ? H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access) : H5Fopen(name, H5F_ACC_RDONLY, access);
    hid_t space = H5Screate_simple(2, all, NULL), memory = H5Screate_simple(2, n, NULL);
    hid_t set = is_written ? H5Dcreate2(file, "matrix", H5T_NATIVE_INT, space, H5P_DEFAULT, made, H5P_DEFAULT)
                           : H5Dopen2(file, "matrix", H5P_DEFAULT);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, n, NULL);
    herr_t code = is_written ? H5Dwrite(set, H5T_NATIVE_INT, memory, space, how, slab)
                             : H5Dread(set, H5T_NATIVE_INT, memory, space, how, slab);
    if (file < 0 || set < 0 || code < 0) MPI_Abort(MPI_COMM_WORLD, 1);
    H5Dclose(set), H5Sclose(space), H5Sclose(memory), H5Fclose(file);
    H5Pclose(access), H5Pclose(how), H5Pclose(made);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static int slab[ROWS * COLUMNS];
    for (int is_chunked = 0; is_chunked < 2; is_chunked++) {
        /* The last rank has the remaining rows. */
        int each = ROWS / (size + 1), first = rank * each, count = rank == size - 1 ? ROWS - first : each;
        for (int i = 0; i < count; i++)
            for (int j = 0; j < COLUMNS; j++) slab[i * COLUMNS + j] = 1000 * (first + i) + j;
        whole(argv[1], 1, is_chunked, slab, first, count, 0);
        MPI_Barrier(MPI_COMM_WORLD);
        each = COLUMNS / size, first = rank * each, count = rank == size - 1 ? COLUMNS - first : each;
        whole(argv[1], 0, is_chunked, slab, first, count, 1);
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < count; j++)
                if (slab[i * count + j] != 1000 * i + first + j) MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Finalize();
    if (rank == 0) puts("read what was written");
    return 0;
}
