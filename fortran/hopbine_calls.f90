! The collectives of the module hopbine whose blocks have one size.
! Generated from src/comm/forms/table.rs: `HOPBINE_TEST_BLESS=1 cargo test -p hopbine-capi --test generated`
! writes it.
module hopbine_calls
  use, intrinsic :: iso_c_binding, only: c_int
  use hopbine_base, only: at, done, hopbine_count, hopbine_handle, kept
  use hopbine_c_calls
  implicit none
  private
  public :: hopbine_allreduce, hopbine_iallreduce, hopbine_allreduce_init
  public :: hopbine_reduce, hopbine_ireduce, hopbine_reduce_init
  public :: hopbine_reduce_scatter_block, hopbine_ireduce_scatter_block, hopbine_reduce_scatter_block_init
  public :: hopbine_scan, hopbine_iscan, hopbine_scan_init
  public :: hopbine_exscan, hopbine_iexscan, hopbine_exscan_init
  public :: hopbine_bcast, hopbine_ibcast, hopbine_bcast_init
  public :: hopbine_allgather, hopbine_iallgather, hopbine_allgather_init
  public :: hopbine_gather, hopbine_igather, hopbine_gather_init
  public :: hopbine_scatter, hopbine_iscatter, hopbine_scatter_init
  public :: hopbine_alltoall, hopbine_ialltoall, hopbine_alltoall_init
  public :: hopbine_barrier, hopbine_ibarrier, hopbine_barrier_init

