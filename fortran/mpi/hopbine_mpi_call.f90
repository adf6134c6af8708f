! A call of the module hopbine_mpi as it is passed to C (capi/mpi/fortran.c), for both kinds of handles.
module hopbine_mpi_call
  use, intrinsic :: iso_c_binding, only: c_associated, c_int, c_int64_t, c_intptr_t, c_loc, c_null_ptr, c_ptr
  use mpi, only: in_place_of_mpi => MPI_IN_PLACE, bottom_of_mpi => MPI_BOTTOM, MPI_COMM_WORLD
  use mpi_f08, only: in_place_of_f08 => MPI_IN_PLACE, bottom_of_f08 => MPI_BOTTOM
  implicit none
  private
  public :: HB_Init, hb_call, at, kept, make, begin, prepare

  ! `struct fortran_call` (capi/mpi/fortran.c); its members have the names of the parameters in capi/mpi/signatures.h.
  type, bind(C) :: hb_call
    integer(c_int) :: is_large, collective
    integer(c_int64_t) :: n = 0, m = 0
    integer(c_int) :: type = 0, to = 0, op = 0, root = 0, comm = 0, info = 0
    type(c_ptr) :: send = c_null_ptr, recv = c_null_ptr
    type(c_ptr) :: counts = c_null_ptr, displs = c_null_ptr, types = c_null_ptr
    type(c_ptr) :: to_counts = c_null_ptr, to_displs = c_null_ptr, to_types = c_null_ptr
  end type

  ! The kind of MPI, known by its communicator's number. C's functions are named after it, so that a program with the
  ! module of one kind and the library of another is not linked: it would have MPI_IN_PLACE at another address.
  character(*), parameter :: kind_of_mpi = &
    trim(merge('openmpi', merge('abi    ', 'mpich  ', MPI_COMM_WORLD == 257), MPI_COMM_WORLD == 0))

  abstract interface
    subroutine init(ierror) bind(C)
      import
      integer(c_int), intent(out), optional :: ierror
    end subroutine
    subroutine blocking(call, ierror) bind(C)
      import
      type(hb_call), intent(in) :: call
      integer(c_int), intent(out), optional :: ierror
    end subroutine
    subroutine requesting(call, request, ierror) bind(C)
      import
      type(hb_call), intent(in) :: call
      integer(c_int), intent(out) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  ! Starts hopbine, if it has not started yet; all ranks of MPI_COMM_WORLD call it, after MPI_Init.
  procedure(init), bind(C, name="hopbine_hb_init_"//kind_of_mpi) :: HB_Init
  procedure(blocking), bind(C, name="hopbine_hb_make_"//kind_of_mpi) :: make
  procedure(requesting), bind(C, name="hopbine_hb_begin_"//kind_of_mpi) :: begin
  procedure(requesting), bind(C, name="hopbine_hb_prepare_"//kind_of_mpi) :: prepare

  interface
    integer(c_int) function has_gaps(buffer) bind(C, name="hopbine_has_gaps")
      import
      type(*), dimension(..), asynchronous, intent(in) :: buffer
    end function
  end interface

contains

  ! The address of a buffer; -1 and -2 stand for MPI_IN_PLACE and MPI_BOTTOM, whose addresses C does not know.
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

  ! The same for a buffer that is used after the call has returned. For a section with gaps the compiler could only
  ! make a copy, which would not live long enough: its address is another reserved number.
  function kept(buffer) result(address)
    type(*), dimension(..), target, asynchronous, intent(in) :: buffer
    type(c_ptr) :: address
    address = at(buffer)
    if (.not. c_associated(address)) return
    if (has_gaps(buffer) /= 0) address = transfer(-3_c_intptr_t, c_null_ptr)
  end function

end module hopbine_mpi_call
