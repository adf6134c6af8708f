! HB_Allreduce and its kin with the handles of the module mpi_f08: type(MPI_Comm) and its kin.
#define COMM_HANDLE type(MPI_Comm)
#define DATATYPE_HANDLE type(MPI_Datatype)
#define OP_HANDLE type(MPI_Op)
#define INFO_HANDLE type(MPI_Info)
#define REQUEST_HANDLE type(MPI_Request)
#define HANDLE_VALUE %mpi_val
module hopbine_mpi_f08
  use, intrinsic :: iso_c_binding, only: c_int, c_loc
  use mpi_f08, only: MPI_Comm, MPI_Datatype, MPI_Info, MPI_Op, MPI_Request
  use hopbine_mpi_call
  implicit none
  private
#include "names.inc"

contains

#include "blocking.inc"
#include "nonblocking.inc"
#ifdef HB_PERSISTENT
#include "persistent.inc"
#endif

end module hopbine_mpi_f08
