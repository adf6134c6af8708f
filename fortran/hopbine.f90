! hopbine from Fortran: MPI-style collectives along the links of a torus.
!
! Buffers are of any type and rank. Counts are integer(hopbine_count), handles integer(hopbine_handle).
! Every procedure takes an optional ierror last, HOPBINE_SUCCESS or another code, for which
! hopbine_error_message() has the words; without it a failure stops the program. Buffers of non-blocking
! and persistent collectives must be contiguous (a section with gaps is none: HOPBINE_ERR_BUFFER), and
! asynchronous or target in the caller.
module hopbine
  use hopbine_base, only: at, done, kept
  use hopbine_base
  use hopbine_calls
  use hopbine_vector
  implicit none
  public
  private :: at, done, kept
end module hopbine
