! Short reductions of Fortran's types, which barrier gates perform if the device has them: on MPI_COMM_WORLD, a
! duplicate and a subcommunicator. Rank 0 prints "all correct".
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
    ! Pairs, as values and their locations.
    integer :: pairs(2, n / 2), pair_got(2, n / 2)
    double precision :: doubles(2, n / 2), doubles_got(2, n / 2)
    real :: reals(2, n / 2), reals_got(2, n / 2)
    ! Each rank's input.
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
    ! Among equal values, of which there are many, the lowest location.
    pairs(1, :) = mod(given(:n / 2, me), 3)
    pairs(2, :) = n_ranks - me
    call MPI_Allreduce(pairs, pair_got, n / 2, MPI_2INTEGER, MPI_MINLOC, comm, ierror)
    call expect(all(pair_got(1, :) == minval(mod(given(:n / 2, :), 3), 2)), 'MPI_MINLOC')
    call expect(all([(pair_got(2, i) == lowest(given(i, :), pair_got(1, i)), i=1, n / 2)]), 'a location')
    doubles = pairs / 4d0
    call MPI_Allreduce(doubles, doubles_got, n / 2, MPI_2DOUBLE_PRECISION, MPI_MAXLOC, comm, ierror)
    call expect(all(doubles_got(1, :) == maxval(mod(given(:n / 2, :), 3), 2) / 4d0), 'MPI_MAXLOC')
    call expect(all([(nint(4 * doubles_got(2, i)) == lowest(given(i, :), nint(4 * doubles_got(1, i))), i=1, n / 2)]), &
                'a location of MPI_2DOUBLE_PRECISION')
    reals = pairs / 4.
    call MPI_Allreduce(reals, reals_got, n / 2, MPI_2REAL, MPI_MAXLOC, comm, ierror)
    call expect(all(reals_got == real(doubles_got)), 'MPI_MAXLOC of MPI_2REAL')
    call MPI_Barrier(comm, ierror)
  end subroutine

  ! The lowest location of `value` in the ranks' input; a rank's location is the number of ranks minus its rank.
  integer function lowest(of, value)
    integer, intent(in) :: of(:), value
    lowest = size(of) + 1 - findloc(mod(of, 3), value, 1, back=.true.)
  end function

  subroutine expect(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (condition) return
    print '(a, i0, 2a)', 'rank ', rank, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  end subroutine
end program
