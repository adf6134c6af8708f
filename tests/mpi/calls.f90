! MPI's collectives from Fortran, with the interface that is compiled in: mpif.h, mpi, or mpi_f08.
! Rank 0 prints "all correct", if the preload library (HOPBINE_REPORT) or MPI serves them.
program calls
#ifdef USE_mpi_f08
  use mpi_f08
#endif
#ifdef USE_mpi
  use mpi
#endif
  implicit none
#ifdef USE_mpif
  include 'mpif.h'
#endif
  integer, parameter :: n = 50
  integer :: rank, n_ranks, ierror, i
  double precision :: mine(n), total(n), scalar
  integer, allocatable :: blocks(:, :), more(:, :)
  complex :: z(2)

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, n_ranks, ierror)
  allocate (blocks(3, n_ranks), more(3, n_ranks))
  mine = [(rank + i, i=1, n)]
  call MPI_Allreduce(mine, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  call expect(all(nint(total) == n_ranks * (n_ranks - 1) / 2 + n_ranks * [(i, i=1, n)]), 'allreduce')
  call MPI_Allreduce(MPI_IN_PLACE, mine, n, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierror)
  call expect(all(nint(mine) == n_ranks - 1 + [(i, i=1, n)]), 'in place')
  scalar = rank
  call MPI_Bcast(scalar, 1, MPI_REAL8, n_ranks - 1, MPI_COMM_WORLD, ierror)
  call expect(nint(scalar) == n_ranks - 1, 'bcast')
  blocks = -1
  blocks(:, rank + 1) = rank
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, blocks, 3, MPI_INTEGER, MPI_COMM_WORLD, ierror)
  call expect(all(blocks(2, :) == [(i, i=0, n_ranks - 1)]), 'allgather')
  blocks = rank
  call MPI_Alltoall(blocks, 3, MPI_INTEGER, more, 3, MPI_INTEGER, MPI_COMM_WORLD, ierror)
  call expect(all(more(3, :) == [(i, i=0, n_ranks - 1)]), 'alltoall')
  z = (1.0, 2.0)
  call MPI_Allreduce(MPI_IN_PLACE, z, 2, MPI_COMPLEX, MPI_SUM, MPI_COMM_WORLD, ierror)
  call expect(nint(aimag(z(2))) == 2 * n_ranks, 'complex')
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call MPI_Finalize(ierror)
  if (rank == 0) print '(a)', 'all correct'

contains

  subroutine expect(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (condition) return
    print '(a,i0,3a)', 'rank ', rank, ': ', what, ' is wrong'
    call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  end subroutine
end program
