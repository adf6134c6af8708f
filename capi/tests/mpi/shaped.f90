! Tests the module hopbine_mpi with the handles of mpi or mpi_f08 (-DUSE_mpi_f08): every call in each form, with MPI's
! argument keywords. With -DLARGE counts are of MPI_COUNT_KIND, and displacements of MPI_ADDRESS_KIND. With -DPLAIN,
! and HB_ renamed to MPI_, a program without any reference to hopbine. Rank 0 prints "all correct".
program shaped
#ifdef USE_mpi_f08
  use mpi_f08
#define HANDLE(kind) type(kind)
#else
  use mpi
#define HANDLE(kind) integer
#endif
#ifndef PLAIN
  use hopbine_mpi
#endif
  implicit none
  integer, parameter :: n = 3
#ifdef LARGE
  integer, parameter :: count_kind = MPI_COUNT_KIND, displ_kind = MPI_ADDRESS_KIND
#else
  integer, parameter :: count_kind = kind(n), displ_kind = kind(n)
#endif
  integer(count_kind), parameter :: count = n
#ifdef HB_PERSISTENT
  integer, parameter :: n_forms = 3
#else
  integer, parameter :: n_forms = 2
#endif
  integer :: rank, n_ranks, ierror, i, form
  ! Data that a rank sends and receives: `one` block, or `all` blocks of n numbers; block number r + 1 is rank r's.
  integer, allocatable, asynchronous :: one(:), all_ones(:, :), got(:), all_got(:, :)
  integer(count_kind), allocatable, asynchronous :: counts(:)
  integer(displ_kind), allocatable, asynchronous :: places(:), bytes(:)
  ! Allocated on rank 0 only.
  integer, allocatable, asynchronous :: nothing(:)
  HANDLE(MPI_Comm) :: world
  HANDLE(MPI_Datatype) :: int
  HANDLE(MPI_Datatype), allocatable, asynchronous :: types(:)
  HANDLE(MPI_Request), asynchronous :: request
  HANDLE(MPI_Info) :: info

  call MPI_Init(ierror)
  world = MPI_COMM_WORLD
  int = MPI_INTEGER
  info = MPI_INFO_NULL
  call MPI_Comm_rank(world, rank, ierror)
  call MPI_Comm_size(world, n_ranks, ierror)
#ifndef PLAIN
  call HB_Init(ierror)
#endif
  allocate (one(n), all_ones(n, n_ranks), got(n), all_got(n, n_ranks))
  counts = [(n, i=1, n_ranks)]
  places = [(n * (i - 1), i=1, n_ranks)]
  bytes = places * (storage_size(n) / 8)
  allocate (types(n_ranks))
  types = int
  do form = 1, n_forms
    call fill
    if (rank == n_ranks - 1) got = one
    select case (form)
    case (1)
      call HB_Bcast(buffer=got, count=count, datatype=int, root=n_ranks - 1, comm=world, ierror=ierror)
    case (2)
      call HB_Ibcast(buffer=got, count=count, datatype=int, root=n_ranks - 1, comm=world, request=request, &
        ierror=ierror)
#ifdef HB_PERSISTENT
    case (3)
      call HB_Bcast_init(buffer=got, count=count, datatype=int, root=n_ranks - 1, comm=world, info=info, &
        request=request, ierror=ierror)
#endif
    end select
    call complete
    call expect(all(got == block(n_ranks - 1)), 'bcast')

    call fill
    select case (form)
    case (1)
      call HB_Reduce(sendbuf=one, recvbuf=got, count=count, datatype=int, op=MPI_SUM, root=0, comm=world, &
        ierror=ierror)
    case (2)
      call HB_Ireduce(sendbuf=one, recvbuf=got, count=count, datatype=int, op=MPI_SUM, root=0, comm=world, &
        request=request, ierror=ierror)
#ifdef HB_PERSISTENT
    case (3)
      call HB_Reduce_init(sendbuf=one, recvbuf=got, count=count, datatype=int, op=MPI_SUM, root=0, comm=world, &
        info=info, request=request, ierror=ierror)
