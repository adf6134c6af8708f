! MPI's collectives by hopbine, in Fortran: HB_Allreduce in place of MPI_Allreduce, and so on, for
! programs that use the module mpi_f08 (type(MPI_Comm) handles) or mpi (integer handles). Arguments,
! meaning and errors are MPI's; buffers must be contiguous or are copied by the compiler.
!
! To be compiled with the MPI's own Fortran compiler, as mpifort.
module hopbine_mpi
  use, intrinsic :: iso_c_binding, only: c_associated, c_intptr_t, c_loc, c_null_ptr, c_ptr
  use mpi, only: in_place_of_mpi => MPI_IN_PLACE, bottom_of_mpi => MPI_BOTTOM
  use mpi_f08, only: in_place_of_f08 => MPI_IN_PLACE, bottom_of_f08 => MPI_BOTTOM, MPI_Comm, MPI_Datatype, MPI_Op
  use hopbine_mpi_c
  implicit none
  private
  public :: HB_Init, HB_Barrier, HB_Bcast, HB_Reduce, HB_Allreduce, HB_Reduce_scatter_block
  public :: HB_Reduce_scatter, HB_Scan, HB_Exscan, HB_Allgather, HB_Gather, HB_Scatter
  public :: HB_Alltoall, HB_Allgatherv, HB_Gatherv, HB_Scatterv, HB_Alltoallv

  interface HB_Barrier
    module procedure barrier_f08, barrier_integer
  end interface
  interface HB_Bcast
    module procedure bcast_f08, bcast_integer
  end interface
  interface HB_Reduce
    module procedure reduce_f08, reduce_integer
  end interface
  interface HB_Allreduce
    module procedure allreduce_f08, allreduce_integer
  end interface
  interface HB_Reduce_scatter_block
    module procedure reduce_scatter_block_f08, reduce_scatter_block_integer
  end interface
  interface HB_Reduce_scatter
    module procedure reduce_scatter_f08, reduce_scatter_integer
  end interface
  interface HB_Scan
    module procedure scan_f08, scan_integer
  end interface
  interface HB_Exscan
    module procedure exscan_f08, exscan_integer
  end interface
  interface HB_Allgather
    module procedure allgather_f08, allgather_integer
  end interface
  interface HB_Gather
    module procedure gather_f08, gather_integer
  end interface
  interface HB_Scatter
    module procedure scatter_f08, scatter_integer
  end interface
  interface HB_Alltoall
    module procedure alltoall_f08, alltoall_integer
  end interface
  interface HB_Allgatherv
    module procedure allgatherv_f08, allgatherv_integer
  end interface
  interface HB_Gatherv
    module procedure gatherv_f08, gatherv_integer
  end interface
  interface HB_Scatterv
    module procedure scatterv_f08, scatterv_integer
  end interface
  interface HB_Alltoallv
    module procedure alltoallv_f08, alltoallv_integer
  end interface

