! MPI's collectives by hopbine, in Fortran: HB_Allreduce in place of MPI_Allreduce, and so on, for
! programs that use the module mpi_f08 (type(MPI_Comm) handles) or mpi (integer handles). The names of
! arguments, their meaning and errors are MPI's.
!
! Buffers of blocking calls must be contiguous or are copied by the compiler; HB_Iallreduce, its kin, and
! HB_Allreduce_init and its kin, which an MPI of version 4 has, refuse what has gaps (MPI_ERR_BUFFER).
! MPI serves HB_Alltoallw in all its forms, as in C.
!
! Counts are default integers, or all of a call's are of MPI_COUNT_KIND, and its displacements then of MPI_ADDRESS_KIND,
! also over an MPI before its version 4. There a call that hopbine does not serve fails (MPI_ERR_COUNT) if a default
! integer does not hold one of these numbers.
!
! HB_Iallreduce and HB_Allreduce_init are served where libhopbine_preload.so is loaded (LD_PRELOAD), which serves
! waiting for them; else by MPI. To be compiled with the MPI's own Fortran compiler, as mpifort:
! capi/mpi/build.sh.
module hopbine_mpi
  use hopbine_mpi_call, only: HB_Init
  use hopbine_mpi_f08
  use hopbine_mpi_f08_large
  use hopbine_mpi_integer
  use hopbine_mpi_integer_large
  implicit none
  public
end module hopbine_mpi
