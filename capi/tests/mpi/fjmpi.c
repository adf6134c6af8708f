/* A stand-in for Fujitsu MPI's extensions: a job of 3x2 nodes, in reverse order, with two ranks per node if there are
 * twelve ranks. For capi/tests/mpi/place.c. */
#include <mpi.h>

int FJMPI_Topology_get_dimension(int *dimension);
int FJMPI_Topology_get_shape(int *x, int *y, int *z);
int FJMPI_Topology_get_coords(MPI_Comm comm, int rank, int view, int most, int *coordinates);

int FJMPI_Topology_get_dimension(int *dimension) {
    *dimension = 2;
    return 0;
}

int FJMPI_Topology_get_shape(int *x, int *y, int *z) {
    *x = 3, *y = 2, *z = 0;
    return 0;
}

int FJMPI_Topology_get_coords(MPI_Comm comm, int rank, int view, int most, int *coordinates) {
    int size;
    MPI_Comm_size(comm, &size);
    const int node = rank / (size / 6);
    /* 0: logical coordinates. */
    if (view != 0 || most < 2 || node > 5) return 1;
    coordinates[0] = 2 - node % 3, coordinates[1] = 1 - node / 3;
    return 0;
}
