! The HB_ calls with handles of the module mpi_f08: type(MPI_Comm) and so on.
#define USE_HANDLES use mpi_f08, only: MPI_Comm, MPI_Datatype, MPI_Info, MPI_Op, MPI_Request
#define COMM_HANDLE type(MPI_Comm)
#define DATATYPE_HANDLE type(MPI_Datatype)
#define OP_HANDLE type(MPI_Op)
#define INFO_HANDLE type(MPI_Info)
#define REQUEST_HANDLE type(MPI_Request)
#define HANDLE_VALUE %mpi_val

#define MODULE hopbine_mpi_f08_blocking
#include "blocking.inc"
#define MODULE hopbine_mpi_f08_nonblocking
#include "nonblocking.inc"
#define MODULE hopbine_mpi_f08_persistent
#include "persistent.inc"

#define HB_LARGE
#define MODULE hopbine_mpi_f08_large_blocking
#include "blocking.inc"
#define MODULE hopbine_mpi_f08_large_nonblocking
#include "nonblocking.inc"
#define MODULE hopbine_mpi_f08_large_persistent
#include "persistent.inc"
