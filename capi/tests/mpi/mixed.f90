! Lists of requests from Fortran, whose indices begin with 1: of a collective and of messages, an inactive and a null
! one, with mpif.h, mpi or mpi_f08, completed by every call that takes a list. Rank 0 prints "all correct".
program mixed
#ifdef USE_mpi_f08
  use mpi_f08
#define HANDLE type(MPI_Request)
#define STATUS_LIST type(MPI_Status) :: statuses(n)
#define STATUS_AT(i) statuses(i)
#define FIELD(i, name) statuses(i)%name
#endif
#ifdef USE_mpi
  use mpi
#endif
  implicit none
#ifdef USE_mpif
  include 'mpif.h'
#endif
#ifndef USE_mpi_f08
#define HANDLE integer
#define STATUS_LIST integer :: statuses(MPI_STATUS_SIZE, n)
#define STATUS_AT(i) statuses(:, i)
#define FIELD(i, name) statuses(name, i)
#endif
  integer, parameter :: n = 5, total = 2, got = 3, given = 5, tag = 7
  HANDLE :: requests(n)
  STATUS_LIST
  integer, asynchronous :: in, out, from, to, nothing(1)
  integer :: rank, n_ranks, ierror, how, round, at, k, n_done, n_left, places(n), next, previous
  logical :: flag, is_done(n), ignores

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, n_ranks, ierror)
  next = mod(rank + 1, n_ranks)
  previous = mod(rank + n_ranks - 1, n_ranks)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  requests = MPI_REQUEST_NULL
  call MPI_Recv_init(nothing, 0, MPI_INTEGER, next, tag + 1, MPI_COMM_WORLD, requests(1), ierror)
  do round = 1, 20
    do how = 1, 12
      ignores = how > 6
      in = rank + round
      to = 100 * rank + round
      call MPI_Iallreduce(in, out, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(total), ierror)
      call MPI_Irecv(from, 1, MPI_INTEGER, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, requests(got), ierror)
      call MPI_Isend(to, 1, MPI_INTEGER, previous, tag, MPI_COMM_WORLD, requests(given), ierror)
      is_done = .false.
      n_left = 3
      do while (n_left > 0)
        n_done = 1
        select case (mod(how, 6))
        case (0)
          if (ignores) call MPI_Waitany(n, requests, places(1), MPI_STATUS_IGNORE, ierror)
          if (.not. ignores) call MPI_Waitany(n, requests, places(1), STATUS_AT(1), ierror)
        case (1)
          if (ignores) call MPI_Testany(n, requests, places(1), flag, MPI_STATUS_IGNORE, ierror)
          if (.not. ignores) call MPI_Testany(n, requests, places(1), flag, STATUS_AT(1), ierror)
          if (.not. flag) n_done = 0
        case (2)
          if (ignores) call MPI_Waitsome(n, requests, n_done, places, MPI_STATUSES_IGNORE, ierror)
          if (.not. ignores) call MPI_Waitsome(n, requests, n_done, places, statuses, ierror)
        case (3)
          if (ignores) call MPI_Testsome(n, requests, n_done, places, MPI_STATUSES_IGNORE, ierror)
          if (.not. ignores) call MPI_Testsome(n, requests, n_done, places, statuses, ierror)
        case (4)
          if (ignores) call MPI_Waitall(n, requests, MPI_STATUSES_IGNORE, ierror)
          if (.not. ignores) call MPI_Waitall(n, requests, statuses, ierror)
        case default
          if (ignores) call MPI_Testall(n, requests, flag, MPI_STATUSES_IGNORE, ierror)
          if (.not. ignores) call MPI_Testall(n, requests, flag, statuses, ierror)
          if (.not. flag) n_done = 0
        end select
        if (mod(how, 6) >= 4) then
          ! All requests are done, each at its own index.
          n_done = 3 * n_done
          places(1:3) = [total, got, given]
        end if
        do k = 1, n_done
          at = places(k)
          call expect(at == total .or. at == got .or. at == given, 'place')
          call expect(.not. is_done(at) .and. requests(at) == MPI_REQUEST_NULL, 'ended once')
          is_done(at) = .true.
          if (at /= got .or. ignores) cycle
          if (mod(how, 6) < 4) at = k
          call expect(FIELD(at, MPI_SOURCE) == next .and. FIELD(at, MPI_TAG) == tag, 'status')
        end do
        n_left = n_left - n_done
      end do
      call expect(out == n_ranks * round + n_ranks * (n_ranks - 1) / 2 .and. from == 100 * next + round, 'data')
      call MPI_Waitany(n, requests, at, MPI_STATUS_IGNORE, ierror)
      call expect(requests(1) /= MPI_REQUEST_NULL, 'nothing left')
    end do
  end do
  call MPI_Request_free(requests(1), ierror)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  if (rank == 0) print '(a)', 'all correct'
  call MPI_Finalize(ierror)
contains
  subroutine expect(is_so, what)
    logical, intent(in) :: is_so
    character(*), intent(in) :: what
    if (is_so) return
    print '(a,i0,2a,i0)', 'rank ', rank, ': not right: ' // what, ', how ', how
    call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  end subroutine
end program
