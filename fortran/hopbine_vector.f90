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
  public :: hopbine_reduce_scatterv, hopbine_ireduce_scatterv, hopbine_reduce_scatterv_init
  public :: hopbine_alltoallv, hopbine_ialltoallv, hopbine_alltoallv_init

contains

  ! Everyone gets everyone's block: counts(x) elements at displs(x), from 0, of recv.
  subroutine hopbine_allgatherv(send, count, recv, counts, displs, type, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer(hopbine_count), intent(in) :: count
    integer(hopbine_count), intent(in) :: counts(*), displs(*)
    integer(c_int), intent(in) :: type
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_allgatherv_c(at(send), count, at(recv), counts, displs, type, comm), ierror)
  end subroutine

  subroutine hopbine_iallgatherv(send, count, recv, counts, displs, type, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: send
    type(*), dimension(..), target, asynchronous :: recv
    integer(hopbine_count), intent(in) :: count
    integer(hopbine_count), intent(in) :: counts(*), displs(*)
    integer(c_int), intent(in) :: type
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_iallgatherv_c(kept(send), count, kept(recv), counts, displs, type, comm, request), ierror)
  end subroutine

  subroutine hopbine_allgatherv_init(send, count, recv, counts, displs, type, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: send
    type(*), dimension(..), target, asynchronous :: recv
    integer(hopbine_count), intent(in) :: count
    integer(hopbine_count), intent(in) :: counts(*), displs(*)
    integer(c_int), intent(in) :: type
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_allgatherv_init_c(kept(send), count, kept(recv), counts, displs, type, comm, request), ierror)
  end subroutine

  ! The root gets everyone's block.
  subroutine hopbine_gatherv(send, count, recv, counts, displs, type, root, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer(hopbine_count), intent(in) :: count
    integer(hopbine_count), intent(in) :: counts(*), displs(*)
    integer(c_int), intent(in) :: type, root
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_gatherv_c(at(send), count, at(recv), counts, displs, type, root, comm), ierror)
  end subroutine

  subroutine hopbine_igatherv(send, count, recv, counts, displs, type, root, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: send
    type(*), dimension(..), target, asynchronous :: recv
    integer(hopbine_count), intent(in) :: count
    integer(hopbine_count), intent(in) :: counts(*), displs(*)
    integer(c_int), intent(in) :: type, root
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_igatherv_c(kept(send), count, kept(recv), counts, displs, type, root, comm, request), ierror)
  end subroutine

  subroutine hopbine_gatherv_init(send, count, recv, counts, displs, type, root, comm, request, ierror) &
    bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: send
    type(*), dimension(..), target, asynchronous :: recv
    integer(hopbine_count), intent(in) :: count
    integer(hopbine_count), intent(in) :: counts(*), displs(*)
    integer(c_int), intent(in) :: type, root
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_gatherv_init_c(kept(send), count, kept(recv), counts, displs, type, root, comm, request), &
      ierror)
  end subroutine

  ! Rank x gets the root's block x.
  subroutine hopbine_scatterv(send, counts, displs, recv, count, type, root, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer(hopbine_count), intent(in) :: count
    integer(hopbine_count), intent(in) :: counts(*), displs(*)
    integer(c_int), intent(in) :: type, root
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_scatterv_c(at(send), counts, displs, at(recv), count, type, root, comm), ierror)
  end subroutine

  subroutine hopbine_iscatterv(send, counts, displs, recv, count, type, root, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: send
    type(*), dimension(..), target, asynchronous :: recv
    integer(hopbine_count), intent(in) :: count
    integer(hopbine_count), intent(in) :: counts(*), displs(*)
    integer(c_int), intent(in) :: type, root
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_iscatterv_c(kept(send), counts, displs, kept(recv), count, type, root, comm, request), ierror)
  end subroutine

  subroutine hopbine_scatterv_init(send, counts, displs, recv, count, type, root, comm, request, ierror) &
    bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: send
    type(*), dimension(..), target, asynchronous :: recv
    integer(hopbine_count), intent(in) :: count
    integer(hopbine_count), intent(in) :: counts(*), displs(*)
    integer(c_int), intent(in) :: type, root
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_scatterv_init_c(kept(send), counts, displs, kept(recv), count, type, root, comm, request), &
      ierror)
  end subroutine

  ! Rank x gets the combination of all blocks x, of counts(x) elements.
  subroutine hopbine_reduce_scatterv(send, recv, counts, type, op, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer(hopbine_count), intent(in) :: counts(*)
    integer(c_int), intent(in) :: type, op
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_reduce_scatterv_c(at(send), at(recv), counts, type, op, comm), ierror)
  end subroutine

  subroutine hopbine_ireduce_scatterv(send, recv, counts, type, op, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: send
    type(*), dimension(..), target, asynchronous :: recv
    integer(hopbine_count), intent(in) :: counts(*)
    integer(c_int), intent(in) :: type, op
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_ireduce_scatterv_c(kept(send), kept(recv), counts, type, op, comm, request), ierror)
  end subroutine

  subroutine hopbine_reduce_scatterv_init(send, recv, counts, type, op, comm, request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: send
    type(*), dimension(..), target, asynchronous :: recv
    integer(hopbine_count), intent(in) :: counts(*)
    integer(c_int), intent(in) :: type, op
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_reduce_scatterv_init_c(kept(send), kept(recv), counts, type, op, comm, request), ierror)
  end subroutine

  ! Rank x gets everyone's block x.
  subroutine hopbine_alltoallv(send, send_counts, send_displs, recv, recv_counts, recv_displs, type, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer(hopbine_count), intent(in) :: send_counts(*), send_displs(*), recv_counts(*), recv_displs(*)
    integer(c_int), intent(in) :: type
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_alltoallv_c(at(send), send_counts, send_displs, at(recv), recv_counts, recv_displs, type, comm), &
      ierror)
  end subroutine

  subroutine hopbine_ialltoallv(send, send_counts, send_displs, recv, recv_counts, recv_displs, type, comm, request, &
    ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: send
    type(*), dimension(..), target, asynchronous :: recv
    integer(hopbine_count), intent(in) :: send_counts(*), send_displs(*), recv_counts(*), recv_displs(*)
    integer(c_int), intent(in) :: type
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_ialltoallv_c(kept(send), send_counts, send_displs, kept(recv), recv_counts, recv_displs, type, &
      comm, request), ierror)
  end subroutine

  subroutine hopbine_alltoallv_init(send, send_counts, send_displs, recv, recv_counts, recv_displs, type, comm, &
    request, ierror) bind(C, name="")
    type(*), dimension(..), target, asynchronous, intent(in) :: send
    type(*), dimension(..), target, asynchronous :: recv
    integer(hopbine_count), intent(in) :: send_counts(*), send_displs(*), recv_counts(*), recv_displs(*)
    integer(c_int), intent(in) :: type
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_alltoallv_init_c(kept(send), send_counts, send_displs, kept(recv), recv_counts, recv_displs, &
      type, comm, request), ierror)
  end subroutine

end module hopbine_vector
