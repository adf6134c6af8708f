! HB_Allreduce and its kin with the handles of the module mpi_f08: type(MPI_Comm) and its kin.
#define COMM_HANDLE type(MPI_Comm)
#define DATATYPE_HANDLE type(MPI_Datatype)
#define OP_HANDLE type(MPI_Op)
#define INFO_HANDLE type(MPI_Info)
#define REQUEST_HANDLE type(MPI_Request)
#define HANDLE_VALUE %mpi_val
module hopbine_mpi_f08
  use mpi_f08, only: MPI_Comm, MPI_Datatype, MPI_Info, MPI_Op, MPI_Request
#include "calls.inc"
end module hopbine_mpi_f08

#define HB_LARGE
module hopbine_mpi_f08_large
  use mpi_f08, only: MPI_Comm, MPI_Datatype, MPI_Info, MPI_Op, MPI_Request
#include "calls.inc"
end module hopbine_mpi_f08_large
