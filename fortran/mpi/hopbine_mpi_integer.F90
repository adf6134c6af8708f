! The HB_ calls with handles of the module mpi: integers.
#define USE_HANDLES
#define COMM_HANDLE integer(c_int)
#define DATATYPE_HANDLE integer(c_int)
#define OP_HANDLE integer(c_int)
#define INFO_HANDLE integer(c_int)
#define REQUEST_HANDLE integer(c_int)
#define HANDLE_VALUE

#define MODULE hopbine_mpi_integer_blocking
#include "blocking.inc"
#define MODULE hopbine_mpi_integer_nonblocking
#include "nonblocking.inc"
#define MODULE hopbine_mpi_integer_persistent
#include "persistent.inc"

#define HB_LARGE
#define MODULE hopbine_mpi_integer_large_blocking
#include "blocking.inc"
#define MODULE hopbine_mpi_integer_large_nonblocking
#include "nonblocking.inc"
#define MODULE hopbine_mpi_integer_large_persistent
#include "persistent.inc"
