! Short reductions of Fortran's types, which barrier gates perform where there are some: on MPI_COMM_WORLD, a duplicate
! and a part of it. Rank 0 prints "all correct".
program short
  use mpi
  implicit none
  integer, parameter :: n = 6
  integer :: rank, ierror, other, part

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call check(MPI_COMM_WORLD)
  call MPI_Comm_dup(MPI_COMM_WORLD, other, ierror)
  call check(other)
  call MPI_Comm_split(MPI_COMM_WORLD, min(rank, 1), -rank, part, ierror)
  call check(part)
  call MPI_Comm_free(other, ierror)
  call MPI_Comm_free(part, ierror)
  if (rank == 0) print '(a)', 'all correct'
  call MPI_Finalize(ierror)
contains
  subroutine check(comm)
    integer, intent(in) :: comm
    integer :: me, n_ranks, i, r, got(n)
    double precision :: double_got(n)
    real :: real_got(n)
    logical :: truth(n)
    ! What each rank gives.
    integer, allocatable :: given(:, :)
    logical, allocatable :: given_truth(:, :)

    call MPI_Comm_rank(comm, me, ierror)
    call MPI_Comm_size(comm, n_ranks, ierror)
    allocate (given(n, 0:n_ranks - 1), given_truth(n, 0:n_ranks - 1))
    do r = 0, n_ranks - 1
      do i = 1, n
        given(i, r) = ieor((r + 1) * 40503, i * 7919) * (-1)**(r + i)
        given_truth(i, r) = mod(given(i, r) / 8, i) == 0
      end do
    end do
    call MPI_Allreduce(given(:, me), got, n, MPI_INTEGER, MPI_SUM, comm, ierror)
    call expect(all(got == sum(given, 2)), 'MPI_SUM')
    call MPI_Allreduce(given(:, me), got, n, MPI_INTEGER, MPI_MAX, comm, ierror)
    call expect(all(got == maxval(given, 2)), 'MPI_MAX')
    got = given(:, me)
    call MPI_Allreduce(MPI_IN_PLACE, got, n, MPI_INTEGER, MPI_MIN, comm, ierror)
    call expect(all(got == minval(given, 2)), 'MPI_MIN')
    call MPI_Allreduce(given(:, me), got, n, MPI_INTEGER, MPI_BAND, comm, ierror)
    call expect(all(got == iall(given, 2)), 'MPI_BAND')
    call MPI_Allreduce(given(:, me), got, n, MPI_INTEGER, MPI_BOR, comm, ierror)
    call expect(all(got == iany(given, 2)), 'MPI_BOR')
    call MPI_Allreduce(given(:, me), got, n, MPI_INTEGER, MPI_BXOR, comm, ierror)
    call expect(all(got == iparity(given, 2)), 'MPI_BXOR')
    call MPI_Allreduce(given(:, me) / 4d0, double_got, n, MPI_REAL8, MPI_MAX, comm, ierror)
    call expect(all(double_got == maxval(given, 2) / 4d0), 'MPI_MAX of MPI_REAL8')
    call MPI_Allreduce(given(:, me) / 4d0, double_got, n, MPI_DOUBLE_PRECISION, MPI_MIN, comm, ierror)
    call expect(all(double_got == minval(given, 2) / 4d0), 'MPI_MIN of MPI_DOUBLE_PRECISION')
    call MPI_Allreduce(given(:, me) / 4., real_got, n, MPI_REAL, MPI_MAX, comm, ierror)
    call expect(all(real_got == maxval(given, 2) / 4.), 'MPI_MAX of MPI_REAL')
    call MPI_Allreduce(given_truth(:, me), truth, n, MPI_LOGICAL, MPI_LAND, comm, ierror)
    call expect(all(truth .eqv. all(given_truth, 2)), 'MPI_LAND')
    call MPI_Allreduce(given_truth(:, me), truth, n, MPI_LOGICAL, MPI_LOR, comm, ierror)
    call expect(all(truth .eqv. any(given_truth, 2)), 'MPI_LOR')
    call MPI_Allreduce(given_truth(:, me), truth, n, MPI_LOGICAL, MPI_LXOR, comm, ierror)
    call expect(all(truth .eqv. parity(given_truth, 2)), 'MPI_LXOR')
    call MPI_Barrier(comm, ierror)
  end subroutine

  subroutine expect(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (condition) return
    print '(a, i0, 2a)', 'rank ', rank, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  end subroutine
end program
