/* What the files of this directory know of each other.
 *
 * A call comes in through a door: HB_Allreduce (shaped.c), or MPI_Allreduce itself, interposed
 * (preload.c). Both describe it as a `struct call`, and hopbine either serves it or says why not;
 * then MPI gets it. These files are C, compiled by mpicc, since MPI's handles and constants are
 * defined by its header alone; what they use of hopbine is hopbine.h. */
#ifndef HOPBINE_DOORS_H
#define HOPBINE_DOORS_H

#include "signatures.h"

#include <hopbine.h>
#include <mpi.h>
#include <stdint.h>

/* What is seen outside the library: HB_ and MPI_ calls, and what Fortran calls. */
#define DOOR_OUT __attribute__((visibility("default")))

/* These libraries are there from a program's start, or use so little that the loader has room for it:
 * a variable of a thread's is then read without a call. */
#define PER_THREAD __thread __attribute__((tls_model("initial-exec")))

static inline int is_reduction(enum collective c) { return c <= REDUCE_SCATTER_BLOCK || c >= REDUCE_SCATTER; }

/* When a call returns. */
enum form { BLOCKING, NONBLOCKING, PERSISTENT };

/* The lists of the vector forms: of MPI_Count and MPI_Aint if they are wide, else of int. Types for alltoallw. */
struct lists {
    const void *send_counts, *send_displs, *recv_counts, *recv_displs;
    const MPI_Datatype *send_types, *recv_types;
    int is_wide;
};

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
    /* For the vector forms. */
    const struct lists *lists;
    MPI_Op op;
    int root;
    MPI_Comm comm;
    /* Where the request goes, unless the call is blocking. */
    MPI_Request *request;
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

/* The same for an HB_ call, if all ranks of MPI_COMM_WORLD make it and it may wait for them. */
void start_with(MPI_Comm comm, enum form form);

/* Where MPI's functions are, said by libhopbine_preload.so before its first call here (variants.h). */
DOOR_OUT void hopbine_find_by(void *(*find)(const char *name));

/* Makes a call that hopbine does not serve and for which MPI has no function `name`: with counts of int if only the
 * form with larger ones is missing. */
int make_without(const struct call *call, const char *name, MPI_Info info);

extern enum status { NEVER_TRIED, STARTED, CANNOT } status;
extern int wants_report;

/* Why no call that gives a request is served, on any rank; null if some are. */
extern const char *no_requests;

/* Nonzero within hopbine: whatever comes in then is its own and goes to MPI. Not while MPI serves a call or makes
 * a communicator: an error handler that it calls need not come back. */
extern PER_THREAD int within;

/* Calls of MPI's move on all that is its own; those that hopbine serves do not. Some tests of MPI's look before they
 * move on: after a call that hopbine has served they would not see what has come meanwhile, though after MPI's own they
 * would have, as programs rely on that look once after a barrier. So a test that finds nothing looks again (LOOK), until
 * so many times have been in vain. */
extern int looks_due;
enum { LOOKS_AFTER_A_CALL = 4 };

/* hopbine may have served a call. */
static inline void note_call(void) { __atomic_store_n(&looks_due, LOOKS_AFTER_A_CALL, __ATOMIC_RELAXED); }

/* What is kept with a communicator. */
struct state {
    hopbine_comm_t comm;
    int size, rank;
    /* Why MPI serves it; null if hopbine does. */
    const char *reason;
    /* Calls that were served (again.c); null before the first. */
    struct known *known;
};

/* What is kept with `comm`; null if it is none. The first time all of its ranks take part. */
struct state *state_of(MPI_Comm comm);

/* The same, if it is kept already: the same on all ranks, if they have made the same calls on it. */
struct state *known_state_of(MPI_Comm comm);

/* Changes whenever a communicator is freed: what threads remember of the last one is then old. */
extern unsigned long generation;

/* The communicator of this thread's last call of which nothing is served, and the generation, plus 1, at that time. */
struct of_mpi {
    MPI_Comm comm;
    unsigned long at;
};
extern PER_THREAD struct of_mpi of_mpi;

/* By collective, a bit for each form of which nothing is served, on any communicator. */
extern unsigned char left_to_mpi[N_COLLECTIVES];

