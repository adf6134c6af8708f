/* What the files of this directory know of each other.
 *
 * A call comes in through a door: HB_Allreduce (shaped.c), or MPI_Allreduce itself, interposed
 * (preload.c). Both describe it as a `struct call`, and hopbine either serves it or says why not;
 * then MPI gets it. These files are C, compiled by mpicc, since MPI's handles and constants are
 * defined by its header alone; what they use of hopbine is hopbine.h. */
#ifndef HOPBINE_DOORS_H
#define HOPBINE_DOORS_H

#include <hopbine.h>
#include <mpi.h>

/* What is seen outside the library: HB_ and MPI_ calls, and what Fortran calls. */
#define DOOR_OUT __attribute__((visibility("default")))

enum collective {
    ALLREDUCE,
    REDUCE,
    REDUCE_SCATTER_BLOCK,
    BCAST,
    ALLGATHER,
    GATHER,
    SCATTER,
    ALLTOALL,
    BARRIER,
    ALLGATHERV,
    GATHERV,
    SCATTERV,
    ALLTOALLV,
    REDUCE_SCATTER,
    SCAN,
    EXSCAN,
    N_SERVED, /* From here on all go to MPI. */
    ALLTOALLW = N_SERVED,
    N_COLLECTIVES,
};

/* When a call returns. */
enum form { BLOCKING, NONBLOCKING, PERSISTENT };

/* A call of MPI's. What a collective does not have is zero. */
struct call {
    enum collective collective;
    enum form form;
    const void *send;
    MPI_Count send_count;
    MPI_Datatype send_type;
    void *recv;
    MPI_Count recv_count;
    MPI_Datatype recv_type;
    /* Lists of the vector forms: of MPI_Count and MPI_Aint if they are wide, else of int. */
    const void *send_counts, *send_displs, *recv_counts, *recv_displs;
    int is_wide;
    MPI_Op op;
    int root;
    MPI_Comm comm;
    /* Set by serve(), for passed(): why hopbine does not serve it, and when it began. */
    const char *reason;
    double began;
};

/* Serves a call and sets *code, or returns 0: MPI is to be called then, and passed() after it. */
int serve(struct call *call, int *code);

/* Notes that MPI has served a call; returns `code`. */
int passed(const struct call *call, int code);

/* Starts hopbine on all ranks of MPI_COMM_WORLD, if that has not been tried: collective. */
void start(void);

/* Nonzero within hopbine or MPI: whatever comes in then is their own and goes to MPI. */
extern __thread int within;

/* Serve a vector form as bytes, and set *code; or return what is wrong with its arguments. */
int serve_vector(struct call *call, hopbine_comm_t comm, int rank, int size, int *code);
int serve_reduce_scatter(struct call *call, hopbine_comm_t comm, int size, int element, int op, int *code);

/* Copies `count` elements of a type with holes, of `each` bytes of data, into a row, or back. */
int copy_loose(char *row, char *loose, MPI_Count count, MPI_Datatype type, MPI_Count each, int is_back);

/* What hopbine has to know of a type. */
struct type {
    /* Its number for reductions, or -1. */
    int element;
    /* Bytes of data of one, and whether they lie in memory as they are sent. */
    MPI_Count bytes;
    int contiguous;
};

/* Fills in `type`; 0 if it is no type that can be communicated. */
int look_at_type(MPI_Datatype datatype, struct type *type);

/* hopbine's number of a predefined operator, or -1. */
int operator_of(MPI_Op op);

/* Whether hopbine applies an operator to elements of a type as MPI defines it. */
int is_defined(int op, int element);

/* The number of a collective that HOPBINE_ONLY and HOPBINE_EXCEPT allow. */
int is_wanted(enum collective collective);

/* "MPI_Iallreduce": the name for reports. */
const char *call_name(enum collective collective, enum form form);

#endif
