! Heat in a box, in 3-D, cut into slabs: halos by MPI messages, the residual by HB_Allreduce.
!
!     mpifort -O2 heat.f90 $(pkg-config --cflags --libs hopbine-hb-fortran) -o heat
!     mpirun -n 8 ./heat 48 100
program heat
  use, intrinsic :: iso_fortran_env, only: dp => real64, error_unit, int64
  use mpi_f08
  use hopbine_mpi
  implicit none
  integer :: n, steps, rank, n_ranks, first, last, below, above, step, i, j, k
  real(dp), allocatable :: now(:, :, :), next(:, :, :)
  real(dp) :: change, all_change
  integer(int64) :: here, total
  type(MPI_Comm) :: line

  call MPI_Init()
  n = number(1, 48)
  steps = number(2, 100)
  call MPI_Comm_size(MPI_COMM_WORLD, n_ranks)
  if (n < n_ranks) then
    write (error_unit, '(a,i0,a,i0,a)') 'heat: ', n, ' layers of cells for ', n_ranks, ' ranks: each needs one'
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end if
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [n_ranks], [.false.], .false., line)
  call MPI_Comm_rank(line, rank)
  call MPI_Cart_shift(line, 0, 1, below, above)
  first = n * rank / n_ranks + 1
  last = n * (rank + 1) / n_ranks
  allocate (now(0:n + 1, 0:n + 1, first - 1:last + 1), source=0.0_dp)
  if (rank == 0) now(:, :, 0) = 1
  next = now

  change = 0
  do step = 1, steps
    call MPI_Sendrecv(now(:, :, last), (n + 2)**2, MPI_DOUBLE_PRECISION, above, 1, &
      now(:, :, first - 1), (n + 2)**2, MPI_DOUBLE_PRECISION, below, 1, line, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(now(:, :, first), (n + 2)**2, MPI_DOUBLE_PRECISION, below, 2, &
      now(:, :, last + 1), (n + 2)**2, MPI_DOUBLE_PRECISION, above, 2, line, MPI_STATUS_IGNORE)
    change = 0
    do k = first, last
      do j = 1, n
        do i = 1, n
          next(i, j, k) = now(i, j, k) + (now(i - 1, j, k) + now(i + 1, j, k) + now(i, j - 1, k) &
            + now(i, j + 1, k) + now(i, j, k - 1) + now(i, j, k + 1) - 6 * now(i, j, k)) / 8
          change = max(change, abs(next(i, j, k) - now(i, j, k)))
        end do
      end do
    end do
    call HB_Allreduce(change, all_change, 1, MPI_DOUBLE_PRECISION, MPI_MAX, line)
    change = all_change
    now(1:n, 1:n, first:last) = next(1:n, 1:n, first:last)
  end do

  ! The heat as an integer, in units of 1e-9: its sum does not depend on the order.
  here = 0
  do k = first, last
    do j = 1, n
      do i = 1, n
        here = here + nint(1e9_dp * now(i, j, k), int64)
      end do
    end do
  end do
  call HB_Reduce(here, total, 1, MPI_INTEGER8, MPI_SUM, 0, line)
  if (rank == 0) print '(i0,a,i0,a,f0.9,a,es21.15)', n, '^3 cells, ', steps, ' steps: heat ', &
    1e-9_dp * real(total, dp), ', last change ', change
  call MPI_Comm_free(line)
  call MPI_Finalize()

contains

  ! Argument number `at` of the program, or `otherwise` if it has none.
  integer function number(at, otherwise)
    integer, intent(in) :: at, otherwise
    character(16) :: argument
    number = otherwise
    call get_command_argument(at, argument)
    if (argument /= '') read (argument, *) number
  end function
end program
