! The collectives of the C interface as they are: blocking, non-blocking, persistent. Part of hopbine_c.
! Generated from src/comm/forms/table.rs: `HOPBINE_TEST_BLESS=1 cargo test -p hopbine-capi --test generated`
! writes it.
module hopbine_c_calls
  use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_ptr
  implicit none
  public

  abstract interface
    integer(c_int) function like_hopbine_allreduce(send, recv, count, type, op, comm) bind(C)
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op
    end function
    integer(c_int) function like_hopbine_iallreduce(send, recv, count, type, op, comm, request) bind(C)
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op
      integer(c_int64_t) :: request
    end function
    integer(c_int) function like_hopbine_reduce(send, recv, count, type, op, root, comm) bind(C)
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op, root
    end function
    integer(c_int) function like_hopbine_ireduce(send, recv, count, type, op, root, comm, request) bind(C)
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function like_hopbine_bcast(recv, count, type, root, comm) bind(C)
      import
      type(c_ptr), value :: recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
    end function
    integer(c_int) function like_hopbine_ibcast(recv, count, type, root, comm, request) bind(C)
      import
      type(c_ptr), value :: recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function like_hopbine_allgather(send, recv, count, type, comm) bind(C)
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type
    end function
    integer(c_int) function like_hopbine_iallgather(send, recv, count, type, comm, request) bind(C)
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type
      integer(c_int64_t) :: request
    end function
    integer(c_int) function like_hopbine_gather(send, recv, count, type, root, comm) bind(C)
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
    end function
    integer(c_int) function like_hopbine_igather(send, recv, count, type, root, comm, request) bind(C)
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function like_hopbine_barrier(comm) bind(C)
      import
      integer(c_int64_t), value :: comm
    end function
    integer(c_int) function like_hopbine_ibarrier(comm, request) bind(C)
      import
      integer(c_int64_t), value :: comm
      integer(c_int64_t) :: request
    end function
    integer(c_int) function like_hopbine_allgatherv(send, count, recv, counts, displs, type, comm) bind(C)
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type
    end function
    integer(c_int) function like_hopbine_iallgatherv(send, count, recv, counts, displs, type, comm, request) bind(C)
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type
      integer(c_int64_t) :: request
    end function
    integer(c_int) function like_hopbine_gatherv(send, count, recv, counts, displs, type, root, comm) bind(C)
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
    end function
    integer(c_int) function like_hopbine_igatherv(send, count, recv, counts, displs, type, root, comm, request) &
      bind(C)
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function like_hopbine_scatterv(send, counts, displs, recv, count, type, root, comm) bind(C)
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
    end function
    integer(c_int) function like_hopbine_iscatterv(send, counts, displs, recv, count, type, root, comm, request) &
      bind(C)
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function like_hopbine_reduce_scatterv(send, recv, counts, type, op, comm) bind(C)
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int64_t), value :: comm
      integer(c_int), value :: type, op
    end function
    integer(c_int) function like_hopbine_ireduce_scatterv(send, recv, counts, type, op, comm, request) bind(C)
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int64_t), value :: comm
      integer(c_int), value :: type, op
      integer(c_int64_t) :: request
    end function
    integer(c_int) function like_hopbine_alltoallv(send, send_counts, send_displs, recv, recv_counts, recv_displs, &
      type, comm) bind(C)
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: send_counts(*), send_displs(*), recv_counts(*), recv_displs(*)
      integer(c_int64_t), value :: comm
      integer(c_int), value :: type
    end function
    integer(c_int) function like_hopbine_ialltoallv(send, send_counts, send_displs, recv, recv_counts, recv_displs, &
      type, comm, request) bind(C)
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: send_counts(*), send_displs(*), recv_counts(*), recv_displs(*)
      integer(c_int64_t), value :: comm
      integer(c_int), value :: type
      integer(c_int64_t) :: request
    end function
  end interface

  procedure(like_hopbine_allreduce), bind(C, name="hopbine_allreduce") :: hopbine_allreduce_c
  procedure(like_hopbine_iallreduce), bind(C, name="hopbine_iallreduce") :: hopbine_iallreduce_c
  procedure(like_hopbine_iallreduce), bind(C, name="hopbine_allreduce_init") :: hopbine_allreduce_init_c
  procedure(like_hopbine_reduce), bind(C, name="hopbine_reduce") :: hopbine_reduce_c
  procedure(like_hopbine_ireduce), bind(C, name="hopbine_ireduce") :: hopbine_ireduce_c
  procedure(like_hopbine_ireduce), bind(C, name="hopbine_reduce_init") :: hopbine_reduce_init_c
  procedure(like_hopbine_allreduce), bind(C, name="hopbine_reduce_scatter") :: hopbine_reduce_scatter_c
  procedure(like_hopbine_iallreduce), bind(C, name="hopbine_ireduce_scatter") :: hopbine_ireduce_scatter_c
  procedure(like_hopbine_iallreduce), bind(C, name="hopbine_reduce_scatter_init") :: hopbine_reduce_scatter_init_c
  procedure(like_hopbine_allreduce), bind(C, name="hopbine_scan") :: hopbine_scan_c
  procedure(like_hopbine_iallreduce), bind(C, name="hopbine_iscan") :: hopbine_iscan_c
  procedure(like_hopbine_iallreduce), bind(C, name="hopbine_scan_init") :: hopbine_scan_init_c
  procedure(like_hopbine_allreduce), bind(C, name="hopbine_exscan") :: hopbine_exscan_c
  procedure(like_hopbine_iallreduce), bind(C, name="hopbine_iexscan") :: hopbine_iexscan_c
  procedure(like_hopbine_iallreduce), bind(C, name="hopbine_exscan_init") :: hopbine_exscan_init_c
  procedure(like_hopbine_bcast), bind(C, name="hopbine_bcast") :: hopbine_bcast_c
  procedure(like_hopbine_ibcast), bind(C, name="hopbine_ibcast") :: hopbine_ibcast_c
  procedure(like_hopbine_ibcast), bind(C, name="hopbine_bcast_init") :: hopbine_bcast_init_c
  procedure(like_hopbine_allgather), bind(C, name="hopbine_allgather") :: hopbine_allgather_c
  procedure(like_hopbine_iallgather), bind(C, name="hopbine_iallgather") :: hopbine_iallgather_c
  procedure(like_hopbine_iallgather), bind(C, name="hopbine_allgather_init") :: hopbine_allgather_init_c
  procedure(like_hopbine_gather), bind(C, name="hopbine_gather") :: hopbine_gather_c
  procedure(like_hopbine_igather), bind(C, name="hopbine_igather") :: hopbine_igather_c
  procedure(like_hopbine_igather), bind(C, name="hopbine_gather_init") :: hopbine_gather_init_c
  procedure(like_hopbine_gather), bind(C, name="hopbine_scatter") :: hopbine_scatter_c
  procedure(like_hopbine_igather), bind(C, name="hopbine_iscatter") :: hopbine_iscatter_c
  procedure(like_hopbine_igather), bind(C, name="hopbine_scatter_init") :: hopbine_scatter_init_c
  procedure(like_hopbine_allgather), bind(C, name="hopbine_alltoall") :: hopbine_alltoall_c
  procedure(like_hopbine_iallgather), bind(C, name="hopbine_ialltoall") :: hopbine_ialltoall_c
  procedure(like_hopbine_iallgather), bind(C, name="hopbine_alltoall_init") :: hopbine_alltoall_init_c
  procedure(like_hopbine_barrier), bind(C, name="hopbine_barrier") :: hopbine_barrier_c
  procedure(like_hopbine_ibarrier), bind(C, name="hopbine_ibarrier") :: hopbine_ibarrier_c
  procedure(like_hopbine_ibarrier), bind(C, name="hopbine_barrier_init") :: hopbine_barrier_init_c
  procedure(like_hopbine_allgatherv), bind(C, name="hopbine_allgatherv") :: hopbine_allgatherv_c
  procedure(like_hopbine_iallgatherv), bind(C, name="hopbine_iallgatherv") :: hopbine_iallgatherv_c
  procedure(like_hopbine_iallgatherv), bind(C, name="hopbine_allgatherv_init") :: hopbine_allgatherv_init_c
  procedure(like_hopbine_gatherv), bind(C, name="hopbine_gatherv") :: hopbine_gatherv_c
  procedure(like_hopbine_igatherv), bind(C, name="hopbine_igatherv") :: hopbine_igatherv_c
  procedure(like_hopbine_igatherv), bind(C, name="hopbine_gatherv_init") :: hopbine_gatherv_init_c
  procedure(like_hopbine_scatterv), bind(C, name="hopbine_scatterv") :: hopbine_scatterv_c
  procedure(like_hopbine_iscatterv), bind(C, name="hopbine_iscatterv") :: hopbine_iscatterv_c
  procedure(like_hopbine_iscatterv), bind(C, name="hopbine_scatterv_init") :: hopbine_scatterv_init_c
  procedure(like_hopbine_reduce_scatterv), bind(C, name="hopbine_reduce_scatterv") :: hopbine_reduce_scatterv_c
  procedure(like_hopbine_ireduce_scatterv), bind(C, name="hopbine_ireduce_scatterv") :: hopbine_ireduce_scatterv_c
  procedure(like_hopbine_ireduce_scatterv), bind(C, name="hopbine_reduce_scatterv_init") :: &
    hopbine_reduce_scatterv_init_c
  procedure(like_hopbine_alltoallv), bind(C, name="hopbine_alltoallv") :: hopbine_alltoallv_c
  procedure(like_hopbine_ialltoallv), bind(C, name="hopbine_ialltoallv") :: hopbine_ialltoallv_c
  procedure(like_hopbine_ialltoallv), bind(C, name="hopbine_alltoallv_init") :: hopbine_alltoallv_init_c
end module hopbine_c_calls