#endif
    end select
    call complete
    call expect(rank /= 0 .or. all(got == total(n_ranks - 1)), 'reduce')

    call fill
    select case (form)
    case (1)
      call HB_Allreduce(sendbuf=one, recvbuf=got, count=count, datatype=int, op=MPI_SUM, comm=world, &
        ierror=ierror)
    case (2)
      call HB_Iallreduce(sendbuf=one, recvbuf=got, count=count, datatype=int, op=MPI_SUM, comm=world, &
        request=request, ierror=ierror)
#ifdef HB_PERSISTENT
    case (3)
      call HB_Allreduce_init(sendbuf=one, recvbuf=got, count=count, datatype=int, op=MPI_SUM, comm=world, &
        info=info, request=request, ierror=ierror)
#endif
    end select
    call complete
    call expect(all(got == total(n_ranks - 1)), 'allreduce')

    call fill
    select case (form)
    case (1)
      call HB_Reduce_scatter_block(sendbuf=all_ones, recvbuf=got, recvcount=count, datatype=int, op=MPI_SUM, &
        comm=world, ierror=ierror)
    case (2)
      call HB_Ireduce_scatter_block(sendbuf=all_ones, recvbuf=got, recvcount=count, datatype=int, op=MPI_SUM, &
        comm=world, request=request, ierror=ierror)
#ifdef HB_PERSISTENT
    case (3)
      call HB_Reduce_scatter_block_init(sendbuf=all_ones, recvbuf=got, recvcount=count, datatype=int, op=MPI_SUM, &
        comm=world, info=info, request=request, ierror=ierror)
#endif
    end select
    call complete
    call expect(all(got == total(n_ranks - 1, rank)), 'reduce_scatter_block')

    call fill
    select case (form)
    case (1)
      call HB_Reduce_scatter(sendbuf=all_ones, recvbuf=got, recvcounts=counts, datatype=int, op=MPI_SUM, &
        comm=world, ierror=ierror)
    case (2)
      call HB_Ireduce_scatter(sendbuf=all_ones, recvbuf=got, recvcounts=counts, datatype=int, op=MPI_SUM, &
        comm=world, request=request, ierror=ierror)
#ifdef HB_PERSISTENT
    case (3)
      call HB_Reduce_scatter_init(sendbuf=all_ones, recvbuf=got, recvcounts=counts, datatype=int, op=MPI_SUM, &
        comm=world, info=info, request=request, ierror=ierror)
#endif
    end select
    call complete
    call expect(all(got == total(n_ranks - 1, rank)), 'reduce_scatter')

    call fill
    select case (form)
    case (1)
      call HB_Scan(sendbuf=one, recvbuf=got, count=count, datatype=int, op=MPI_SUM, comm=world, ierror=ierror)
    case (2)
      call HB_Iscan(sendbuf=one, recvbuf=got, count=count, datatype=int, op=MPI_SUM, comm=world, request=request, &
        ierror=ierror)
#ifdef HB_PERSISTENT
    case (3)
      call HB_Scan_init(sendbuf=one, recvbuf=got, count=count, datatype=int, op=MPI_SUM, comm=world, info=info, &
        request=request, ierror=ierror)
#endif
    end select
    call complete
    call expect(all(got == total(rank)), 'scan')

    call fill
    select case (form)
    case (1)
      call HB_Exscan(sendbuf=one, recvbuf=got, count=count, datatype=int, op=MPI_SUM, comm=world, ierror=ierror)
    case (2)
      call HB_Iexscan(sendbuf=one, recvbuf=got, count=count, datatype=int, op=MPI_SUM, comm=world, &
        request=request, ierror=ierror)
#ifdef HB_PERSISTENT
    case (3)
      call HB_Exscan_init(sendbuf=one, recvbuf=got, count=count, datatype=int, op=MPI_SUM, comm=world, info=info, &
        request=request, ierror=ierror)
