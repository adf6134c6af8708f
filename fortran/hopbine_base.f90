! The part of the module hopbine other than the collectives: start-up, communicators, requests, errors.
module hopbine_base
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_pointer, c_int, c_int64_t, c_intptr_t, &
    c_loc, c_null_char, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: error_unit
  use hopbine_c
  implicit none
  public

  integer, parameter :: hopbine_count = c_int64_t
  integer, parameter :: hopbine_handle = c_int64_t

  ! Passed as the send buffer (in a scatter: as the root's receive buffer): the input is in the result's buffer.
  integer(c_int), target, save :: HOPBINE_IN_PLACE = 0

contains

  ! The address of a buffer, as C expects it.
  function at(buffer) result(address)
    type(*), dimension(..), target, intent(in) :: buffer
    type(c_ptr) :: address
    address = c_loc(buffer)
    if (c_associated(address, c_loc(HOPBINE_IN_PLACE))) address = transfer(-1_c_intptr_t, c_null_ptr)
  end function

  ! The same for a buffer that is used after the call has returned. The calling procedures are bind(C), so they get
  ! sections without a copy. A section with gaps could be used only through a copy, so its address is null.
  function kept(buffer) result(address)
    type(*), dimension(..), target, asynchronous, intent(in) :: buffer
    type(c_ptr) :: address
    address = at(buffer)
    if (.not. c_associated(address)) return
    if (has_gaps_c(buffer) /= 0) address = c_null_ptr
  end function

  subroutine done(code, ierror)
    integer(c_int), intent(in) :: code
    integer(c_int), intent(out), optional :: ierror
    if (present(ierror)) then
      ierror = code
    else if (code /= HOPBINE_SUCCESS) then
      write (error_unit, '(2a)') 'hopbine: ', hopbine_error_message()
      error stop 1
    end if
  end subroutine

  ! The error message of this thread's last call that failed.
  function hopbine_error_message() result(message)
    character(:), allocatable :: message
    character(kind=c_char), pointer :: text(:)
    type(c_ptr) :: address
    integer :: i
    address = hopbine_last_error_c()
    call c_f_pointer(address, text, [strlen_c(address)])
    allocate (character(size(text)) :: message)
    do i = 1, size(text)
      message(i:i) = text(i)
    end do
  end function

  subroutine hopbine_start(request, ierror)
    integer(hopbine_handle), intent(in) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_start_c(request), ierror)
  end subroutine

  subroutine hopbine_test(request, flag, ierror)
    integer(hopbine_handle), intent(inout) :: request
    logical, intent(out) :: flag
    integer(c_int), intent(out), optional :: ierror
    integer(c_int) :: is_done, code
    is_done = 0
    code = hopbine_test_c(request, is_done)
    flag = is_done /= 0
    call done(code, ierror)
  end subroutine

  subroutine hopbine_wait(request, ierror)
    integer(hopbine_handle), intent(inout) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_wait_c(request), ierror)
  end subroutine

  subroutine hopbine_waitall(requests, ierror)
    integer(hopbine_handle), contiguous, intent(inout) :: requests(:)
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_waitall_c(size(requests, kind=c_int), requests), ierror)
  end subroutine

  subroutine hopbine_request_free(request, ierror)
    integer(hopbine_handle), intent(inout) :: request
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_request_free_c(request), ierror)
  end subroutine

  subroutine hopbine_init(world, ierror)
    integer(hopbine_handle), intent(out) :: world
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_init_c(world), ierror)
  end subroutine

  subroutine hopbine_finalize(ierror)
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_finalize_c(), ierror)
  end subroutine

  subroutine hopbine_comm_rank(comm, rank, ierror)
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out) :: rank
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_comm_rank_c(comm, rank), ierror)
  end subroutine

  subroutine hopbine_comm_size(comm, n_ranks, ierror)
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out) :: n_ranks
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_comm_size_c(comm, n_ranks), ierror)
  end subroutine

  ! Sizes of the torus and this rank's coordinates; arrays of 7 elements are large enough.
  subroutine hopbine_comm_torus(comm, n_dims, sizes, coordinates, ierror)
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(out) :: n_dims
    integer(c_int), contiguous, intent(inout) :: sizes(:), coordinates(:)
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_comm_torus_c(comm, min(size(sizes, kind=c_int), size(coordinates, kind=c_int)), &
      n_dims, sizes, coordinates), ierror)
  end subroutine

  subroutine hopbine_comm_duplicate(comm, made, ierror)
    integer(hopbine_handle), intent(in) :: comm
    integer(hopbine_handle), intent(out) :: made
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_comm_duplicate_c(comm, made), ierror)
  end subroutine

  subroutine hopbine_comm_split(comm, colour, key, made, ierror)
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), intent(in) :: colour, key
    integer(hopbine_handle), intent(out) :: made
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_comm_split_c(comm, colour, int(key, c_int64_t), made), ierror)
  end subroutine

  subroutine hopbine_comm_group(comm, ranks, made, ierror)
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), contiguous, intent(in) :: ranks(:)
    integer(hopbine_handle), intent(out) :: made
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_comm_group_c(comm, size(ranks, kind=c_int), ranks, made), ierror)
  end subroutine

  ! Dimensions are numbered from 0, as in C.
  subroutine hopbine_comm_sub_box(comm, dims, made, ierror)
    integer(hopbine_handle), intent(in) :: comm
    integer(c_int), contiguous, intent(in) :: dims(:)
    integer(hopbine_handle), intent(out) :: made
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_comm_sub_box_c(comm, size(dims, kind=c_int), dims, made), ierror)
  end subroutine

  ! Makes a handle whose calls use this algorithm of the registry.
  subroutine hopbine_comm_with(comm, algorithm, made, ierror)
    integer(hopbine_handle), intent(in) :: comm
    character(*), intent(in) :: algorithm
    integer(hopbine_handle), intent(out) :: made
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_comm_with_c(comm, trim(algorithm)//c_null_char, 0_c_int, 0_c_int64_t, made), ierror)
  end subroutine

  subroutine hopbine_comm_free(comm, ierror)
    integer(hopbine_handle), intent(inout) :: comm
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_comm_free_c(comm), ierror)
  end subroutine

  ! Registers a buffer with the network until hopbine_deregister: see hopbine.h.
  subroutine hopbine_register(comm, buffer, bytes, registration, ierror) bind(C, name="")
    integer(hopbine_handle), intent(in) :: comm
    type(*), dimension(..), target, asynchronous :: buffer
    integer(hopbine_count), intent(in) :: bytes
    integer(hopbine_handle), intent(out) :: registration
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_register_c(comm, kept(buffer), bytes, registration), ierror)
  end subroutine

  subroutine hopbine_deregister(registration, ierror)
    integer(hopbine_handle), intent(inout) :: registration
    integer(c_int), intent(out), optional :: ierror
    call done(hopbine_deregister_c(registration), ierror)
  end subroutine

end module hopbine_base
