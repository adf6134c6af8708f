! MPI's collectives by hopbine, in Fortran: HB_Allreduce in place of MPI_Allreduce, and so on, for programs that use
! the module mpi_f08 (type(MPI_Comm) handles) or mpi (integer handles). Argument names, semantics and errors are
! MPI's.
!
! Buffers of blocking calls must be contiguous or are copied by the compiler. Non-blocking calls (HB_Iallreduce) and
! persistent calls of MPI 4 (HB_Allreduce_init) refuse buffers with gaps (MPI_ERR_BUFFER). MPI serves HB_Alltoallw in
! all its forms, as in C.
!
! Counts are default integers; or all counts of a call are of MPI_COUNT_KIND and its displacements of
! MPI_ADDRESS_KIND, also over an MPI before version 4. Over such an MPI, a call that hopbine does not serve fails
! (MPI_ERR_COUNT) if one of these numbers exceeds a default integer.
!
! hopbine serves HB_Iallreduce and HB_Allreduce_init if libhopbine_preload.so is loaded (LD_PRELOAD), which interposes
! MPI_Wait; otherwise MPI serves them. Compile this module with the MPI's own Fortran compiler, such as mpifort:
! capi/mpi/build.sh.
module hopbine_mpi
  use hopbine_mpi_call, only: HB_Init
  use hopbine_mpi_f08_blocking
  use hopbine_mpi_f08_nonblocking
  use hopbine_mpi_f08_persistent
  use hopbine_mpi_f08_large_blocking
  use hopbine_mpi_f08_large_nonblocking
  use hopbine_mpi_f08_large_persistent
  use hopbine_mpi_integer_blocking
  use hopbine_mpi_integer_nonblocking
  use hopbine_mpi_integer_persistent
  use hopbine_mpi_integer_large_blocking
  use hopbine_mpi_integer_large_nonblocking
  use hopbine_mpi_integer_large_persistent
  implicit none
  public
end module hopbine_mpi