#endif
    end select
    call complete
    call expect(rank == 0 .or. all(got == total(rank - 1)), 'exscan')

    call fill
    select case (form)
    case (1)
      call HB_Allgather(sendbuf=one, sendcount=count, sendtype=int, recvbuf=all_got, recvcount=count, recvtype=int, &
        comm=world, ierror=ierror)
    case (2)
      call HB_Iallgather(sendbuf=one, sendcount=count, sendtype=int, recvbuf=all_got, recvcount=count, recvtype=int, &
        comm=world, request=request, ierror=ierror)
#ifdef HB_PERSISTENT
    case (3)
      call HB_Allgather_init(sendbuf=one, sendcount=count, sendtype=int, recvbuf=all_got, recvcount=count, &
        recvtype=int, comm=world, info=info, request=request, ierror=ierror)
#endif
    end select
    call complete
    call expect_gathered(.true., 'allgather')

    call fill
    select case (form)
    case (1)
      call HB_Gather(sendbuf=one, sendcount=count, sendtype=int, recvbuf=all_got, recvcount=count, recvtype=int, &
        root=0, comm=world, ierror=ierror)
    case (2)
      call HB_Igather(sendbuf=one, sendcount=count, sendtype=int, recvbuf=all_got, recvcount=count, recvtype=int, &
        root=0, comm=world, request=request, ierror=ierror)
#ifdef HB_PERSISTENT
    case (3)
      call HB_Gather_init(sendbuf=one, sendcount=count, sendtype=int, recvbuf=all_got, recvcount=count, recvtype=int, &
        root=0, comm=world, info=info, request=request, ierror=ierror)
#endif
    end select
    call complete
    call expect_gathered(rank == 0, 'gather')

    call fill
    select case (form)
    case (1)
      call HB_Scatter(sendbuf=all_ones, sendcount=count, sendtype=int, recvbuf=got, recvcount=count, recvtype=int, &
        root=n_ranks - 1, comm=world, ierror=ierror)
    case (2)
      call HB_Iscatter(sendbuf=all_ones, sendcount=count, sendtype=int, recvbuf=got, recvcount=count, recvtype=int, &
        root=n_ranks - 1, comm=world, request=request, ierror=ierror)
#ifdef HB_PERSISTENT
    case (3)
      call HB_Scatter_init(sendbuf=all_ones, sendcount=count, sendtype=int, recvbuf=got, recvcount=count, &
        recvtype=int, root=n_ranks - 1, comm=world, info=info, request=request, ierror=ierror)
#endif
    end select
    call complete
    call expect(all(got == block(n_ranks - 1, rank)), 'scatter')

    call fill
    select case (form)
    case (1)
      call HB_Alltoall(sendbuf=all_ones, sendcount=count, sendtype=int, recvbuf=all_got, recvcount=count, &
        recvtype=int, comm=world, ierror=ierror)
    case (2)
      call HB_Ialltoall(sendbuf=all_ones, sendcount=count, sendtype=int, recvbuf=all_got, recvcount=count, &
        recvtype=int, comm=world, request=request, ierror=ierror)
#ifdef HB_PERSISTENT
    case (3)
      call HB_Alltoall_init(sendbuf=all_ones, sendcount=count, sendtype=int, recvbuf=all_got, recvcount=count, &
        recvtype=int, comm=world, info=info, request=request, ierror=ierror)
#endif
    end select
    call complete
    call expect_exchange('alltoall')

    call fill
    select case (form)
    case (1)
      call HB_Allgatherv(sendbuf=one, sendcount=count, sendtype=int, recvbuf=all_got, recvcounts=counts, &
        displs=places, recvtype=int, comm=world, ierror=ierror)
    case (2)
      call HB_Iallgatherv(sendbuf=one, sendcount=count, sendtype=int, recvbuf=all_got, recvcounts=counts, &
        displs=places, recvtype=int, comm=world, request=request, ierror=ierror)