static inline int is_of_mpi(enum collective collective, enum form form, MPI_Comm comm) {
    return (__atomic_load_n(&left_to_mpi[collective], __ATOMIC_RELAXED) >> form & 1) ||
           (of_mpi.comm == comm && of_mpi.at == __atomic_load_n(&generation, __ATOMIC_ACQUIRE) + 1);
}

/* Has it kept from now on; all its ranks are here. */
void adopt_early(MPI_Comm comm);

/* It is being revoked: nothing on it is served any more, on this rank. */
void leave_revoked(MPI_Comm comm);

/* Where the two libraries differ: each sets its functions when it is loaded. So the files that both have call none
 * that only one has. */
struct library {
    /* At the end of MPI_Init: start(), or in the way of libhopbine_hb.so. */
    void (*start_at_init)(void);
    /* Starts, or prepares, a call that gives a request, as serve_job() does, and sets *call->request. Null where no
     * requests are served, and so are the others. */
    int (*serve_request)(struct call *call, struct state *state, int *code, int *error);
    /* The communicator is freed; its requests go on. */
    void (*forget_comm)(MPI_Comm comm);
    /* At the end. */
    void (*end_requests)(void);
};
extern struct library library;

/* hopbine's communicator of all ranks, once it is started. */
extern hopbine_comm_t world;

/* This rank alone, for messages of the library's. */
extern MPI_Comm own_comm;

/* Serves a call within `job` but for its end. As the functions of job.h. */
struct job;
int serve_job(struct call *call, const struct state *state, struct job *job, int *code, int *error);

/* Says on stderr what has failed, unless another rank says so; MPI's error class for hopbine's code. */
int say_failure(int code, const char *message, int is_said_elsewhere);

/* The counts of a reduce-scatter, which is to be freed; null if *error says what is wrong. */
int64_t *counts_of(const struct call *call, int size, int *error);

/* A copy of a list that MPI reads until a request is done, or freed: nobody tells this library when that is. So a list
 * stays to the end, but each only once, whatever number of calls has it. Null if there is no memory. */
const void *keep_list(const void *list, size_t bytes);

/* Copies `count` elements of a type with holes, of `each` bytes of data, into a row, or back. */
int copy_loose(char *row, char *loose, MPI_Count count, MPI_Datatype type, MPI_Count each, int is_back);

/* What a call sends lies where it receives, too. MPI forbids that, but not every MPI refuses it, and
 * programs rely on what then happens: they get what they would get if it did not. MPICH refuses the
 * same address: then such a call is MPI's. */
int do_overlap(const void *send, int64_t sent, const void *recv, int64_t received);
extern int refuses_aliases;

/* What hopbine has to know of a type. */
struct type {
    /* Bytes of data of one, and whether they lie in memory as they are sent. */
    MPI_Count bytes;
    int contiguous;
};

/* Whether a type is MPI's own, which is never freed. */
int is_predefined(MPI_Datatype datatype);

/* Fills in `type`; 0 if it is no type that can be communicated. */
int look_at_type(MPI_Datatype datatype, struct type *type);

/* Who combines what. */
enum kernel {
    /* hopbine, by operator *op and elements of type *element. */
    OURS,
    /* MPI_Reduce_local, from the first rank's data to the last one's: a program's own operator, or
     * one of MPI's on elements that hopbine does not know. */
    IN_ORDER,
    /* MPI serves it: not defined, or not known to be. */
    NOBODY,
};
enum kernel kernel_of(MPI_Op op, MPI_Datatype datatype, int *number, int *element);

/* At the start: lists the types that kernel_of() knows; reads what is_wanted() and are_requests_wanted()
 * tell, which is 0 if a variable has a wrong value, as it says then if `is_told`. */
void list_types(void);
int read_wishes(int is_told);

/* What HOPBINE_START says: whether hopbine starts at the end of MPI_Init, or at the first call that wants it. */
enum start_time { AT_INIT, AT_CALL, AT_UNKNOWN };
enum start_time start_wanted(void);

/* The number of a collective that HOPBINE_ONLY and HOPBINE_EXCEPT allow. */
int is_wanted(enum collective collective);

/* Whether HOPBINE_EXCEPT has "requests": all forms but the blocking ones are MPI's then. */
int are_requests_wanted(void);

/* "MPI_Iallreduce": the name for reports. */
const char *call_name(enum collective collective, enum form form);

#endif
