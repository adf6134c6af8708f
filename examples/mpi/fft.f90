! A Fourier transform of n x n numbers, there and back: columns, a transpose by HB_Alltoall, columns
! again.
!
!     mpifort -O2 fft.f90 $(pkg-config --cflags --libs hopbine-hb-fortran) -o fft
!     mpirun -n 4 ./fft 256        n: a power of two and a multiple of the number of ranks
program fft
  use, intrinsic :: iso_fortran_env, only: dp => real64
  use mpi_f08
  use hopbine_mpi
  implicit none
  integer :: n, rank, n_ranks, columns, i, j, way, dimension
  complex(dp), allocatable :: x(:, :), began(:, :), blocks(:, :, :), turned(:, :, :)
  real(dp) :: error
  character(16) :: argument

  call MPI_Init()
  n = 256
  call get_command_argument(1, argument)
  if (argument /= '') read (argument, *) n
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n_ranks)
  if (n < 1 .or. mod(n, n_ranks) /= 0 .or. iand(n, n - 1) /= 0) error stop 'n is no power of two that the ranks divide'
  columns = n / n_ranks
  allocate (x(n, columns), blocks(columns, columns, n_ranks), turned(columns, columns, n_ranks))
  do j = 1, columns
    do i = 1, n
      x(i, j) = cmplx(sin(real((rank * columns + j) * n + i, dp)), cos(real(3 * i, dp)), dp)
    end do
  end do
  began = x
  do way = -1, 1, 2
    do dimension = 1, 2
      do j = 1, columns
        call transform(x(:, j), way)
      end do
      call transpose_all()
    end do
  end do
  error = maxval(abs(x / real(n, dp)**2 - began))
  call HB_Allreduce(MPI_IN_PLACE, error, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
  if (rank == 0) print '(a,es10.3)', merge('correct, error ', 'WRONG, error   ', error < 1e-10_dp), error
  call MPI_Finalize()
  if (error >= 1e-10_dp) error stop 1

contains

  ! Transforms one column in place; way is -1 for forward, 1 for backward.
  subroutine transform(a, way)
    complex(dp), intent(inout) :: a(0:)
    integer, intent(in) :: way
    complex(dp) :: turn, odd
    integer :: i, j, bit, half, k
    j = 0
    do i = 1, size(a) - 1
      bit = size(a) / 2
      do while (iand(j, bit) /= 0)
        j = ieor(j, bit)
        bit = bit / 2
      end do
      j = ior(j, bit)
      if (i < j) a([i, j]) = a([j, i])
    end do
    half = 1
    do while (half < size(a))
      do k = 0, half - 1
        turn = exp(cmplx(0, way * acos(-1.0_dp) * k / half, dp))
        do i = k, size(a) - 1, 2 * half
          odd = turn * a(i + half)
          a(i + half) = a(i) - odd
          a(i) = a(i) + odd
        end do
      end do
      half = 2 * half
    end do
  end subroutine

  ! Transposes the matrix: square blocks go to their ranks, which transpose them.
  subroutine transpose_all()
    integer :: r
    do r = 1, n_ranks
      blocks(:, :, r) = x((r - 1) * columns + 1:r * columns, :)
    end do
    call HB_Alltoall(blocks, columns**2, MPI_DOUBLE_COMPLEX, turned, columns**2, MPI_DOUBLE_COMPLEX, MPI_COMM_WORLD)
    do r = 1, n_ranks
      x((r - 1) * columns + 1:r * columns, :) = transpose(turned(:, :, r))
    end do
  end subroutine
end program
