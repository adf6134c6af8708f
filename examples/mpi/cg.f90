! Conjugate gradients on a distributed matrix, with `use mpi`: the 7-point Laplacian of an n x n x n grid. Its rows
! are distributed in blocks. Each step gathers the search direction and computes two dot products.
program cg
  use mpi
  use hopbine_mpi
  implicit none
  integer, parameter :: dp = kind(1d0)
  integer :: n, rank, n_ranks, steps, all, rows, first, i, ierror
  real(dp), allocatable :: direction(:), x(:), r(:), p(:), ap(:)
  real(dp) :: rr, before, alpha, enough, error
  character(16) :: argument

  call MPI_Init(ierror)
  n = 24
  call get_command_argument(1, argument)
  if (argument /= '') read (argument, *) n
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, n_ranks, ierror)
  all = n**3
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
    call HB_Allgather(p, rows, MPI_DOUBLE_PRECISION, direction, rows, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, ierror)
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
  do i = 1, min(rows, all - first + 1)
    error = max(error, abs(x(i) - 1))
  end do
  call HB_Allreduce(MPI_IN_PLACE, error, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierror)
  if (rank == 0) print '(2a,i0,a)', merge('correct: ', 'WRONG:   ', error < 1e-8_dp), '', steps, ' steps'
  call MPI_Finalize(ierror)
  if (error >= 1e-8_dp) error stop 1

contains

  ! The parts are added in the order of ranks: otherwise the rounding would depend on the algorithm of the sum.
  function dot(a, b) result(total)
    real(dp), intent(in) :: a(:), b(:)
    real(dp) :: total, parts(n_ranks)
    total = dot_product(a, b)
    call HB_Allgather(total, 1, MPI_DOUBLE_PRECISION, parts, 1, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, ierror)
    total = sum(parts)
  end function

  ! Multiplies this rank's rows of the matrix by a; rows beyond the grid pad the last block.
  subroutine multiply(a, product)
    real(dp), intent(in) :: a(:)
    real(dp), intent(out) :: product(:)
    integer :: row, at_i, at_j, at_k
    do row = first, first + rows - 1
      product(row - first + 1) = a(row)
      if (row > all) cycle
      at_i = mod(row - 1, n)
      at_j = mod((row - 1) / n, n)
      at_k = (row - 1) / n**2
      associate (sum => product(row - first + 1))
        sum = 6 * a(row)
        if (at_i > 0) sum = sum - a(row - 1)
        if (at_i < n - 1) sum = sum - a(row + 1)
        if (at_j > 0) sum = sum - a(row - n)
        if (at_j < n - 1) sum = sum - a(row + n)
        if (at_k > 0) sum = sum - a(row - n**2)
        if (at_k < n - 1) sum = sum - a(row + n**2)
      end associate
    end do
  end subroutine
end program
