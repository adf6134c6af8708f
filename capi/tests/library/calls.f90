! Runs every collective in its three forms from Fortran, with buffers of several types and ranks; then calls that must
! be refused. Rank 0 prints "all correct".
program calls
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_loc
  use, intrinsic :: iso_fortran_env, only: int8, int64, real32, real64
  use hopbine
  implicit none
  ! 12 bytes, of which the first component has 8.
  type :: particle
    complex(real32) :: z
    integer :: id
  end type
  integer :: rank, n_ranks, form, code, i
  integer(hopbine_handle) :: world, half, request, requests(2)
  integer(hopbine_count), parameter :: n = 6
  integer(int64), target, asynchronous :: one(n), other(n)
  integer(int64), pointer, asynchronous :: row(:)
  type(particle), target, asynchronous :: particles(4)
  complex(real32), pointer, asynchronous :: component(:)
  character(3), asynchronous :: words(5)
  integer(int8), pointer, asynchronous :: long(:)
  integer(int64), allocatable, asynchronous :: blocks(:, :), more(:, :)
  complex(real64) :: z(2, 3), sum_z(2, 3)
  integer(hopbine_count), allocatable :: counts(:), displs(:), sent(:)
  real(real32) :: scalar
  logical :: flag

  call hopbine_init(world)
  call hopbine_comm_rank(world, rank)
  call hopbine_comm_size(world, n_ranks)
  allocate (blocks(n, 0:n_ranks - 1), more(n, 0:n_ranks - 1), sent(n_ranks))

  do form = 1, 3
    one = rank + [(i, i=1, int(n))]
    other = 0
    select case (form)
    case (1)
      call hopbine_allreduce(one, other, n, HOPBINE_INT64, HOPBINE_SUM, world)
    case (2)
      call hopbine_iallreduce(one, other, n, HOPBINE_INT64, HOPBINE_SUM, world, request)
      call hopbine_test(request, flag)
      call hopbine_wait(request)
    case (3)
      call hopbine_allreduce_init(one, other, n, HOPBINE_INT64, HOPBINE_SUM, world, request)
      call twice(request)
    end select
    call expect(all(other == n_ranks * (n_ranks - 1) / 2 + n_ranks * [(i, i=1, int(n))]), 'allreduce')

    ! What is received into has nothing that the call gives: no call passes by what an earlier one has left.
    blocks = -1
    more = -1
    select case (form)
    case (1)
      call hopbine_allgather(one, blocks, n, HOPBINE_INT64, world)
      call hopbine_alltoall(blocks, more, n, HOPBINE_INT64, world)
      call hopbine_barrier(world)
    case (2)
      call hopbine_iallgather(one, blocks, n, HOPBINE_INT64, world, request)
      call hopbine_wait(request)
      call hopbine_ialltoall(blocks, more, n, HOPBINE_INT64, world, requests(1))
      call hopbine_ibarrier(world, requests(2))
      call hopbine_waitall(requests)
    case (3)
      call hopbine_allgather_init(one, blocks, n, HOPBINE_INT64, world, request)
      call twice(request)
      call hopbine_alltoall_init(blocks, more, n, HOPBINE_INT64, world, request)
      call twice(request)
      call hopbine_barrier_init(world, request)
      call twice(request)
    end select
    do i = 0, n_ranks - 1
      call expect(all(blocks(:, i) == one - rank + i), 'allgather')
      call expect(all(more(:, i) == one), 'alltoall')
    end do

    counts = [(int(i, hopbine_count), i=1, n_ranks)]
    displs = [(int(n * (i - 1), hopbine_count), i=1, n_ranks)]
    blocks = -1
    more = -1
    select case (form)
    case (1)
      call hopbine_allgatherv(one, counts(rank + 1), more, counts, displs, HOPBINE_INT64, world)
      call hopbine_gatherv(one, counts(rank + 1), blocks, counts, displs, HOPBINE_INT64, 0, world)
    case (2)
      call hopbine_iallgatherv(one, counts(rank + 1), more, counts, displs, HOPBINE_INT64, world, request)
      call hopbine_wait(request)
      call hopbine_igatherv(one, counts(rank + 1), blocks, counts, displs, HOPBINE_INT64, 0, world, request)
      call hopbine_wait(request)
    case (3)
      call hopbine_allgatherv_init(one, counts(rank + 1), more, counts, displs, HOPBINE_INT64, world, request)
      call twice(request)
      call hopbine_gatherv_init(one, counts(rank + 1), blocks, counts, displs, HOPBINE_INT64, 0, world, request)
      call twice(request)
    end select
    do i = 0, n_ranks - 1
      call expect(all(more(:i + 1, i) == one(:i + 1) - rank + i) .and. all(more(i + 2:, i) == -1), 'allgatherv')
    end do
    other = -1
    call hopbine_scatterv(blocks, counts, displs, other, counts(rank + 1), HOPBINE_INT64, 0, world)
    call expect(all(other(:rank + 1) == one(:rank + 1)), 'scatterv')
    ! Rank x sends x + 1 elements to everyone.
    blocks = rank
    more = -1
    sent = counts(rank + 1)
    call hopbine_alltoallv(blocks, sent, displs, more, counts, displs, HOPBINE_INT64, world)
    do i = 0, n_ranks - 1
      call expect(all(more(:i + 1, i) == i), 'alltoallv')
    end do
    other = -1
    call hopbine_reduce_scatter(one, other, [(1_hopbine_count, i=1, n_ranks)], HOPBINE_INT64, HOPBINE_SUM, world)
    call expect(other(1) == n_ranks * (n_ranks - 1) / 2 + n_ranks * (rank + 1), 'reduce_scatter')
    do i = 0, n_ranks - 1
      blocks(:, i) = one - rank + i
    end do

    other = merge(7_int64, 0_int64, rank == 0)
    one = -1
    more = -1
    select case (form)
    case (1)
      call hopbine_bcast(other, n, HOPBINE_INT64, 0, world)
      call hopbine_scatter(blocks, one, n, HOPBINE_INT64, n_ranks - 1, world)
      call hopbine_gather(one, more, n, HOPBINE_INT64, 0, world)
    case (2)
      call hopbine_ibcast(other, n, HOPBINE_INT64, 0, world, request)
      call hopbine_wait(request)
      call hopbine_iscatter(blocks, one, n, HOPBINE_INT64, n_ranks - 1, world, request)
      call hopbine_wait(request)
      call hopbine_igather(one, more, n, HOPBINE_INT64, 0, world, request)
      call hopbine_wait(request)
    case (3)
      call hopbine_bcast_init(other, n, HOPBINE_INT64, 0, world, request)
      call twice(request)
      call hopbine_scatter_init(blocks, one, n, HOPBINE_INT64, n_ranks - 1, world, request)
      call twice(request)
      call hopbine_gather_init(one, more, n, HOPBINE_INT64, 0, world, request)
      call twice(request)
    end select
    call expect(all(other == 7), 'bcast')
    call expect(all(one == rank + [(i, i=1, int(n))]), 'scatter')
    call expect(rank /= 0 .or. all(more == blocks), 'gather')

    other = -1
    blocks = blocks + rank
    select case (form)
    case (1)
      call hopbine_reduce(one, other, n, HOPBINE_INT64, HOPBINE_MAX, 0, world)
      call hopbine_reduce_scatter_block(blocks, one, n, HOPBINE_INT64, HOPBINE_SUM, world)
    case (2)
      call hopbine_ireduce(one, other, n, HOPBINE_INT64, HOPBINE_MAX, 0, world, request)
      call hopbine_wait(request)
      call hopbine_ireduce_scatter_block(blocks, one, n, HOPBINE_INT64, HOPBINE_SUM, world, request)
      call hopbine_wait(request)
    case (3)
      call hopbine_reduce_init(one, other, n, HOPBINE_INT64, HOPBINE_MAX, 0, world, request)
      call twice(request)
      call hopbine_reduce_scatter_block_init(blocks, one, n, HOPBINE_INT64, HOPBINE_SUM, world, request)
      call twice(request)
    end select
    call expect(rank /= 0 .or. all(other == n_ranks - 1 + [(i, i=1, int(n))]), 'reduce')
    call expect(all(one == n_ranks * (n_ranks - 1) / 2 + n_ranks * (rank + [(i, i=1, int(n))])), 'reduce_scatter_block')
  end do

  one = rank + [(i, i=1, int(n))]
  call hopbine_scan(one, other, n, HOPBINE_INT64, HOPBINE_SUM, world)
  call expect(all(other == rank * (rank + 1) / 2 + (rank + 1) * [(i, i=1, int(n))]), 'scan')

  ! A matrix, every other element of an array (copied by the compiler), and a scalar.
  z = cmplx(rank, 1, real64)
  call hopbine_allreduce(z, sum_z, 6_hopbine_count, HOPBINE_DOUBLE_COMPLEX, HOPBINE_SUM, world)
  call expect(all(abs(sum_z - cmplx(n_ranks * (n_ranks - 1) / 2, n_ranks, real64)) < 1e-9_real64), 'complex')
  one = [(i + rank, i=1, int(n))]
  call hopbine_allreduce(HOPBINE_IN_PLACE, one(1:n:2), 3_hopbine_count, HOPBINE_INT64, HOPBINE_MIN, world)
  call expect(all(one == [1, 2 + rank, 3, 4 + rank, 5, 6 + rank]), 'every other')
  scalar = 2
  call hopbine_allreduce(HOPBINE_IN_PLACE, scalar, 1_hopbine_count, HOPBINE_FLOAT, HOPBINE_PROD, world)
  call expect(nint(scalar) == 2**n_ranks, 'scalar')

  ! Here `half` holds a registration; all handles are 64-bit integers.
  call hopbine_register(world, one, 8 * n, half)
  call hopbine_allreduce(HOPBINE_IN_PLACE, one, n, HOPBINE_INT64, HOPBINE_MAX, world)
  call hopbine_deregister(half)
  call hopbine_deregister(half, code)
  call expect(code == HOPBINE_ERR_ARG, 'deregistered')
  call hopbine_comm_split(world, mod(rank, 2), 0, half)
  call hopbine_comm_size(half, i)
  call expect(i == (n_ranks + 1 - mod(rank, 2)) / 2, 'split')
  call hopbine_barrier(half)
  call hopbine_comm_free(half)
  call hopbine_barrier(half, code)
  call expect(code == HOPBINE_ERR_COMM, 'freed communicator')
  call expect(len(hopbine_error_message()) > 0, 'message')
  call hopbine_bcast(one, n, HOPBINE_INT64, -1, world, code)
  call expect(code == HOPBINE_ERR_ROOT, 'root')
  call hopbine_iallreduce(HOPBINE_IN_PLACE, one(::2), 2_hopbine_count, HOPBINE_INT64, HOPBINE_MAX, world, request, code)
  call expect(code == HOPBINE_ERR_BUFFER, 'a section with gaps')
  row => one(::2)
  call hopbine_iallreduce(HOPBINE_IN_PLACE, row, 2_hopbine_count, HOPBINE_INT64, HOPBINE_MAX, world, request, code)
  call expect(code == HOPBINE_ERR_BUFFER, 'a pointer to a section with gaps')
  particles%z = 1
  particles%id = rank
  component => particles%z
  words = 'abc'
  ! Longer than what is there, and its section longer than a default integer tells: refused, it is not touched.
  call c_f_pointer(c_loc(one), long, [2_int64**32])
  do i = 1, 4
    if (i == 1) call hopbine_ibcast(particles%z, 4_hopbine_count, HOPBINE_FLOAT_COMPLEX, 0, world, request, code)
    if (i == 2) call hopbine_ibcast(component, 4_hopbine_count, HOPBINE_FLOAT_COMPLEX, 0, world, request, code)
    if (i == 3) call hopbine_ibcast(words(:)(1:2), 10_hopbine_count, HOPBINE_INT8, 0, world, request, code)
    if (i == 4) call hopbine_ibcast(long(::2), 4_hopbine_count, HOPBINE_INT8, 0, world, request, code)
    call expect(code == HOPBINE_ERR_BUFFER, 'a component, a pointer to it, substrings or a long section')
  end do
  one = rank
  blocks = rank
  call reduce_sized(one, blocks, int(n))
  call expect(one(1) == n_ranks - 1 .and. all(one(2:) == rank), 'assumed size')
  call expect(blocks(1, 0) == n_ranks - 1 .and. all(blocks(2:, 0) == rank), 'assumed size of rank 2')
  row => one(2:3)
  call hopbine_iallreduce(HOPBINE_IN_PLACE, row, 2_hopbine_count, HOPBINE_INT64, HOPBINE_MAX, world, request)
  call hopbine_wait(request)
  call hopbine_finalize()
  if (rank == 0) print '(a)', 'all correct'

contains

  ! Starts and waits for a persistent request, and frees it.
  subroutine twice(request)
    integer(hopbine_handle), intent(inout) :: request
    integer :: round
    do round = 1, 2
      call hopbine_start(request)
      call hopbine_wait(request)
    end do
    call hopbine_request_free(request)
  end subroutine

  ! Arrays of assumed size are contiguous.
  subroutine reduce_sized(vector, matrix, rows)
    integer, intent(in) :: rows
    integer(int64), target, asynchronous :: vector(*), matrix(rows, *)
    call hopbine_iallreduce(HOPBINE_IN_PLACE, vector, 1_hopbine_count, HOPBINE_INT64, HOPBINE_MAX, world, requests(1))
    call hopbine_iallreduce(HOPBINE_IN_PLACE, matrix, 1_hopbine_count, HOPBINE_INT64, HOPBINE_MAX, world, requests(2))
    call hopbine_waitall(requests)
  end subroutine

  subroutine expect(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (condition) return
    print '(a,i0,4a,i0)', 'rank ', rank, ': ', what, ' is wrong', ', form ', form
    error stop 1
  end subroutine
end program
