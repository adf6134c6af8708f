! MPI's collectives from Fortran, with the interface chosen at compile time: mpif.h, mpi, or mpi_f08. Rank 0 prints
! "all correct". The preload library (with HOPBINE_REPORT set) or MPI serves the calls.
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
  call requests
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  if (rank == 0) print '(a)', 'all correct'
  flush (6)
  call MPI_Finalize(ierror)

contains

  ! Requests of collectives and messages, waited for together and separately.
  subroutine requests
    integer :: out(2), sums(2), from, place, n_done, places(4)
    logical :: is_done
#ifdef USE_mpi_f08
    type(MPI_Request) :: all_of_them(4)
#else
    integer :: all_of_them(4)
#endif
    do i = 1, 3
      out = [rank, i]
      from = -1
      scalar = rank + i
      call MPI_Irecv(from, 1, MPI_INTEGER, modulo(rank - 1, n_ranks), i, MPI_COMM_WORLD, all_of_them(1), ierror)
      call MPI_Iallreduce(out, sums, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, all_of_them(2), ierror)
      call MPI_Isend(out, 1, MPI_INTEGER, modulo(rank + 1, n_ranks), i, MPI_COMM_WORLD, all_of_them(3), ierror)
      call MPI_Ibcast(scalar, 1, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, all_of_them(4), ierror)
      select case (i)
      case (1)
        call MPI_Waitall(4, all_of_them, MPI_STATUSES_IGNORE, ierror)
      case (2)
        call MPI_Waitany(4, all_of_them, place, MPI_STATUS_IGNORE, ierror)
        is_done = .false.
        do while (.not. is_done)
          call MPI_Testall(4, all_of_them, is_done, MPI_STATUSES_IGNORE, ierror)
        end do
      case (3)
        is_done = .false.
        do while (.not. is_done)
          call MPI_Test(all_of_them(2), is_done, MPI_STATUS_IGNORE, ierror)
        end do
        n_done = 0
        do while (n_done /= MPI_UNDEFINED)
          call MPI_Waitsome(4, all_of_them, n_done, places, MPI_STATUSES_IGNORE, ierror)
        end do
      end select
      call expect(from == modulo(rank - 1, n_ranks) .and. nint(scalar) == i, 'message or bcast')
      call expect(all(sums == [n_ranks * (n_ranks - 1) / 2, i * n_ranks]), 'iallreduce')
      call expect(all([(all_of_them(place) == MPI_REQUEST_NULL, place=1, 4)]), 'null')
    end do
  end subroutine

  subroutine expect(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (condition) return
    print '(a,i0,3a)', 'rank ', rank, ': ', what, ' is wrong'
    call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  end subroutine
end program