contains

  ! Everyone gets the combination of all vectors.
  subroutine hopbine_allreduce(sendbuf, recvbuf, count, datatype, op, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: sendbuf
    type(*), dimension(..), contiguous, target :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, op
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_allreduce_c(at(sendbuf), at(recvbuf), count, datatype, op, comm), ierror)
  end subroutine

  subroutine hopbine_iallreduce(sendbuf, recvbuf, count, datatype, op, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, op
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_iallreduce_c(kept(sendbuf), kept(recvbuf), count, datatype, op, comm, request), ierror)
  end subroutine

  subroutine hopbine_allreduce_init(sendbuf, recvbuf, count, datatype, op, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, op
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_allreduce_init_c(kept(sendbuf), kept(recvbuf), count, datatype, op, comm, request), ierror)
  end subroutine

  ! The root gets the combination of all vectors.
  subroutine hopbine_reduce(sendbuf, recvbuf, count, datatype, op, root, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: sendbuf
    type(*), dimension(..), contiguous, target :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, op, root
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_reduce_c(at(sendbuf), at(recvbuf), count, datatype, op, root, comm), ierror)
  end subroutine

  subroutine hopbine_ireduce(sendbuf, recvbuf, count, datatype, op, root, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, op, root
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_ireduce_c(kept(sendbuf), kept(recvbuf), count, datatype, op, root, comm, request), ierror)
  end subroutine

  subroutine hopbine_reduce_init(sendbuf, recvbuf, count, datatype, op, root, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, op, root
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_reduce_init_c(kept(sendbuf), kept(recvbuf), count, datatype, op, root, comm, request), ierror)
  end subroutine

  ! Rank x gets the combination of all blocks x.
  subroutine hopbine_reduce_scatter_block(sendbuf, recvbuf, count, datatype, op, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: sendbuf
    type(*), dimension(..), contiguous, target :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, op
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_reduce_scatter_block_c(at(sendbuf), at(recvbuf), count, datatype, op, comm), ierror)
  end subroutine

  subroutine hopbine_ireduce_scatter_block(sendbuf, recvbuf, count, datatype, op, comm, request, ierror) &
    bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, op
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_ireduce_scatter_block_c(kept(sendbuf), kept(recvbuf), count, datatype, op, comm, request), &
      ierror)
  end subroutine

  subroutine hopbine_reduce_scatter_block_init(sendbuf, recvbuf, count, datatype, op, comm, request, ierror) &
    bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, op
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_reduce_scatter_block_init_c(kept(sendbuf), kept(recvbuf), count, datatype, op, comm, request), &
      ierror)
  end subroutine

  ! Rank x gets the combination of the vectors of ranks 0 to x.
  subroutine hopbine_scan(sendbuf, recvbuf, count, datatype, op, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: sendbuf
    type(*), dimension(..), contiguous, target :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, op
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_scan_c(at(sendbuf), at(recvbuf), count, datatype, op, comm), ierror)
  end subroutine

  subroutine hopbine_iscan(sendbuf, recvbuf, count, datatype, op, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, op
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_iscan_c(kept(sendbuf), kept(recvbuf), count, datatype, op, comm, request), ierror)
  end subroutine

  subroutine hopbine_scan_init(sendbuf, recvbuf, count, datatype, op, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, op
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_scan_init_c(kept(sendbuf), kept(recvbuf), count, datatype, op, comm, request), ierror)
  end subroutine

  ! The same without its own; the buffer of rank 0 stays as it is.
  subroutine hopbine_exscan(sendbuf, recvbuf, count, datatype, op, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: sendbuf
    type(*), dimension(..), contiguous, target :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, op
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_exscan_c(at(sendbuf), at(recvbuf), count, datatype, op, comm), ierror)
  end subroutine

  subroutine hopbine_iexscan(sendbuf, recvbuf, count, datatype, op, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, op
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_iexscan_c(kept(sendbuf), kept(recvbuf), count, datatype, op, comm, request), ierror)
  end subroutine

  subroutine hopbine_exscan_init(sendbuf, recvbuf, count, datatype, op, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, op
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_exscan_init_c(kept(sendbuf), kept(recvbuf), count, datatype, op, comm, request), ierror)
  end subroutine

  ! Everyone gets the root's vector.
  subroutine hopbine_bcast(buffer, count, datatype, root, comm, ierror)
    type(*), dimension(..), contiguous, target :: buffer
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, root
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_bcast_c(at(buffer), count, datatype, root, comm), ierror)
  end subroutine

  subroutine hopbine_ibcast(buffer, count, datatype, root, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous :: buffer
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, root
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_ibcast_c(kept(buffer), count, datatype, root, comm, request), ierror)
  end subroutine

  subroutine hopbine_bcast_init(buffer, count, datatype, root, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous :: buffer
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, root
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_bcast_init_c(kept(buffer), count, datatype, root, comm, request), ierror)
  end subroutine

  ! Everyone gets everyone's block.
  subroutine hopbine_allgather(sendbuf, recvbuf, count, datatype, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: sendbuf
    type(*), dimension(..), contiguous, target :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_allgather_c(at(sendbuf), at(recvbuf), count, datatype, comm), ierror)
  end subroutine

  subroutine hopbine_iallgather(sendbuf, recvbuf, count, datatype, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_iallgather_c(kept(sendbuf), kept(recvbuf), count, datatype, comm, request), ierror)
  end subroutine

  subroutine hopbine_allgather_init(sendbuf, recvbuf, count, datatype, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_allgather_init_c(kept(sendbuf), kept(recvbuf), count, datatype, comm, request), ierror)
  end subroutine

  ! The root gets everyone's block.
  subroutine hopbine_gather(sendbuf, recvbuf, count, datatype, root, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: sendbuf
    type(*), dimension(..), contiguous, target :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, root
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_gather_c(at(sendbuf), at(recvbuf), count, datatype, root, comm), ierror)
  end subroutine

  subroutine hopbine_igather(sendbuf, recvbuf, count, datatype, root, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, root
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_igather_c(kept(sendbuf), kept(recvbuf), count, datatype, root, comm, request), ierror)
  end subroutine

  subroutine hopbine_gather_init(sendbuf, recvbuf, count, datatype, root, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, root
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_gather_init_c(kept(sendbuf), kept(recvbuf), count, datatype, root, comm, request), ierror)
  end subroutine

  ! Rank x gets the root's block x.
  subroutine hopbine_scatter(sendbuf, recvbuf, count, datatype, root, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: sendbuf
    type(*), dimension(..), contiguous, target :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, root
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_scatter_c(at(sendbuf), at(recvbuf), count, datatype, root, comm), ierror)
  end subroutine

  subroutine hopbine_iscatter(sendbuf, recvbuf, count, datatype, root, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, root
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_iscatter_c(kept(sendbuf), kept(recvbuf), count, datatype, root, comm, request), ierror)
  end subroutine

  subroutine hopbine_scatter_init(sendbuf, recvbuf, count, datatype, root, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype, root
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_scatter_init_c(kept(sendbuf), kept(recvbuf), count, datatype, root, comm, request), ierror)
  end subroutine

  ! Rank x gets everyone's block x.
  subroutine hopbine_alltoall(sendbuf, recvbuf, count, datatype, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: sendbuf
    type(*), dimension(..), contiguous, target :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_alltoall_c(at(sendbuf), at(recvbuf), count, datatype, comm), ierror)
  end subroutine

  subroutine hopbine_ialltoall(sendbuf, recvbuf, count, datatype, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_ialltoall_c(kept(sendbuf), kept(recvbuf), count, datatype, comm, request), ierror)
  end subroutine

  subroutine hopbine_alltoall_init(sendbuf, recvbuf, count, datatype, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(c_int), intent(in) :: datatype
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_alltoall_init_c(kept(sendbuf), kept(recvbuf), count, datatype, comm, request), ierror)
  end subroutine

  ! Ends when all ranks have called it.
  subroutine hopbine_barrier(comm, ierror)
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_barrier_c(comm), ierror)
  end subroutine

  subroutine hopbine_ibarrier(comm, request, ierror)
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_ibarrier_c(comm, request), ierror)
  end subroutine

  subroutine hopbine_barrier_init(comm, request, ierror)
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_barrier_init_c(comm, request), ierror)
  end subroutine

end module hopbine_calls
