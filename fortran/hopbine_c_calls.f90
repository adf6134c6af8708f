! The collectives of the C interface as they are: blocking, non-blocking, persistent. Part of hopbine_c.
! Generated from src/comm/forms/table.rs: `HOPBINE_TEST_BLESS=1 cargo test -p hopbine-capi --test generated`
! writes it.
module hopbine_c_calls
  use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_ptr
  implicit none
  public

  abstract interface
    integer(c_int) function like_hopbine_allreduce(sendbuf, recvbuf, count, datatype, op, comm) bind(C)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: datatype, op
    end function
    integer(c_int) function like_hopbine_iallreduce(sendbuf, recvbuf, count, datatype, op, comm, request) bind(C)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: datatype, op
      integer(c_int64_t) :: request
    end function
    integer(c_int) function like_hopbine_reduce(sendbuf, recvbuf, count, datatype, op, root, comm) bind(C)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: datatype, op, root
    end function
    integer(c_int) function like_hopbine_ireduce(sendbuf, recvbuf, count, datatype, op, root, comm, request) bind(C)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: datatype, op, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function like_hopbine_bcast(recvbuf, count, datatype, root, comm) bind(C)
      import
      type(c_ptr), value :: recvbuf
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: datatype, root
    end function
    integer(c_int) function like_hopbine_ibcast(recvbuf, count, datatype, root, comm, request) bind(C)
      import
      type(c_ptr), value :: recvbuf
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: datatype, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function like_hopbine_allgather(sendbuf, recvbuf, count, datatype, comm) bind(C)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: datatype
    end function
    integer(c_int) function like_hopbine_iallgather(sendbuf, recvbuf, count, datatype, comm, request) bind(C)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: datatype
      integer(c_int64_t) :: request
    end function
    integer(c_int) function like_hopbine_gather(sendbuf, recvbuf, count, datatype, root, comm) bind(C)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: datatype, root
    end function
    integer(c_int) function like_hopbine_igather(sendbuf, recvbuf, count, datatype, root, comm, request) bind(C)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: datatype, root
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
    integer(c_int) function like_hopbine_allgatherv(sendbuf, count, recvbuf, counts, displs, datatype, comm) bind(C)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: datatype
    end function
    integer(c_int) function like_hopbine_iallgatherv(sendbuf, count, recvbuf, counts, displs, datatype, comm, request) &
      bind(C)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: datatype
      integer(c_int64_t) :: request
    end function
    integer(c_int) function like_hopbine_gatherv(sendbuf, count, recvbuf, counts, displs, datatype, root, comm) &
      bind(C)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: datatype, root
    end function
    integer(c_int) function like_hopbine_igatherv(sendbuf, count, recvbuf, counts, displs, datatype, root, comm, &
      request) bind(C)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: datatype, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function like_hopbine_scatterv(sendbuf, counts, displs, recvbuf, count, datatype, root, comm) &
      bind(C)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: datatype, root
    end function
    integer(c_int) function like_hopbine_iscatterv(sendbuf, counts, displs, recvbuf, count, datatype, root, comm, &
      request) bind(C)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), intent(in) :: counts(*), displs(*)
      integer(c_int64_t), value :: count, comm
      integer(c_int), value :: datatype, root
      integer(c_int64_t) :: request
    end function
    integer(c_int) function like_hopbine_reduce_scatter(sendbuf, recvbuf, counts, datatype, op, comm) bind(C)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int64_t), value :: comm
      integer(c_int), value :: datatype, op
    end function
    integer(c_int) function like_hopbine_ireduce_scatter(sendbuf, recvbuf, counts, datatype, op, comm, request) &
      bind(C)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int64_t), value :: comm
      integer(c_int), value :: datatype, op
      integer(c_int64_t) :: request
    end function
    integer(c_int) function like_hopbine_alltoallv(sendbuf, sendcounts, sdispls, recvbuf, recvcounts, rdispls, &
      datatype, comm) bind(C)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), intent(in) :: sendcounts(*), sdispls(*), recvcounts(*), rdispls(*)
      integer(c_int64_t), value :: comm
      integer(c_int), value :: datatype
    end function
    integer(c_int) function like_hopbine_ialltoallv(sendbuf, sendcounts, sdispls, recvbuf, recvcounts, rdispls, &
      datatype, comm, request) bind(C)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), intent(in) :: sendcounts(*), sdispls(*), recvcounts(*), rdispls(*)
      integer(c_int64_t), value :: comm
      integer(c_int), value :: datatype
      integer(c_int64_t) :: request
    end function
  end interface

  procedure(like_hopbine_allreduce), bind(C, name="hopbine_allreduce") :: hopbine_allreduce_c
  procedure(like_hopbine_iallreduce), bind(C, name="hopbine_iallreduce") :: hopbine_iallreduce_c
  procedure(like_hopbine_iallreduce), bind(C, name="hopbine_allreduce_init") :: hopbine_allreduce_init_c
  procedure(like_hopbine_reduce), bind(C, name="hopbine_reduce") :: hopbine_reduce_c
  procedure(like_hopbine_ireduce), bind(C, name="hopbine_ireduce") :: hopbine_ireduce_c
  procedure(like_hopbine_ireduce), bind(C, name="hopbine_reduce_init") :: hopbine_reduce_init_c
  procedure(like_hopbine_allreduce), bind(C, name="hopbine_reduce_scatter_block") :: hopbine_reduce_scatter_block_c
  procedure(like_hopbine_iallreduce), bind(C, name="hopbine_ireduce_scatter_block") :: hopbine_ireduce_scatter_block_c
  procedure(like_hopbine_iallreduce), bind(C, name="hopbine_reduce_scatter_block_init") :: &
    hopbine_reduce_scatter_block_init_c
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
  procedure(like_hopbine_reduce_scatter), bind(C, name="hopbine_reduce_scatter") :: hopbine_reduce_scatter_c
  procedure(like_hopbine_ireduce_scatter), bind(C, name="hopbine_ireduce_scatter") :: hopbine_ireduce_scatter_c
  procedure(like_hopbine_ireduce_scatter), bind(C, name="hopbine_reduce_scatter_init") :: &
    hopbine_reduce_scatter_init_c
  procedure(like_hopbine_alltoallv), bind(C, name="hopbine_alltoallv") :: hopbine_alltoallv_c
  procedure(like_hopbine_ialltoallv), bind(C, name="hopbine_ialltoallv") :: hopbine_ialltoallv_c
  procedure(like_hopbine_ialltoallv), bind(C, name="hopbine_alltoallv_init") :: hopbine_alltoallv_init_c
end module hopbine_c_calls
