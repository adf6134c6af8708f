/* What the Fortran module hopbine_mpi calls: HB_ calls with Fortran's handles. */
#include "doors.h"

#include <hopbine_mpi.h>

/* Addresses that stand for MPI_IN_PLACE and MPI_BOTTOM, whose Fortran values only Fortran knows. */
static void *at(const void *address) {
    if (address == (void *)-1) return MPI_IN_PLACE;
    return address == (void *)-2 ? MPI_BOTTOM : (void *)address;
}

DOOR_OUT MPI_Fint hopbine_hb_init_f(void);
MPI_Fint hopbine_hb_init_f(void) {
    return HB_Init();
}

DOOR_OUT MPI_Fint hopbine_hb_barrier_f(MPI_Fint comm);
MPI_Fint hopbine_hb_barrier_f(MPI_Fint comm) {
    return HB_Barrier(MPI_Comm_f2c(comm));
}

DOOR_OUT MPI_Fint hopbine_hb_bcast_f(void *buffer, MPI_Fint count, MPI_Fint type, MPI_Fint root, MPI_Fint
    comm);
MPI_Fint hopbine_hb_bcast_f(void *buffer, MPI_Fint count, MPI_Fint type, MPI_Fint root, MPI_Fint
    comm) {
    return HB_Bcast(at(buffer), count, MPI_Type_f2c(type), root, MPI_Comm_f2c(comm));
}

DOOR_OUT MPI_Fint hopbine_hb_reduce_f(const void *send, void *recv, MPI_Fint count, MPI_Fint type, MPI_Fint
    op, MPI_Fint root, MPI_Fint comm);
MPI_Fint hopbine_hb_reduce_f(const void *send, void *recv, MPI_Fint count, MPI_Fint type, MPI_Fint
    op, MPI_Fint root, MPI_Fint comm) {
    return HB_Reduce(at(send), at(recv), count, MPI_Type_f2c(type), MPI_Op_f2c(op),
        root, MPI_Comm_f2c(comm));
}

DOOR_OUT MPI_Fint hopbine_hb_allreduce_f(const void *send, void *recv, MPI_Fint count, MPI_Fint type,
    MPI_Fint op, MPI_Fint comm);
MPI_Fint hopbine_hb_allreduce_f(const void *send, void *recv, MPI_Fint count, MPI_Fint type,
    MPI_Fint op, MPI_Fint comm) {
    return HB_Allreduce(at(send), at(recv), count, MPI_Type_f2c(type), MPI_Op_f2c(op),
        MPI_Comm_f2c(comm));
}

DOOR_OUT MPI_Fint hopbine_hb_reduce_scatter_block_f(const void *send, void *recv, MPI_Fint count, MPI_Fint
    type, MPI_Fint op, MPI_Fint comm);
MPI_Fint hopbine_hb_reduce_scatter_block_f(const void *send, void *recv, MPI_Fint count, MPI_Fint
    type, MPI_Fint op, MPI_Fint comm) {
    return HB_Reduce_scatter_block(at(send), at(recv), count, MPI_Type_f2c(type),
        MPI_Op_f2c(op), MPI_Comm_f2c(comm));
}

DOOR_OUT MPI_Fint hopbine_hb_reduce_scatter_f(const void *send, void *recv, const MPI_Fint counts[], MPI_Fint
    type, MPI_Fint op, MPI_Fint comm);
MPI_Fint hopbine_hb_reduce_scatter_f(const void *send, void *recv, const MPI_Fint counts[], MPI_Fint
    type, MPI_Fint op, MPI_Fint comm) {
    return HB_Reduce_scatter(at(send), at(recv), counts, MPI_Type_f2c(type),
        MPI_Op_f2c(op), MPI_Comm_f2c(comm));
}

DOOR_OUT MPI_Fint hopbine_hb_scan_f(const void *send, void *recv, MPI_Fint count, MPI_Fint type, MPI_Fint op,
    MPI_Fint comm);
MPI_Fint hopbine_hb_scan_f(const void *send, void *recv, MPI_Fint count, MPI_Fint type, MPI_Fint op,
    MPI_Fint comm) {
    return HB_Scan(at(send), at(recv), count, MPI_Type_f2c(type), MPI_Op_f2c(op),
        MPI_Comm_f2c(comm));
}

DOOR_OUT MPI_Fint hopbine_hb_exscan_f(const void *send, void *recv, MPI_Fint count, MPI_Fint type, MPI_Fint
    op, MPI_Fint comm);
MPI_Fint hopbine_hb_exscan_f(const void *send, void *recv, MPI_Fint count, MPI_Fint type, MPI_Fint
    op, MPI_Fint comm) {
    return HB_Exscan(at(send), at(recv), count, MPI_Type_f2c(type), MPI_Op_f2c(op),
        MPI_Comm_f2c(comm));
}

DOOR_OUT MPI_Fint hopbine_hb_allgather_f(const void *send, MPI_Fint count, MPI_Fint type, void *recv,
    MPI_Fint recv_count, MPI_Fint recv_type, MPI_Fint comm);
MPI_Fint hopbine_hb_allgather_f(const void *send, MPI_Fint count, MPI_Fint type, void *recv,
    MPI_Fint recv_count, MPI_Fint recv_type, MPI_Fint comm) {
    return HB_Allgather(at(send), count, MPI_Type_f2c(type), at(recv), recv_count,
        MPI_Type_f2c(recv_type), MPI_Comm_f2c(comm));
}

