! The C interface of hopbine without changes: constants, and functions that take addresses. Programs use the module
! hopbine (hopbine.f90), which is based on this module.
module hopbine_c
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_int64_t, c_ptr, c_size_t
  use hopbine_c_calls
  implicit none
  public

  ! Element types.
  integer(c_int), parameter :: HOPBINE_INT8 = 0, HOPBINE_INT16 = 1, HOPBINE_INT32 = 2
  integer(c_int), parameter :: HOPBINE_INT64 = 3, HOPBINE_UINT8 = 4, HOPBINE_UINT16 = 5
  integer(c_int), parameter :: HOPBINE_UINT32 = 6, HOPBINE_UINT64 = 7, HOPBINE_FLOAT16 = 8
  integer(c_int), parameter :: HOPBINE_BFLOAT16 = 9, HOPBINE_FLOAT = 10, HOPBINE_DOUBLE = 11
  integer(c_int), parameter :: HOPBINE_FLOAT_COMPLEX = 12, HOPBINE_DOUBLE_COMPLEX = 13
  integer(c_int), parameter :: HOPBINE_PAIR_INT32 = 14, HOPBINE_PAIR_INT64 = 15, HOPBINE_PAIR_FLOAT = 16
  integer(c_int), parameter :: HOPBINE_PAIR_DOUBLE = 17, HOPBINE_PAIR_FLOAT_INT32 = 18
  ! Operators.
  integer(c_int), parameter :: HOPBINE_SUM = 0, HOPBINE_PROD = 1, HOPBINE_MIN = 2, HOPBINE_MAX = 3
  integer(c_int), parameter :: HOPBINE_LAND = 4, HOPBINE_LOR = 5, HOPBINE_LXOR = 6, HOPBINE_BAND = 7
  integer(c_int), parameter :: HOPBINE_BOR = 8, HOPBINE_BXOR = 9, HOPBINE_MINLOC = 10, HOPBINE_MAXLOC = 11
  ! Return codes.
  integer(c_int), parameter :: HOPBINE_SUCCESS = 0, HOPBINE_ERR_COMM = 1, HOPBINE_ERR_REQUEST = 2
  integer(c_int), parameter :: HOPBINE_ERR_COUNT = 3, HOPBINE_ERR_TYPE = 4, HOPBINE_ERR_OP = 5
  integer(c_int), parameter :: HOPBINE_ERR_ROOT = 6, HOPBINE_ERR_BUFFER = 7, HOPBINE_ERR_ARG = 8
  integer(c_int), parameter :: HOPBINE_ERR_STATE = 9, HOPBINE_ERR_SETTING = 10
  integer(c_int), parameter :: HOPBINE_ERR_STARTUP = 11, HOPBINE_ERR_TIMEOUT = 12
  integer(c_int), parameter :: HOPBINE_ERR_LOST = 13, HOPBINE_ERR_WIRE = 14
  integer(c_int), parameter :: HOPBINE_ERR_ALGORITHM = 15, HOPBINE_ERR_INTERNAL = 16, HOPBINE_ERR_MISMATCH = 17
  ! Null handles, and the colour of a rank that joins no communicator.
  integer(c_int64_t), parameter :: HOPBINE_COMM_NULL = 0
  integer(c_int64_t), parameter :: HOPBINE_REQUEST_NULL = 0
  integer(c_int), parameter :: HOPBINE_UNDEFINED = -1
  integer(c_int), parameter :: HOPBINE_VERSION_MAJOR = 0, HOPBINE_VERSION_MINOR = 1, HOPBINE_VERSION_PATCH = 0

  abstract interface
    integer(c_int) function like_wait(handle) bind(C)
      import
      integer(c_int64_t) :: handle
    end function
    integer(c_int) function like_size(comm, number) bind(C)
      import
      integer(c_int64_t), value :: comm
      integer(c_int) :: number
    end function
    integer(c_int) function like_group(comm, n, numbers, made) bind(C)
      import
      integer(c_int64_t), value :: comm
      integer(c_int), value :: n
      integer(c_int), intent(in) :: numbers(*)
      integer(c_int64_t) :: made
    end function
  end interface

  procedure(like_wait), bind(C, name="hopbine_wait") :: hopbine_wait_c
  procedure(like_wait), bind(C, name="hopbine_request_free") :: hopbine_request_free_c
  procedure(like_wait), bind(C, name="hopbine_init") :: hopbine_init_c
  procedure(like_wait), bind(C, name="hopbine_comm_free") :: hopbine_comm_free_c
  procedure(like_wait), bind(C, name="hopbine_deregister") :: hopbine_deregister_c
  procedure(like_size), bind(C, name="hopbine_comm_rank") :: hopbine_comm_rank_c
  procedure(like_size), bind(C, name="hopbine_comm_size") :: hopbine_comm_size_c
  procedure(like_group), bind(C, name="hopbine_comm_group") :: hopbine_comm_group_c
  procedure(like_group), bind(C, name="hopbine_comm_sub_box") :: hopbine_comm_sub_box_c

  interface
    integer(c_int) function hopbine_start_c(request) bind(C, name="hopbine_start")
      import
      integer(c_int64_t), value :: request
    end function
    integer(c_int) function hopbine_test_c(request, done) bind(C, name="hopbine_test")
      import
      integer(c_int64_t) :: request
      integer(c_int) :: done
    end function
    integer(c_int) function hopbine_waitall_c(n, requests) bind(C, name="hopbine_waitall")
      import
      integer(c_int), value :: n
      integer(c_int64_t) :: requests(*)
    end function
    integer(c_int) function hopbine_finalize_c() bind(C, name="hopbine_finalize")
      import
    end function
    integer(c_int) function hopbine_comm_torus_c(comm, room, n_dims, sizes, coordinates) bind(C, name="hopbine_comm_torus")
      import
      integer(c_int64_t), value :: comm
      integer(c_int), value :: room
      integer(c_int) :: n_dims, sizes(*), coordinates(*)
    end function
    integer(c_int) function hopbine_register_c(comm, buffer, bytes, registration) bind(C, name="hopbine_register")
      import
      integer(c_int64_t), value :: comm, bytes
      type(c_ptr), value :: buffer
      integer(c_int64_t) :: registration
    end function
    integer(c_int) function hopbine_comm_duplicate_c(comm, made) bind(C, name="hopbine_comm_duplicate")
      import
      integer(c_int64_t), value :: comm
      integer(c_int64_t) :: made
    end function
    integer(c_int) function hopbine_comm_split_c(comm, colour, key, made) bind(C, name="hopbine_comm_split")
      import
      integer(c_int64_t), value :: comm, key
      integer(c_int), value :: colour
      integer(c_int64_t) :: made
    end function
    integer(c_int) function hopbine_comm_with_c(comm, algorithm, ports, segment_bytes, made) bind(C, name="hopbine_comm_with")
      import
      integer(c_int64_t), value :: comm, segment_bytes
      character(kind=c_char), intent(in) :: algorithm(*)
      integer(c_int), value :: ports
      integer(c_int64_t) :: made
    end function
    function hopbine_last_error_c() &
      result(code) bind(C, name="hopbine_last_error")
      import
      type(c_ptr) :: code
    end function
    integer(c_int) function has_gaps_c(buffer) bind(C, name="hopbine_has_gaps")
      import
      type(*), dimension(..), asynchronous, intent(in) :: buffer
    end function
    function strlen_c(text) result(length) bind(C, name="strlen")
      import
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface
end module hopbine_c