contains

  ! The address of a buffer, with numbers for MPI's own that C can tell.
  function at(buffer) result(address)
    type(*), dimension(..), target, intent(in) :: buffer
    type(c_ptr) :: address
    address = c_loc(buffer)
    if (is(address, in_place_of_mpi) .or. is(address, in_place_of_f08)) then
      address = transfer(-1_c_intptr_t, c_null_ptr)
    else if (is(address, bottom_of_mpi) .or. is(address, bottom_of_f08)) then
      address = transfer(-2_c_intptr_t, c_null_ptr)
    end if
  end function

  function is(address, variable) result(same)
    type(c_ptr), intent(in) :: address
    type(*), dimension(..), target, intent(in) :: variable
    logical :: same
    same = c_associated(address, c_loc(variable))
  end function

  subroutine give(code, ierror)
    integer, intent(in) :: code
    integer, intent(out), optional :: ierror
    if (present(ierror)) ierror = code
  end subroutine

  subroutine HB_Init(ierror)
    integer, intent(out), optional :: ierror
    call give(hb_init_c(), ierror)
  end subroutine

  subroutine barrier_f08(comm, ierror)
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out), optional :: ierror
    call give(hb_barrier_c(comm%mpi_val), ierror)
  end subroutine

  subroutine barrier_integer(comm, ierror)
    integer, intent(in) :: comm
    integer, intent(out), optional :: ierror
    call give(hb_barrier_c(comm), ierror)
  end subroutine

  subroutine bcast_f08(buffer, count, type, root, comm, ierror)
    type(*), dimension(..), contiguous, target :: buffer
    integer, intent(in) :: count, root
    type(MPI_Datatype), intent(in) :: type
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out), optional :: ierror
    call give(hb_bcast_c(at(buffer), count, type%mpi_val, root, comm%mpi_val), ierror)
  end subroutine

  subroutine bcast_integer(buffer, count, type, root, comm, ierror)
    type(*), dimension(..), contiguous, target :: buffer
    integer, intent(in) :: count, type, root, comm
    integer, intent(out), optional :: ierror
    call give(hb_bcast_c(at(buffer), count, type, root, comm), ierror)
  end subroutine

  subroutine reduce_f08(send, recv, count, type, op, root, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count, root
    type(MPI_Datatype), intent(in) :: type
    type(MPI_Op), intent(in) :: op
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out), optional :: ierror
    call give(hb_reduce_c(at(send), at(recv), count, type%mpi_val, op%mpi_val, root, comm%mpi_val), ierror)
  end subroutine

  subroutine reduce_integer(send, recv, count, type, op, root, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count, type, op, root, comm
    integer, intent(out), optional :: ierror
    call give(hb_reduce_c(at(send), at(recv), count, type, op, root, comm), ierror)
  end subroutine

  subroutine allreduce_f08(send, recv, count, type, op, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count
    type(MPI_Datatype), intent(in) :: type
    type(MPI_Op), intent(in) :: op
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out), optional :: ierror
    call give(hb_allreduce_c(at(send), at(recv), count, type%mpi_val, op%mpi_val, comm%mpi_val), ierror)
  end subroutine

  subroutine allreduce_integer(send, recv, count, type, op, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count, type, op, comm
    integer, intent(out), optional :: ierror
    call give(hb_allreduce_c(at(send), at(recv), count, type, op, comm), ierror)
  end subroutine

  subroutine reduce_scatter_block_f08(send, recv, count, type, op, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count
    type(MPI_Datatype), intent(in) :: type
    type(MPI_Op), intent(in) :: op
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out), optional :: ierror
    call give(hb_reduce_scatter_block_c(at(send), at(recv), count, type%mpi_val, op%mpi_val, comm%mpi_val), &
      ierror)
  end subroutine

  subroutine reduce_scatter_block_integer(send, recv, count, type, op, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count, type, op, comm
    integer, intent(out), optional :: ierror
    call give(hb_reduce_scatter_block_c(at(send), at(recv), count, type, op, comm), ierror)
  end subroutine

  subroutine reduce_scatter_f08(send, recv, counts, type, op, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: counts(*)
    type(MPI_Datatype), intent(in) :: type
    type(MPI_Op), intent(in) :: op
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out), optional :: ierror
    call give(hb_reduce_scatter_c(at(send), at(recv), counts, type%mpi_val, op%mpi_val, comm%mpi_val), ierror)
  end subroutine

  subroutine reduce_scatter_integer(send, recv, counts, type, op, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: type, op, comm, counts(*)
    integer, intent(out), optional :: ierror
    call give(hb_reduce_scatter_c(at(send), at(recv), counts, type, op, comm), ierror)
  end subroutine

  subroutine scan_f08(send, recv, count, type, op, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count
    type(MPI_Datatype), intent(in) :: type
    type(MPI_Op), intent(in) :: op
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out), optional :: ierror
    call give(hb_scan_c(at(send), at(recv), count, type%mpi_val, op%mpi_val, comm%mpi_val), ierror)
  end subroutine

  subroutine scan_integer(send, recv, count, type, op, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count, type, op, comm
    integer, intent(out), optional :: ierror
    call give(hb_scan_c(at(send), at(recv), count, type, op, comm), ierror)
  end subroutine

  subroutine exscan_f08(send, recv, count, type, op, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count
    type(MPI_Datatype), intent(in) :: type
    type(MPI_Op), intent(in) :: op
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out), optional :: ierror
    call give(hb_exscan_c(at(send), at(recv), count, type%mpi_val, op%mpi_val, comm%mpi_val), ierror)
  end subroutine

  subroutine exscan_integer(send, recv, count, type, op, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count, type, op, comm
    integer, intent(out), optional :: ierror
    call give(hb_exscan_c(at(send), at(recv), count, type, op, comm), ierror)
  end subroutine

  subroutine allgather_f08(send, count, type, recv, recv_count, recv_type, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count, recv_count
    type(MPI_Datatype), intent(in) :: type, recv_type
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out), optional :: ierror
    call give(hb_allgather_c(at(send), count, type%mpi_val, at(recv), recv_count, recv_type%mpi_val, &
      comm%mpi_val), ierror)
  end subroutine

  subroutine allgather_integer(send, count, type, recv, recv_count, recv_type, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count, type, recv_count, recv_type, comm
    integer, intent(out), optional :: ierror
    call give(hb_allgather_c(at(send), count, type, at(recv), recv_count, recv_type, comm), ierror)
  end subroutine

  subroutine gather_f08(send, count, type, recv, recv_count, recv_type, root, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count, recv_count, root
    type(MPI_Datatype), intent(in) :: type, recv_type
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out), optional :: ierror
    call give(hb_gather_c(at(send), count, type%mpi_val, at(recv), recv_count, recv_type%mpi_val, root, &
      comm%mpi_val), ierror)
  end subroutine

  subroutine gather_integer(send, count, type, recv, recv_count, recv_type, root, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count, type, recv_count, recv_type, root, comm
    integer, intent(out), optional :: ierror
    call give(hb_gather_c(at(send), count, type, at(recv), recv_count, recv_type, root, comm), ierror)
  end subroutine

  subroutine scatter_f08(send, count, type, recv, recv_count, recv_type, root, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count, recv_count, root
    type(MPI_Datatype), intent(in) :: type, recv_type
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out), optional :: ierror
    call give(hb_scatter_c(at(send), count, type%mpi_val, at(recv), recv_count, recv_type%mpi_val, root, &
      comm%mpi_val), ierror)
  end subroutine

  subroutine scatter_integer(send, count, type, recv, recv_count, recv_type, root, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count, type, recv_count, recv_type, root, comm
    integer, intent(out), optional :: ierror
    call give(hb_scatter_c(at(send), count, type, at(recv), recv_count, recv_type, root, comm), ierror)
  end subroutine

  subroutine alltoall_f08(send, count, type, recv, recv_count, recv_type, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count, recv_count
    type(MPI_Datatype), intent(in) :: type, recv_type
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out), optional :: ierror
    call give(hb_alltoall_c(at(send), count, type%mpi_val, at(recv), recv_count, recv_type%mpi_val, &
      comm%mpi_val), ierror)
  end subroutine

  subroutine alltoall_integer(send, count, type, recv, recv_count, recv_type, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count, type, recv_count, recv_type, comm
    integer, intent(out), optional :: ierror
    call give(hb_alltoall_c(at(send), count, type, at(recv), recv_count, recv_type, comm), ierror)
  end subroutine

  subroutine allgatherv_f08(send, count, type, recv, counts, displs, recv_type, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count, counts(*), displs(*)
    type(MPI_Datatype), intent(in) :: type, recv_type
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out), optional :: ierror
    call give(hb_allgatherv_c(at(send), count, type%mpi_val, at(recv), counts, displs, recv_type%mpi_val, &
      comm%mpi_val), ierror)
  end subroutine

  subroutine allgatherv_integer(send, count, type, recv, counts, displs, recv_type, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count, type, recv_type, comm, counts(*), displs(*)
    integer, intent(out), optional :: ierror
    call give(hb_allgatherv_c(at(send), count, type, at(recv), counts, displs, recv_type, comm), ierror)
  end subroutine

  subroutine gatherv_f08(send, count, type, recv, counts, displs, recv_type, root, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count, root, counts(*), displs(*)
    type(MPI_Datatype), intent(in) :: type, recv_type
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out), optional :: ierror
    call give(hb_gatherv_c(at(send), count, type%mpi_val, at(recv), counts, displs, recv_type%mpi_val, &
      root, comm%mpi_val), ierror)
  end subroutine

  subroutine gatherv_integer(send, count, type, recv, counts, displs, recv_type, root, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: count, type, recv_type, root, comm, counts(*), displs(*)
    integer, intent(out), optional :: ierror
    call give(hb_gatherv_c(at(send), count, type, at(recv), counts, displs, recv_type, root, comm), ierror)
  end subroutine

  subroutine scatterv_f08(send, counts, displs, type, recv, recv_count, recv_type, root, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: recv_count, root, counts(*), displs(*)
    type(MPI_Datatype), intent(in) :: type, recv_type
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out), optional :: ierror
    call give(hb_scatterv_c(at(send), counts, displs, type%mpi_val, at(recv), recv_count, &
      recv_type%mpi_val, root, comm%mpi_val), ierror)
  end subroutine

  subroutine scatterv_integer(send, counts, displs, type, recv, recv_count, recv_type, root, comm, ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: type, recv_count, recv_type, root, comm, counts(*), displs(*)
    integer, intent(out), optional :: ierror
    call give(hb_scatterv_c(at(send), counts, displs, type, at(recv), recv_count, recv_type, root, comm), &
      ierror)
  end subroutine

  subroutine alltoallv_f08(send, counts, displs, type, recv, recv_counts, recv_displs, recv_type, comm, &
    ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: counts(*), displs(*), recv_counts(*), recv_displs(*)
    type(MPI_Datatype), intent(in) :: type, recv_type
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out), optional :: ierror
    call give(hb_alltoallv_c(at(send), counts, displs, type%mpi_val, at(recv), recv_counts, recv_displs, &
      recv_type%mpi_val, comm%mpi_val), ierror)
  end subroutine

  subroutine alltoallv_integer(send, counts, displs, type, recv, recv_counts, recv_displs, recv_type, comm, &
    ierror)
    type(*), dimension(..), contiguous, target, intent(in) :: send
    type(*), dimension(..), contiguous, target :: recv
    integer, intent(in) :: type, recv_type, comm, counts(*), displs(*), recv_counts(*), recv_displs(*)
    integer, intent(out), optional :: ierror
    call give(hb_alltoallv_c(at(send), counts, displs, type, at(recv), recv_counts, recv_displs, recv_type, &
      comm), ierror)
  end subroutine

end module hopbine_mpi