#ifdef HB_PERSISTENT
    case (3)
      call HB_Allgatherv_init(sendbuf=one, sendcount=count, sendtype=int, recvbuf=all_got, recvcounts=counts, &
        displs=places, recvtype=int, comm=world, info=info, request=request, ierror=ierror)
#endif
    end select
    call complete
    call expect_gathered(.true., 'allgatherv')

    call fill
    select case (form)
    case (1)
      call HB_Gatherv(sendbuf=one, sendcount=count, sendtype=int, recvbuf=all_got, recvcounts=counts, &
        displs=places, recvtype=int, root=0, comm=world, ierror=ierror)
    case (2)
      call HB_Igatherv(sendbuf=one, sendcount=count, sendtype=int, recvbuf=all_got, recvcounts=counts, &
        displs=places, recvtype=int, root=0, comm=world, request=request, ierror=ierror)
#ifdef HB_PERSISTENT
    case (3)
      call HB_Gatherv_init(sendbuf=one, sendcount=count, sendtype=int, recvbuf=all_got, recvcounts=counts, &
        displs=places, recvtype=int, root=0, comm=world, info=info, request=request, ierror=ierror)
#endif
    end select
    call complete
    call expect_gathered(rank == 0, 'gatherv')

    call fill
    select case (form)
    case (1)
      call HB_Scatterv(sendbuf=all_ones, sendcounts=counts, displs=places, sendtype=int, recvbuf=got, &
        recvcount=count, recvtype=int, root=n_ranks - 1, comm=world, ierror=ierror)
    case (2)
      call HB_Iscatterv(sendbuf=all_ones, sendcounts=counts, displs=places, sendtype=int, recvbuf=got, &
        recvcount=count, recvtype=int, root=n_ranks - 1, comm=world, request=request, ierror=ierror)
#ifdef HB_PERSISTENT
    case (3)
      call HB_Scatterv_init(sendbuf=all_ones, sendcounts=counts, displs=places, sendtype=int, recvbuf=got, &
        recvcount=count, recvtype=int, root=n_ranks - 1, comm=world, info=info, request=request, ierror=ierror)
#endif
    end select
    call complete
    call expect(all(got == block(n_ranks - 1, rank)), 'scatterv')

    call fill
    select case (form)
    case (1)
      call HB_Alltoallv(sendbuf=all_ones, sendcounts=counts, sdispls=places, sendtype=int, recvbuf=all_got, &
        recvcounts=counts, rdispls=places, recvtype=int, comm=world, ierror=ierror)
    case (2)
      call HB_Ialltoallv(sendbuf=all_ones, sendcounts=counts, sdispls=places, sendtype=int, recvbuf=all_got, &
        recvcounts=counts, rdispls=places, recvtype=int, comm=world, request=request, ierror=ierror)
#ifdef HB_PERSISTENT
    case (3)
      call HB_Alltoallv_init(sendbuf=all_ones, sendcounts=counts, sdispls=places, sendtype=int, &
        recvbuf=all_got, recvcounts=counts, rdispls=places, recvtype=int, comm=world, info=info, &
        request=request, ierror=ierror)
#endif
    end select
    call complete
    call expect_exchange('alltoallv')

    call fill
    select case (form)
    case (1)
      call HB_Barrier(comm=world, ierror=ierror)
    case (2)
      call HB_Ibarrier(comm=world, request=request, ierror=ierror)
#ifdef HB_PERSISTENT
    case (3)
      call HB_Barrier_init(comm=world, info=info, request=request, ierror=ierror)
#endif
    end select
    call complete
    call expect(ierror == MPI_SUCCESS, 'barrier')
    call alltoallw
  end do
#ifndef PLAIN
  call sections
  call types_at_once
#ifdef LARGE
  call beyond_integers
#endif
#endif
  call HB_Barrier(world)
  if (rank == 0) print '(a)', 'all correct'
  flush (6)
  call MPI_Finalize(ierror)

