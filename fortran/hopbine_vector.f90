! The vector forms of the module hopbine, whose blocks may differ in size.
! Generated from src/comm/forms/table.rs: `HOPBINE_TEST_BLESS=1 cargo test -p hopbine-capi --test generated`
! writes it.
module hopbine_vector
  use, intrinsic :: iso_c_binding, only: c_int
  use hopbine_base, only: at, done, hopbine_count, hopbine_handle, kept
  use hopbine_c_calls
  implicit none
  private
  public :: hopbine_allgatherv, hopbine_iallgatherv, hopbine_allgatherv_init
  public :: hopbine_gatherv, hopbine_igatherv, hopbine_gatherv_init
  public :: hopbine_scatterv, hopbine_iscatterv, hopbine_scatterv_init
  public :: hopbine_reduce_scatter, hopbine_ireduce_scatter, hopbine_reduce_scatter_init
  public :: hopbine_alltoallv, hopbine_ialltoallv, hopbine_alltoallv_init

contains

  ! Everyone gets everyone's block: counts(x) elements at displs(x), from 0, of recv.
  subroutine hopbine_allgatherv(sendbuf, count, recvbuf, counts, displs, datatype, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: sendbuf
    type(*), dimension(..), contiguous, target :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(hopbine_count), intent(in) :: counts(*), displs(*)
    integer(c_int), intent(in) :: datatype
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_allgatherv_c(at(sendbuf), count, at(recvbuf), counts, displs, datatype, comm), ierror)
  end subroutine

  subroutine hopbine_iallgatherv(sendbuf, count, recvbuf, counts, displs, datatype, comm, request, ierror) &
    bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(hopbine_count), intent(in) :: counts(*), displs(*)
    integer(c_int), intent(in) :: datatype
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_iallgatherv_c(kept(sendbuf), count, kept(recvbuf), counts, displs, datatype, comm, request), &
      ierror)
  end subroutine

  subroutine hopbine_allgatherv_init(sendbuf, count, recvbuf, counts, displs, datatype, comm, request, ierror) &
    bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(hopbine_count), intent(in) :: counts(*), displs(*)
    integer(c_int), intent(in) :: datatype
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_allgatherv_init_c(kept(sendbuf), count, kept(recvbuf), counts, displs, datatype, comm, request), &
      ierror)
  end subroutine

  ! The root gets everyone's block.
  subroutine hopbine_gatherv(sendbuf, count, recvbuf, counts, displs, datatype, root, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: sendbuf
    type(*), dimension(..), contiguous, target :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(hopbine_count), intent(in) :: counts(*), displs(*)
    integer(c_int), intent(in) :: datatype, root
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_gatherv_c(at(sendbuf), count, at(recvbuf), counts, displs, datatype, root, comm), ierror)
  end subroutine

  subroutine hopbine_igatherv(sendbuf, count, recvbuf, counts, displs, datatype, root, comm, request, ierror) &
    bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(hopbine_count), intent(in) :: counts(*), displs(*)
    integer(c_int), intent(in) :: datatype, root
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_igatherv_c(kept(sendbuf), count, kept(recvbuf), counts, displs, datatype, root, comm, request), &
      ierror)
  end subroutine

  subroutine hopbine_gatherv_init(sendbuf, count, recvbuf, counts, displs, datatype, root, comm, request, ierror) &
    bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(hopbine_count), intent(in) :: counts(*), displs(*)
    integer(c_int), intent(in) :: datatype, root
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_gatherv_init_c(kept(sendbuf), count, kept(recvbuf), counts, displs, datatype, root, comm, &
      request), ierror)
  end subroutine

  ! Rank x gets the root's block x.
  subroutine hopbine_scatterv(sendbuf, counts, displs, recvbuf, count, datatype, root, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: sendbuf
    type(*), dimension(..), contiguous, target :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(hopbine_count), intent(in) :: counts(*), displs(*)
    integer(c_int), intent(in) :: datatype, root
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_scatterv_c(at(sendbuf), counts, displs, at(recvbuf), count, datatype, root, comm), ierror)
  end subroutine

  subroutine hopbine_iscatterv(sendbuf, counts, displs, recvbuf, count, datatype, root, comm, request, ierror) &
    bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(hopbine_count), intent(in) :: counts(*), displs(*)
    integer(c_int), intent(in) :: datatype, root
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_iscatterv_c(kept(sendbuf), counts, displs, kept(recvbuf), count, datatype, root, comm, request), &
      ierror)
  end subroutine

  subroutine hopbine_scatterv_init(sendbuf, counts, displs, recvbuf, count, datatype, root, comm, request, ierror) &
    bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: count
    integer(hopbine_count), intent(in) :: counts(*), displs(*)
    integer(c_int), intent(in) :: datatype, root
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_scatterv_init_c(kept(sendbuf), counts, displs, kept(recvbuf), count, datatype, root, comm, &
      request), ierror)
  end subroutine

  ! Rank x gets the combination of all blocks x, of counts(x) elements.
  subroutine hopbine_reduce_scatter(sendbuf, recvbuf, counts, datatype, op, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: sendbuf
    type(*), dimension(..), contiguous, target :: recvbuf
    integer(hopbine_count), intent(in) :: counts(*)
    integer(c_int), intent(in) :: datatype, op
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_reduce_scatter_c(at(sendbuf), at(recvbuf), counts, datatype, op, comm), ierror)
  end subroutine

  subroutine hopbine_ireduce_scatter(sendbuf, recvbuf, counts, datatype, op, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: counts(*)
    integer(c_int), intent(in) :: datatype, op
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_ireduce_scatter_c(kept(sendbuf), kept(recvbuf), counts, datatype, op, comm, request), ierror)
  end subroutine

  subroutine hopbine_reduce_scatter_init(sendbuf, recvbuf, counts, datatype, op, comm, request, ierror) &
    bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: counts(*)
    integer(c_int), intent(in) :: datatype, op
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_reduce_scatter_init_c(kept(sendbuf), kept(recvbuf), counts, datatype, op, comm, request), &
      ierror)
  end subroutine

  ! Rank x gets everyone's block x.
  subroutine hopbine_alltoallv(sendbuf, sendcounts, sdispls, recvbuf, recvcounts, rdispls, datatype, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: sendbuf
    type(*), dimension(..), contiguous, target :: recvbuf
    integer(hopbine_count), intent(in) :: sendcounts(*), sdispls(*), recvcounts(*), rdispls(*)
    integer(c_int), intent(in) :: datatype
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_alltoallv_c(at(sendbuf), sendcounts, sdispls, at(recvbuf), recvcounts, rdispls, datatype, comm), &
      ierror)
  end subroutine

  subroutine hopbine_ialltoallv(sendbuf, sendcounts, sdispls, recvbuf, recvcounts, rdispls, datatype, comm, request, &
    ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: sendcounts(*), sdispls(*), recvcounts(*), rdispls(*)
    integer(c_int), intent(in) :: datatype
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_ialltoallv_c(kept(sendbuf), sendcounts, sdispls, kept(recvbuf), recvcounts, rdispls, datatype, &
      comm, request), ierror)
  end subroutine

  subroutine hopbine_alltoallv_init(sendbuf, sendcounts, sdispls, recvbuf, recvcounts, rdispls, datatype, comm, &
    request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: sendbuf
    type(*), dimension(..), target, asynchronous :: recvbuf
    integer(hopbine_count), intent(in) :: sendcounts(*), sdispls(*), recvcounts(*), rdispls(*)
    integer(c_int), intent(in) :: datatype
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_alltoallv_init_c(kept(sendbuf), sendcounts, sdispls, kept(recvbuf), recvcounts, rdispls, &
      datatype, comm, request), ierror)
  end subroutine

end module hopbine_vector
