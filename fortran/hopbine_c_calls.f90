! The collectives of the C interface as they are: blocking, non-blocking, persistent. Part of hopbine_c.
! Generated from src/comm/forms/table.rs: `HOPBINE_TEST_BLESS=1 cargo test -p hopbine-capi --test generated`
! writes it.
module hopbine_c_calls
  use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_ptr
  implicit none
  public

  interface
    integer(c_int) function hopbine_allreduce_c(send, recv, count, type, op, comm) bind(C, name="hopbine_allreduce")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op
    end function
    integer(c_int) function hopbine_iallreduce_c(send, recv, count, type, op, comm, request) &
      bind(C, name="hopbine_iallreduce")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_allreduce_init_c(send, recv, count, type, op, comm, request) &
      bind(C, name="hopbine_allreduce_init")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_reduce_c(send, recv, count, type, op, root, comm) bind(C, name="hopbine_reduce")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op, root
    end function
    integer(c_int) function hopbine_ireduce_c(send, recv, count, type, op, root, comm, request) &
      bind(C, name="hopbine_ireduce")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_reduce_init_c(send, recv, count, type, op, root, comm, request) &
      bind(C, name="hopbine_reduce_init")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_reduce_scatter_c(send, recv, count, type, op, comm) &
      bind(C, name="hopbine_reduce_scatter")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op
    end function
    integer(c_int) function hopbine_ireduce_scatter_c(send, recv, count, type, op, comm, request) &
      bind(C, name="hopbine_ireduce_scatter")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_reduce_scatter_init_c(send, recv, count, type, op, comm, request) &
      bind(C, name="hopbine_reduce_scatter_init")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_scan_c(send, recv, count, type, op, comm) bind(C, name="hopbine_scan")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op
    end function
    integer(c_int) function hopbine_iscan_c(send, recv, count, type, op, comm, request) bind(C, name="hopbine_iscan")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_scan_init_c(send, recv, count, type, op, comm, request) &
      bind(C, name="hopbine_scan_init")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_exscan_c(send, recv, count, type, op, comm) bind(C, name="hopbine_exscan")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op
    end function
    integer(c_int) function hopbine_iexscan_c(send, recv, count, type, op, comm, request) &
      bind(C, name="hopbine_iexscan")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_exscan_init_c(send, recv, count, type, op, comm, request) &
      bind(C, name="hopbine_exscan_init")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, op
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_bcast_c(recv, count, type, root, comm) bind(C, name="hopbine_bcast")
      import
      type(c_ptr), value :: recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
    end function
    integer(c_int) function hopbine_ibcast_c(recv, count, type, root, comm, request) bind(C, name="hopbine_ibcast")
      import
      type(c_ptr), value :: recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_bcast_init_c(recv, count, type, root, comm, request) &
      bind(C, name="hopbine_bcast_init")
      import
      type(c_ptr), value :: recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_allgather_c(send, recv, count, type, comm) bind(C, name="hopbine_allgather")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type
    end function
    integer(c_int) function hopbine_iallgather_c(send, recv, count, type, comm, request) &
      bind(C, name="hopbine_iallgather")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_allgather_init_c(send, recv, count, type, comm, request) &
      bind(C, name="hopbine_allgather_init")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_gather_c(send, recv, count, type, root, comm) bind(C, name="hopbine_gather")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
    end function
    integer(c_int) function hopbine_igather_c(send, recv, count, type, root, comm, request) &
      bind(C, name="hopbine_igather")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_gather_init_c(send, recv, count, type, root, comm, request) &
      bind(C, name="hopbine_gather_init")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_scatter_c(send, recv, count, type, root, comm) bind(C, name="hopbine_scatter")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
    end function
    integer(c_int) function hopbine_iscatter_c(send, recv, count, type, root, comm, request) &
      bind(C, name="hopbine_iscatter")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_scatter_init_c(send, recv, count, type, root, comm, request) &
      bind(C, name="hopbine_scatter_init")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_alltoall_c(send, recv, count, type, comm) bind(C, name="hopbine_alltoall")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type
    end function
    integer(c_int) function hopbine_ialltoall_c(send, recv, count, type, comm, request) &
      bind(C, name="hopbine_ialltoall")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_alltoall_init_c(send, recv, count, type, comm, request) &
      bind(C, name="hopbine_alltoall_init")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_barrier_c(comm) bind(C, name="hopbine_barrier")
      import
      integer(c_int64_t), value :: comm
    end function
    integer(c_int) function hopbine_ibarrier_c(comm, request) bind(C, name="hopbine_ibarrier")
      import
      integer(c_int64_t), value :: comm
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_barrier_init_c(comm, request) bind(C, name="hopbine_barrier_init")
      import
      integer(c_int64_t), value :: comm
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_allgatherv_c(send, count, recv, counts, displs, type, comm) &
      bind(C, name="hopbine_allgatherv")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type
    end function
    integer(c_int) function hopbine_iallgatherv_c(send, count, recv, counts, displs, type, comm, request) &
      bind(C, name="hopbine_iallgatherv")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_allgatherv_init_c(send, count, recv, counts, displs, type, comm, request) &
      bind(C, name="hopbine_allgatherv_init")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_gatherv_c(send, count, recv, counts, displs, type, root, comm) &
      bind(C, name="hopbine_gatherv")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
    end function
    integer(c_int) function hopbine_igatherv_c(send, count, recv, counts, displs, type, root, comm, request) &
      bind(C, name="hopbine_igatherv")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_gatherv_init_c(send, count, recv, counts, displs, type, root, comm, request) &
      bind(C, name="hopbine_gatherv_init")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_scatterv_c(send, counts, displs, recv, count, type, root, comm) &
      bind(C, name="hopbine_scatterv")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
    end function
    integer(c_int) function hopbine_iscatterv_c(send, counts, displs, recv, count, type, root, comm, request) &
      bind(C, name="hopbine_iscatterv")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_scatterv_init_c(send, counts, displs, recv, count, type, root, comm, request) &
      bind(C, name="hopbine_scatterv_init")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: type, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_reduce_scatterv_c(send, recv, counts, type, op, comm) &
      bind(C, name="hopbine_reduce_scatterv")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int64_t), value :: comm
      integer(c_int), value :: type, op
    end function
    integer(c_int) function hopbine_ireduce_scatterv_c(send, recv, counts, type, op, comm, request) &
      bind(C, name="hopbine_ireduce_scatterv")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int64_t), value :: comm
      integer(c_int), value :: type, op
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_reduce_scatterv_init_c(send, recv, counts, type, op, comm, request) &
      bind(C, name="hopbine_reduce_scatterv_init")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int64_t), value :: comm
      integer(c_int), value :: type, op
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_alltoallv_c(send, send_counts, send_displs, recv, recv_counts, recv_displs, type, &
      comm) bind(C, name="hopbine_alltoallv")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: send_counts(*), send_displs(*), recv_counts(*), recv_displs(*)
      integer(c_int64_t), value :: comm
      integer(c_int), value :: type
    end function
    integer(c_int) function hopbine_ialltoallv_c(send, send_counts, send_displs, recv, recv_counts, recv_displs, type, &
      comm, request) bind(C, name="hopbine_ialltoallv")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: send_counts(*), send_displs(*), recv_counts(*), recv_displs(*)
      integer(c_int64_t), value :: comm
      integer(c_int), value :: type
      integer(c_int64_t) :: request
    end function
    integer(c_int) function hopbine_alltoallv_init_c(send, send_counts, send_displs, recv, recv_counts, recv_displs, &
      type, comm, request) bind(C, name="hopbine_alltoallv_init")
      import
      type(c_ptr), value :: send, recv
      integer(c_int64_t), intent(in) :: send_counts(*), send_displs(*), recv_counts(*), recv_displs(*)
      integer(c_int64_t), value :: comm
      integer(c_int), value :: type
      integer(c_int64_t) :: request
    end function
  end interface
end module hopbine_c_calls