contains

  ! Data that rank r sends, to all ranks or to rank `to`.
  function block(r, to) result(values)
    integer, intent(in) :: r
    integer, intent(in), optional :: to
    integer :: values(n)
    values = [(100 * r + i, i=1, n)]
    if (present(to)) values = values + 1000 * to
  end function

  ! The sum of the data that ranks 0 to `last` send, to all ranks or to rank `to`.
  function total(last, to) result(values)
    integer, intent(in) :: last
    integer, intent(in), optional :: to
    integer :: values(n), r
    values = 0
    do r = 0, last
      values = values + block(r, to)
    end do
  end function

  subroutine fill
    one = block(rank)
    all_ones = reshape([(block(rank, i), i=0, n_ranks - 1)], [n, n_ranks])
    got = -1
    all_got = -1
  end subroutine

  ! Completes a call; a persistent request is started twice.
  subroutine complete
    if (form == 1) return
    call expect(ierror == MPI_SUCCESS .and. request /= MPI_REQUEST_NULL, 'begin')
    if (form == 3) then
      call MPI_Start(request, ierror)
      call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
      ! The root's buffer of the bcast.
      got = merge(one, -1, rank == n_ranks - 1)
      all_got = -1
      call MPI_Start(request, ierror)
    end if
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    if (form == 3) call MPI_Request_free(request, ierror)
    call expect(ierror == MPI_SUCCESS .and. request == MPI_REQUEST_NULL, 'end')
  end subroutine

  ! Checks alltoall, alltoallv and alltoallw.
  subroutine expect_exchange(what)
    character(*), intent(in) :: what
    call expect(all(all_got == reshape([(block(i, rank), i=0, n_ranks - 1)], [n, n_ranks])), what)
  end subroutine

  subroutine expect_gathered(here, what)
    logical, intent(in) :: here
    character(*), intent(in) :: what
    if (here) call expect(all(all_got == reshape([(block(i), i=0, n_ranks - 1)], [n, n_ranks])), what)
    if (.not. here) call expect(all(all_got == -1), what)
  end subroutine

  subroutine alltoallw
    call fill
    select case (form)
    case (1)
      call HB_Alltoallw(sendbuf=all_ones, sendcounts=counts, sdispls=bytes, sendtypes=types, recvbuf=all_got, &
        recvcounts=counts, rdispls=bytes, recvtypes=types, comm=world, ierror=ierror)
    case (2)
      call HB_Ialltoallw(sendbuf=all_ones, sendcounts=counts, sdispls=bytes, sendtypes=types, &
        recvbuf=all_got, recvcounts=counts, rdispls=bytes, recvtypes=types, comm=world, request=request, &
        ierror=ierror)
#ifdef HB_PERSISTENT
    case (3)
      call HB_Alltoallw_init(sendbuf=all_ones, sendcounts=counts, sdispls=bytes, sendtypes=types, &
        recvbuf=all_got, recvcounts=counts, rdispls=bytes, recvtypes=types, comm=world, info=info, &
        request=request, ierror=ierror)
#endif
    end select
    call complete
    call expect_exchange('alltoallw')
    ! An in-place call overwrites its input, so a persistent one cannot be started twice with the same data.
    if (form == 3) return
    all_got = all_ones
    if (form == 1) call HB_Alltoallw(MPI_IN_PLACE, counts, bytes, types, all_got, counts, bytes, types, world)
    if (form == 2) call HB_Ialltoallw(MPI_IN_PLACE, counts, bytes, types, all_got, counts, bytes, types, world, &
      request, ierror)
    call complete
    call expect_exchange('alltoallw in place')
  end subroutine