DOOR_OUT MPI_Fint hopbine_hb_gather_f(const void *send, MPI_Fint count, MPI_Fint type, void *recv, MPI_Fint
    recv_count, MPI_Fint recv_type, MPI_Fint root, MPI_Fint comm);
MPI_Fint hopbine_hb_gather_f(const void *send, MPI_Fint count, MPI_Fint type, void *recv, MPI_Fint
    recv_count, MPI_Fint recv_type, MPI_Fint root, MPI_Fint comm) {
    return HB_Gather(at(send), count, MPI_Type_f2c(type), at(recv), recv_count,
        MPI_Type_f2c(recv_type), root, MPI_Comm_f2c(comm));
}

DOOR_OUT MPI_Fint hopbine_hb_scatter_f(const void *send, MPI_Fint count, MPI_Fint type, void *recv, MPI_Fint
    recv_count, MPI_Fint recv_type, MPI_Fint root, MPI_Fint comm);
MPI_Fint hopbine_hb_scatter_f(const void *send, MPI_Fint count, MPI_Fint type, void *recv, MPI_Fint
    recv_count, MPI_Fint recv_type, MPI_Fint root, MPI_Fint comm) {
    return HB_Scatter(at(send), count, MPI_Type_f2c(type), at(recv), recv_count,
        MPI_Type_f2c(recv_type), root, MPI_Comm_f2c(comm));
}

DOOR_OUT MPI_Fint hopbine_hb_alltoall_f(const void *send, MPI_Fint count, MPI_Fint type, void *recv, MPI_Fint
    recv_count, MPI_Fint recv_type, MPI_Fint comm);
MPI_Fint hopbine_hb_alltoall_f(const void *send, MPI_Fint count, MPI_Fint type, void *recv, MPI_Fint
    recv_count, MPI_Fint recv_type, MPI_Fint comm) {
    return HB_Alltoall(at(send), count, MPI_Type_f2c(type), at(recv), recv_count,
        MPI_Type_f2c(recv_type), MPI_Comm_f2c(comm));
}

DOOR_OUT MPI_Fint hopbine_hb_allgatherv_f(const void *send, MPI_Fint count, MPI_Fint type, void *recv, const
    MPI_Fint counts[], const MPI_Fint displs[], MPI_Fint recv_type, MPI_Fint comm);
MPI_Fint hopbine_hb_allgatherv_f(const void *send, MPI_Fint count, MPI_Fint type, void *recv, const
    MPI_Fint counts[], const MPI_Fint displs[], MPI_Fint recv_type, MPI_Fint comm) {
    return HB_Allgatherv(at(send), count, MPI_Type_f2c(type), at(recv), counts, displs,
        MPI_Type_f2c(recv_type), MPI_Comm_f2c(comm));
}

DOOR_OUT MPI_Fint hopbine_hb_gatherv_f(const void *send, MPI_Fint count, MPI_Fint type, void *recv, const
    MPI_Fint counts[], const MPI_Fint displs[], MPI_Fint recv_type, MPI_Fint root, MPI_Fint comm);
MPI_Fint hopbine_hb_gatherv_f(const void *send, MPI_Fint count, MPI_Fint type, void *recv, const
    MPI_Fint counts[], const MPI_Fint displs[], MPI_Fint recv_type, MPI_Fint root, MPI_Fint comm) {
    return HB_Gatherv(at(send), count, MPI_Type_f2c(type), at(recv), counts, displs,
        MPI_Type_f2c(recv_type), root, MPI_Comm_f2c(comm));
}

DOOR_OUT MPI_Fint hopbine_hb_scatterv_f(const void *send, const MPI_Fint counts[], const MPI_Fint displs[],
    MPI_Fint type, void *recv, MPI_Fint recv_count, MPI_Fint recv_type, MPI_Fint root, MPI_Fint
    comm);
MPI_Fint hopbine_hb_scatterv_f(const void *send, const MPI_Fint counts[], const MPI_Fint displs[],
    MPI_Fint type, void *recv, MPI_Fint recv_count, MPI_Fint recv_type, MPI_Fint root, MPI_Fint
    comm) {
    return HB_Scatterv(at(send), counts, displs, MPI_Type_f2c(type), at(recv),
        recv_count, MPI_Type_f2c(recv_type), root, MPI_Comm_f2c(comm));
}

DOOR_OUT MPI_Fint hopbine_hb_alltoallv_f(const void *send, const MPI_Fint counts[], const MPI_Fint displs[],
    MPI_Fint type, void *recv, const MPI_Fint recv_counts[], const MPI_Fint recv_displs[], MPI_Fint
    recv_type, MPI_Fint comm);
MPI_Fint hopbine_hb_alltoallv_f(const void *send, const MPI_Fint counts[], const MPI_Fint displs[],
    MPI_Fint type, void *recv, const MPI_Fint recv_counts[], const MPI_Fint recv_displs[], MPI_Fint
    recv_type, MPI_Fint comm) {
    return HB_Alltoallv(at(send), counts, displs, MPI_Type_f2c(type), at(recv),
        recv_counts, recv_displs, MPI_Type_f2c(recv_type), MPI_Comm_f2c(comm));
}
