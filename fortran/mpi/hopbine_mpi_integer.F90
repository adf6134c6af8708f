! HB_Allreduce and its kin with the handles of the module mpi: integers.
#define COMM_HANDLE integer(c_int)
#define DATATYPE_HANDLE integer(c_int)
#define OP_HANDLE integer(c_int)
#define INFO_HANDLE integer(c_int)
#define REQUEST_HANDLE integer(c_int)
#define HANDLE_VALUE
module hopbine_mpi_integer
#include "calls.inc"
end module hopbine_mpi_integer

#define HB_LARGE
module hopbine_mpi_integer_large
#include "calls.inc"
end module hopbine_mpi_integer_large
