! hopbine from Fortran: MPI-style collectives along the links of a torus.
!
! Buffers are of any type and rank. Counts are integer(hopbine_count), handles integer(hopbine_handle). The last
! argument of every procedure is an optional ierror: HOPBINE_SUCCESS or another code, which hopbine_error_message()
! explains. Without ierror a failure stops the program. Buffers of non-blocking and persistent collectives must be
! contiguous (a section with gaps gives HOPBINE_ERR_BUFFER), and must be asynchronous or target in the caller.
module hopbine
  use hopbine_base, only: at, done, kept
  use hopbine_base
  use hopbine_calls
  use hopbine_vector
  implicit none
  public
  private :: at, done, kept
end module hopbine
