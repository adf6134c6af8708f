! HB_Allreduce and its kin with the handles of the module mpi: integers.
#define COMM_HANDLE integer(c_int)
#define DATATYPE_HANDLE integer(c_int)
#define OP_HANDLE integer(c_int)
#define INFO_HANDLE integer(c_int)
#define REQUEST_HANDLE integer(c_int)
#define HANDLE_VALUE
module hopbine_mpi_integer
  use, intrinsic :: iso_c_binding, only: c_int, c_loc
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

end module hopbine_mpi_integer
