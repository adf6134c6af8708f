/* What the preprocessor says of an MPI's header (mpi_variant in build.sh); nothing compiles this. */
#include <mpi.h>
#if defined MPI_ABI_VERSION
hopbine: abi
#elif defined OPEN_MPI
hopbine: openmpi
#elif defined MPICH
hopbine: mpich
#endif
