! Conjugate gradients on a distributed matrix, with hopbine alone: the 7-point Laplacian of an
! n x n x n grid, its rows dealt out in blocks. Each step gathers the search direction from all
! ranks and adds up two dot products.
!
!     gfortran -O2 cg.f90 $(pkg-config --cflags --libs hopbine-fortran) -o cg
!     hopbine launch -n 4 --backend shm ./cg 24
program cg
  use, intrinsic :: iso_fortran_env, only: dp => real64
  use hopbine
  implicit none
  integer :: n, rank, n_ranks, steps, i
  integer(hopbine_handle) :: world
  integer(hopbine_count) :: all, rows, first
  real(dp), allocatable :: direction(:), x(:), r(:), p(:), ap(:)
  real(dp) :: rr, before, alpha, enough, error
  character(16) :: argument

  n = 24
  call get_command_argument(1, argument)
  if (argument /= '') read (argument, *) n
  call hopbine_init(world)
  call hopbine_comm_rank(world, rank)
  call hopbine_comm_size(world, n_ranks)
  all = int(n, hopbine_count)**3
  rows = (all + n_ranks - 1) / n_ranks
  first = rank * rows + 1
  allocate (direction(rows * n_ranks), source=0.0_dp)
  allocate (x(rows), r(rows), p(rows), ap(rows), source=0.0_dp)

  ! The right-hand side whose solution is 1 everywhere.
  direction(:all) = 1
  call multiply(direction, r)
  p = r
  rr = dot(r, r)
  enough = 1e-20_dp * rr
  steps = 0
  do while (rr > enough .and. steps < 10 * n)
    call hopbine_allgather(p, direction, rows, HOPBINE_DOUBLE, world)
    call multiply(direction, ap)
    alpha = rr / dot(p, ap)
    x = x + alpha * p
    r = r - alpha * ap
    before = rr
    rr = dot(r, r)
    p = r + rr / before * p
    steps = steps + 1
  end do

  error = 0
  do i = 1, int(min(rows, all - first + 1))
    error = max(error, abs(x(i) - 1))
  end do
  call hopbine_allreduce(HOPBINE_IN_PLACE, error, 1_hopbine_count, HOPBINE_DOUBLE, HOPBINE_MAX, world)
  if (rank == 0) print '(a,i0,a,es8.1)', merge('correct: ', 'WRONG:   ', error < 1e-8_dp), steps, ' steps, error', error
  call hopbine_finalize()
  if (error >= 1e-8_dp) error stop 1

contains

  function dot(a, b) result(total)
    real(dp), intent(in) :: a(:), b(:)
    real(dp) :: total
    total = dot_product(a, b)
    call hopbine_allreduce(HOPBINE_IN_PLACE, total, 1_hopbine_count, HOPBINE_DOUBLE, HOPBINE_SUM, world)
  end function

  ! Multiplies this rank's rows of the matrix by a; rows beyond the grid pad the last block.
  subroutine multiply(a, product)
    real(dp), intent(in) :: a(:)
    real(dp), intent(out) :: product(:)
    integer(hopbine_count) :: row, plane, at_i, at_j, at_k
    plane = int(n, hopbine_count)**2
    do row = first, first + rows - 1
      product(row - first + 1) = a(row)
      if (row > all) cycle
      at_i = mod(row - 1, int(n, hopbine_count))
      at_j = mod((row - 1) / n, int(n, hopbine_count))
      at_k = (row - 1) / plane
      associate (sum => product(row - first + 1))
        sum = 6 * a(row)
        if (at_i > 0) sum = sum - a(row - 1)
        if (at_i < n - 1) sum = sum - a(row + 1)
        if (at_j > 0) sum = sum - a(row - n)
        if (at_j < n - 1) sum = sum - a(row + n)
        if (at_k > 0) sum = sum - a(row - plane)
        if (at_k < n - 1) sum = sum - a(row + plane)
      end associate
    end do
  end subroutine
end program
