! The same as starts.c in Fortran, by one of its interfaces: -DUSE_mpif, -DUSE_mpi or -DUSE_mpi_f08; with -DTHREAD by
! MPI_Init_thread.
program starts
#if defined(USE_mpi_f08)
  use mpi_f08
#elif defined(USE_mpi)
  use mpi
#endif
  use hopbine_mpi
  implicit none
#if defined(USE_mpif)
  include 'mpif.h'
#endif
  integer :: rank, part, total, expected, ierror
#if defined(THREAD)
  integer :: level
#endif
#if defined(USE_mpi_f08)
  type(MPI_Comm) :: own
#else
  integer :: own
#endif

#if defined(THREAD)
  call MPI_Init_thread(MPI_THREAD_FUNNELED, level, ierror)
#else
  call MPI_Init(ierror)
#endif
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, own, ierror)
  call MPI_Comm_size(own, expected, ierror)
  part = 1
  call HB_Allreduce(part, total, 1, MPI_INTEGER, MPI_SUM, own, ierror)
  if (total /= expected) call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  call MPI_Comm_free(own, ierror)
  if (rank == 0) print '(a)', 'the sums are right'
  call MPI_Finalize(ierror)
end program
