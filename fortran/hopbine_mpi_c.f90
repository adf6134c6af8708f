! The calls of hopbine_mpi as C has them, with Fortran's handles.
module hopbine_mpi_c
  use, intrinsic :: iso_c_binding, only: c_int, c_ptr
  implicit none
  public

  interface
    function hb_init_c() result(code) bind(C, name="hopbine_hb_init_f")
      import
      integer(c_int) :: code
    end function
    function hb_barrier_c(comm) result(code) &
      bind(C, name="hopbine_hb_barrier_f")
      import
      integer(c_int), value :: comm
      integer(c_int) :: code
    end function
    function hb_bcast_c(buffer, count, type, root, comm) result(code) &
      bind(C, name="hopbine_hb_bcast_f")
      import
      type(c_ptr), value :: buffer
      integer(c_int), value :: count, type, root, comm
      integer(c_int) :: code
    end function
    function hb_reduce_c(send, recv, count, type, op, root, comm) result(code) &
      bind(C, name="hopbine_hb_reduce_f")
      import
      type(c_ptr), value :: send, recv
      integer(c_int), value :: count, type, op, root, comm
      integer(c_int) :: code
    end function
    function hb_allreduce_c(send, recv, count, type, op, comm) result(code) &
      bind(C, name="hopbine_hb_allreduce_f")
      import
      type(c_ptr), value :: send, recv
      integer(c_int), value :: count, type, op, comm
      integer(c_int) :: code
    end function
    function hb_reduce_scatter_block_c(send, recv, count, type, op, comm) result(code) &
      bind(C, name="hopbine_hb_reduce_scatter_block_f")
      import
      type(c_ptr), value :: send, recv
      integer(c_int), value :: count, type, op, comm
      integer(c_int) :: code
    end function
    function hb_reduce_scatter_c(send, recv, counts, type, op, comm) result(code) &
      bind(C, name="hopbine_hb_reduce_scatter_f")
      import
      type(c_ptr), value :: send, recv
      integer(c_int), value :: type, op, comm
      integer(c_int), intent(in) :: counts(*)
      integer(c_int) :: code
    end function
    function hb_scan_c(send, recv, count, type, op, comm) result(code) &
      bind(C, name="hopbine_hb_scan_f")
      import
      type(c_ptr), value :: send, recv
      integer(c_int), value :: count, type, op, comm
      integer(c_int) :: code
    end function
    function hb_exscan_c(send, recv, count, type, op, comm) result(code) &
      bind(C, name="hopbine_hb_exscan_f")
      import
      type(c_ptr), value :: send, recv
      integer(c_int), value :: count, type, op, comm
      integer(c_int) :: code
    end function
    function hb_allgather_c(send, count, type, recv, recv_count, recv_type, comm) result(code) &
      bind(C, name="hopbine_hb_allgather_f")
      import
      type(c_ptr), value :: send, recv
      integer(c_int), value :: count, type, recv_count, recv_type, comm
      integer(c_int) :: code
    end function
    function hb_gather_c(send, count, type, recv, recv_count, recv_type, root, comm) result(code) &
      bind(C, name="hopbine_hb_gather_f")
      import
      type(c_ptr), value :: send, recv
      integer(c_int), value :: count, type, recv_count, recv_type, root, comm
      integer(c_int) :: code
    end function
    function hb_scatter_c(send, count, type, recv, recv_count, recv_type, root, comm) result(code) &
      bind(C, name="hopbine_hb_scatter_f")
      import
      type(c_ptr), value :: send, recv
      integer(c_int), value :: count, type, recv_count, recv_type, root, comm
      integer(c_int) :: code
    end function
    function hb_alltoall_c(send, count, type, recv, recv_count, recv_type, comm) result(code) &
      bind(C, name="hopbine_hb_alltoall_f")
      import
      type(c_ptr), value :: send, recv
      integer(c_int), value :: count, type, recv_count, recv_type, comm
      integer(c_int) :: code
    end function
    function hb_allgatherv_c(send, count, type, recv, counts, displs, recv_type, comm) result(code) &
      bind(C, name="hopbine_hb_allgatherv_f")
      import
      type(c_ptr), value :: send, recv
      integer(c_int), value :: count, type, recv_type, comm
      integer(c_int), intent(in) :: counts(*), displs(*)
      integer(c_int) :: code
    end function
    function hb_gatherv_c(send, count, type, recv, counts, displs, recv_type, root, comm) result(code) &
      bind(C, name="hopbine_hb_gatherv_f")
      import
      type(c_ptr), value :: send, recv
      integer(c_int), value :: count, type, recv_type, root, comm
      integer(c_int), intent(in) :: counts(*), displs(*)
      integer(c_int) :: code
    end function
    function hb_scatterv_c(send, counts, displs, type, recv, recv_count, recv_type, root, comm) result(code) &
      bind(C, name="hopbine_hb_scatterv_f")
      import
      type(c_ptr), value :: send, recv
      integer(c_int), value :: type, recv_count, recv_type, root, comm
      integer(c_int), intent(in) :: counts(*), displs(*)
      integer(c_int) :: code
    end function
    function hb_alltoallv_c(send, counts, displs, type, recv, recv_counts, recv_displs, recv_type, &
      comm) result(code) &
      bind(C, name="hopbine_hb_alltoallv_f")
      import
      type(c_ptr), value :: send, recv
      integer(c_int), value :: type, recv_type, comm
      integer(c_int), intent(in) :: counts(*), displs(*), recv_counts(*), recv_displs(*)
      integer(c_int) :: code
    end function
  end interface
end module hopbine_mpi_c