#ifndef PLAIN
  ! A blocking call accepts a section with gaps. A non-blocking or persistent call refuses it, and accepts a
  ! contiguous section.
  subroutine sections
    type :: pair
      integer :: first, second
    end type
    ! 12 bytes, of which the first component has 8.
    type :: particle
      complex :: z
      integer :: id
    end type
    integer, target, asynchronous :: wide(2, n)
    integer, pointer, asynchronous :: row(:)
    type(pair), asynchronous :: pairs(n)
    type(particle), target, asynchronous :: particles(n)
    complex, pointer, asynchronous :: z(:)
    character(3), asynchronous :: words(n)
    integer :: code, failed
    wide(1, :) = block(rank)
    wide(2, :) = 7
    call HB_Allreduce(MPI_IN_PLACE, wide(1, :), count, int, MPI_SUM, world)
    call expect(all(wide(1, :) == total(n_ranks - 1)) .and. all(wide(2, :) == 7), 'section')
    call MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN, ierror)
    row => wide(1, :)
    z => particles%z
    do i = 1, 6
      if (i == 1) call HB_Iallreduce(MPI_IN_PLACE, wide(1, :), count, int, MPI_SUM, world, request, ierror)
      if (i == 2) call HB_Iallreduce(MPI_IN_PLACE, row, count, int, MPI_SUM, world, request, ierror)
      if (i == 3) call HB_Iallreduce(MPI_IN_PLACE, pairs%second, count, int, MPI_SUM, world, request, ierror)
      if (i == 4) call HB_Iallreduce(MPI_IN_PLACE, particles%z, count, MPI_COMPLEX, MPI_SUM, world, request, ierror)
      if (i == 5) call HB_Iallreduce(MPI_IN_PLACE, z, count, MPI_COMPLEX, MPI_SUM, world, request, ierror)
      if (i == 6) call HB_Ibcast(words(:)(1:2), 2 * count, MPI_CHARACTER, 0, world, request, ierror)
      call MPI_Error_class(ierror, code, failed)
      call expect(code == MPI_ERR_BUFFER .and. request == MPI_REQUEST_NULL, 'a section with gaps')
    end do
    call HB_Allreduce(one, MPI_IN_PLACE, count, int, MPI_SUM, world, ierror)
    call MPI_Error_class(ierror, code, failed)
    call expect(code == MPI_ERR_BUFFER, 'nowhere to receive')
    wide = rank
    call HB_Ibcast(wide(:, n), 2_count_kind, int, 0, world, request, ierror)
    call expect(ierror == MPI_SUCCESS, 'a section without gaps')
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call expect(all(wide(:, n) == 0) .and. all(wide(:, 1) == rank), 'a section without gaps')
    one = block(rank)
    wide = rank
    call reduce_sized(one, wide, 2)
    call expect(all(one == total(n_ranks - 1)), 'assumed size')
    call expect(all(wide(:, 1) == n_ranks * (n_ranks - 1) / 2) .and. all(wide(:, 2:) == rank), 'assumed size of rank 2')
    if (rank == 0) allocate (nothing(n * n_ranks), source=-1)
    one = block(rank)
    call HB_Igather(one, count, int, nothing, count, int, 0, world, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    if (rank == 0) call expect(all(nothing == [(block(i), i=0, n_ranks - 1)]), 'not allocated')
    call HB_Ialltoallw(all_ones(::2, :), counts, bytes, types, all_got, counts, bytes, types, world, request, ierror)
    call MPI_Error_class(ierror, code, failed)
    call expect(code == MPI_ERR_BUFFER .and. request == MPI_REQUEST_NULL, 'alltoallw of a section with gaps')
  end subroutine

  ! Arrays of assumed size are contiguous.
  subroutine reduce_sized(vector, matrix, rows)
    integer, intent(in) :: rows
    integer, target, asynchronous :: vector(*), matrix(rows, *)
    HANDLE(MPI_Request) :: requests(2)
    call HB_Iallreduce(MPI_IN_PLACE, vector, count, int, MPI_SUM, world, requests(1), ierror)
    call HB_Iallreduce(MPI_IN_PLACE, matrix, 2_count_kind, int, MPI_SUM, world, requests(2), ierror)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
  end subroutine

  ! Active requests at the same time, each with its own derived types: a whole block for some ranks, single numbers
  ! for others.
  subroutine types_at_once
    integer, parameter :: n_requests = 8
    integer, asynchronous :: received(n, n_ranks, n_requests)
    integer(count_kind), asynchronous :: numbers(n_ranks, n_requests)
    HANDLE(MPI_Datatype), asynchronous :: lists(n_ranks, n_requests)
    HANDLE(MPI_Datatype) :: whole(n_requests)
    HANDLE(MPI_Request) :: requests(n_requests)
    integer :: round, r
    do round = 1, 3
      call fill
      received = -1
      do i = 1, n_requests
        call MPI_Type_contiguous(n, int, whole(i), ierror)
        call MPI_Type_commit(whole(i), ierror)
        do r = 1, n_ranks
          lists(r, i) = merge_types(whole(i), mod(r + i, 3) /= 0)
          numbers(r, i) = merge(1_count_kind, count, mod(r + i, 3) /= 0)
        end do
      end do
      do i = 1, n_requests
        call HB_Ialltoallw(all_ones, numbers(:, i), bytes, lists(:, i), received(:, :, i), numbers(:, i), bytes, &
          lists(:, i), world, requests(i), ierror)
        call expect(ierror == MPI_SUCCESS, 'alltoallw, one of several')
      end do
      ! In reverse order.
      do i = n_requests, 1, -1
        call MPI_Wait(requests(i), MPI_STATUS_IGNORE, ierror)
        all_got = received(:, :, i)
        call expect_exchange('alltoallw of several types at once')
      end do
      do i = 1, n_requests
        call MPI_Type_free(whole(i), ierror)
      end do
    end do
  end subroutine

#ifdef LARGE
  ! Numbers that exceed default integers: hopbine serves them, and so does MPI, except before MPI 4, where they are an
  ! error.
  subroutine beyond_integers
    integer(displ_kind), parameter :: far = 2_displ_kind**31
    integer(count_kind), parameter :: many = 2_count_kind**32 + 1
    character(1), allocatable, asynchronous :: row(:)
    integer(displ_kind) :: apart(n_ranks)
    HANDLE(MPI_Datatype) :: nothing_each(n_ranks), empty
    integer :: code, failed
    counts = 1
    apart = [(i * (far / n_ranks), i=1, n_ranks)]
    allocate (row(0:far))
    call HB_Allgatherv([achar(rank)], 1_count_kind, MPI_BYTE, row, counts, apart, MPI_BYTE, world, ierror)
    call expect(ierror == MPI_SUCCESS .and. all(row(apart) == [(achar(i), i=0, n_ranks - 1)]), 'displacements')
    call MPI_Type_contiguous(0, int, empty, ierror)
    call MPI_Type_commit(empty, ierror)
    nothing_each = empty
    counts = many
    call HB_Alltoallw(all_ones, counts, bytes, nothing_each, all_got, counts, bytes, nothing_each, world, ierror)
    call MPI_Error_class(ierror, code, failed)
    call expect(code == merge(MPI_SUCCESS, MPI_ERR_COUNT, MPI_VERSION >= 4), 'counts of a call that MPI serves')
    if (MPI_VERSION < 4) then
      call HB_Bcast(got, many, empty, 0, world, ierror)
      call MPI_Error_class(ierror, code, failed)
      call expect(code == MPI_ERR_COUNT, 'a count of a call that MPI serves')
    end if
    call MPI_Type_free(empty, ierror)
  end subroutine
#endif

  function merge_types(whole, is_whole) result(chosen)
    HANDLE(MPI_Datatype), intent(in) :: whole
    logical, intent(in) :: is_whole
    HANDLE(MPI_Datatype) :: chosen
    chosen = int
    if (is_whole) chosen = whole
  end function
#endif

  subroutine expect(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (condition) return
    print '(a,i0,a,i0,3a)', 'rank ', rank, ', form ', form, ': ', what, ' is wrong'
    flush (6)
    call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  end subroutine
end program
