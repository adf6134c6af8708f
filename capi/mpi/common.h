/* Declarations common to the files of this directory.
 *
 * A call has two entry points: HB_Allreduce (hb_calls.c), and the interposed MPI_Allreduce (mpi_calls.c). Both
 * describe it as a `struct call`. hopbine either serves the call or sets the reason why not, and then MPI gets it.
 * These files are C, compiled by mpicc, since only MPI's header defines its handles and constants. From hopbine they
 * use hopbine.h. */
#ifndef HOPBINE_COMMON_H
#define HOPBINE_COMMON_H

#include "signatures.h"

#include <hopbine.h>
#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>

/* Exported symbols: HB_ and MPI_ calls, and functions for the Fortran modules. */
#define EXPORTED __attribute__((visibility("default")))

/* A thread-local variable that is read without a function call. The initial-exec model is safe: these libraries are
 * loaded at a program's start, or their variables fit into the loader's reserve of static TLS. */
#define PER_THREAD __thread __attribute__((tls_model("initial-exec")))

static inline int is_reduction(enum collective c) { return c <= REDUCE_SCATTER_BLOCK || c >= REDUCE_SCATTER; }

/* The three forms of each collective. */
enum form { BLOCKING, NONBLOCKING, PERSISTENT };

/* Lists of the vector forms: MPI_Count and MPI_Aint if `is_wide`, else int. Lists of types are alltoallw's. */
struct lists {
    const void *send_counts, *send_displs, *recv_counts, *recv_displs;
    const MPI_Datatype *send_types, *recv_types;
    int is_wide;
};

/* A call of MPI's. Members that a collective does not use are zero. */
struct call {
    enum collective collective;
    enum form form;
    const void *send;
    MPI_Count send_count;
    MPI_Datatype send_type;
    void *recv;
    MPI_Count recv_count;
    MPI_Datatype recv_type;
    /* Null but for the vector forms. */
    const struct lists *lists;
    MPI_Op op;
    int root;
    MPI_Comm comm;
    /* Receives the request, unless the call is blocking. */
    MPI_Request *request;
    /* Set by serve() for passed(): why hopbine does not serve the call, and when the call began. */
    const char *reason;
    double began;
};

/* Serves a call and sets *code, or returns 0: then MPI has to be called, and passed() after it. */
int serve(struct call *call, int *code);

/* Adds a call that MPI has served to the report, unless it has failed; returns `code`. */
int passed(const struct call *call, int code);

/* Starts hopbine on all ranks of MPI_COMM_WORLD, unless that has been tried. Collective; any thread of a rank may make
 * the call, and others wait for it. */
void start(void);

/* The same from within an HB_ call, if all ranks of MPI_COMM_WORLD make that call and it may block. */
void start_with(MPI_Comm comm, enum form form);

/* A thread that watches how long this rank waits in MPI for all ranks of MPI_COMM_WORLD: one in which hopbine is not loaded
 * never comes, and MPI waits without a limit. */
struct watch {
    sem_t is_over;
    pthread_t thread;
    double seconds;
    int rank, is_on;
};
void begin_watch(struct watch *this);
void end_watch(struct watch *this);

/* The name of MPI's kind by its version text, as the header of the standard ABI does not tell it: "Open MPI", "MPICH"
 * (derivatives, too), or null. */
const char *kind_of_mpi(void);

/* Sets the function that looks up MPI's functions. libhopbine_preload.so calls it first (preload.c). */
EXPORTED void hopbine_find_by(void *(*find)(const char *name));

/* Makes a call that hopbine does not serve and for which MPI has no function `name`: with int counts if only MPI's
 * large-count form is missing; else the call fails. */
int call_missing_function(const struct call *call, const char *name, MPI_Info info);

/* Number of blocks in the lists of a call. */
int n_blocks(const struct call *call);

/* Whether this rank is the root of a gather or scatter; 1 for other calls. */
int is_call_root(const struct call *call);

extern enum status { NEVER_TRIED, STARTED, CANNOT } status;
extern int wants_report;

/* Why no non-blocking or persistent call is served, on any rank; null if they are. */
extern const char *no_requests;

/* Nonzero while hopbine runs: MPI calls are then hopbine's own and go to MPI. Zero while MPI serves a call or makes a
 * communicator, since an error handler that MPI calls may not return. */
extern PER_THREAD int in_hopbine;

/* Tests of MPI's still to be repeated. Every call of MPI's makes progress on all MPI messages; a call that hopbine
 * serves does not. Some tests of MPI's look before they make progress: right after a call that hopbine has served
 * they would miss what has arrived during it, while after MPI's own barrier they would see it, which programs rely
 * on. So a test that finds nothing is repeated (RETEST), until that many tests since the last served call have been
 * in vain. */
extern int retests_left;
enum { RETESTS_AFTER_A_CALL = 4 };

/* Called after a call that hopbine may have served. */
static inline void note_call(void) { __atomic_store_n(&retests_left, RETESTS_AFTER_A_CALL, __ATOMIC_RELAXED); }

/* hopbine's state of an MPI communicator, an attribute of it. */
struct state {
    hopbine_comm_t comm;
    int size, rank;
    /* Whether all its ranks have known, since they made the communicator, that they are of one MPI_COMM_WORLD. */
    int is_of_world;
    /* Why MPI serves all calls on it; null if hopbine does. */
    const char *reason;
    /* The cache of served calls (call_cache.c); null before the first. */
    struct cached_call *cache;
};

/* Frees the cache. */
void free_cache(struct state *state);

/* The state of `comm`. If it has none yet: null, or a new one if `creates`, which is collective. All ranks get the same
 * answer if they have made the same calls on it. If `comm` is not valid, MPI raises that here, perhaps in a handler
 * that does not return, and *error is set: the program's communicators come here before `in_hopbine` is raised. */
struct state *state_of(MPI_Comm comm, int creates, int *error);

/* Changes whenever a communicator is freed, which invalidates what threads have cached of their last communicator. */
extern unsigned long generation;

/* The last communicator of this thread on which hopbine serves nothing, and `generation` + 1 at that time. */
struct unserved_comm {
    MPI_Comm comm;
    unsigned long at;
};
extern PER_THREAD struct unserved_comm last_unserved_comm;

/* By collective: a bit for each form that hopbine serves on no communicator. */
extern unsigned char unserved_forms[N_COLLECTIVES];

static inline int is_unserved(enum collective collective, enum form form, MPI_Comm comm) {
    return (__atomic_load_n(&unserved_forms[collective], __ATOMIC_RELAXED) >> form & 1) ||
           (last_unserved_comm.comm == comm &&
            last_unserved_comm.at == __atomic_load_n(&generation, __ATOMIC_ACQUIRE) + 1);
}

/* Makes the state of a new communicator, made from `parent`. All of its ranks call this. */
void create_state(MPI_Comm comm, MPI_Comm parent);

/* Notes that this thread has MPI free `comm`; returns the communicator noted before. Delete callbacks of the program's
 * attributes may call collectives on it, which MPI serves, on all ranks: its state may be gone already, and MPI would
 * not delete a new one. */
MPI_Comm set_dying(MPI_Comm comm);

/* Notes that `comm` is being revoked: hopbine serves nothing on it any more, on this rank. */
void mark_revoked(MPI_Comm comm);

/* Functions in which libhopbine_hb.so and libhopbine_mpi.so differ: each library sets its own when it is loaded. So
 * files that are in both libraries do not refer to functions of only one. */
struct library {
    /* Called at the end of MPI_Init: start(), or the start_at_init() of libhopbine_hb.so. */
    void (*start_at_init)(void);
    /* Starts a non-blocking call or prepares a persistent one, as serve_job() does, and sets *call->request. This
     * member and those below are null in the library that serves no requests. */
    int (*serve_request)(struct call *call, struct state *state, int *code, int *error);
    /* Called when a communicator is freed; its requests continue. */
    void (*forget_comm)(MPI_Comm comm);
    /* Called in MPI_Finalize. */
    void (*end_requests)(void);
};
extern struct library library;

/* hopbine's communicator of all ranks, once hopbine has started. */
extern hopbine_comm_t world;

/* A communicator of this rank, for messages and packing of this library's. */
extern MPI_Comm self_comm;

/* Serves a call, except for what end_job() does. Arguments as in job.h. */
struct job;
int serve_job(struct call *call, const struct state *state, struct job *job, int *code, int *error);

/* Prints a failure to stderr, unless another rank prints it; returns MPI's error class for hopbine's code. A failure of
 * begin_job() or end_job() has a negative code and a message of its own, not `message`, which is of an earlier failure. */
int print_failure(int code, const char *message, int is_said_elsewhere);

/* The counts of a reduce-scatter, which the caller frees; null if *error is set. */
int64_t *counts_of(const struct call *call, int size, int *error);

/* Returns a copy of a list that MPI reads until a request is done or freed. This library cannot see when that is, so
 * a copy stays until the program ends, and equal lists share one copy. Null if memory is missing. */
const void *intern_list(const void *list, size_t bytes);

/* Packs `count` elements of a type with holes, of `each` bytes of data, into a sequence of bytes; or unpacks them
 * (`is_back`). */
int pack_or_unpack(char *packed, char *unpacked, MPI_Count count, MPI_Datatype type, MPI_Count each, int is_back);

/* Whether a call's send and receive buffers overlap. MPI forbids overlap, but not every MPI detects it, and programs
 * rely on a result as if the buffers were apart. MPICH refuses equal addresses (`refuses_aliases`); such a call then
 * goes to MPI. */
int buffers_overlap(const void *send, int64_t sent, const void *recv, int64_t received);
extern int refuses_aliases;

/* Properties of an MPI type. */
struct type {
    /* Bytes of data of one element, and whether elements lie in memory exactly as they are sent. */
    MPI_Count bytes;
    int contiguous;
};

/* Whether a type is predefined, and so never freed. */
int is_predefined(MPI_Datatype datatype);

/* Fills in `type`; returns 0 if the datatype is not valid for communication. */
int query_type(MPI_Datatype datatype, struct type *type);

/* How a reduction is computed. */
enum kernel {
    /* By hopbine, with its operator *number on elements *element. */
    BY_HOPBINE,
    /* By MPI_Reduce_local, in the order of ranks: user-defined operators, and MPI's operators on elements that
     * hopbine has no kernel for. */
    BY_REDUCE_LOCAL,
    /* MPI serves the call: the combination is not defined, or not known to be. */
    BY_MPI,
};
enum kernel kernel_of(MPI_Op op, MPI_Datatype datatype, int *number, int *element);

/* Called at the start. list_types() fills the table that kernel_of() uses. read_settings() reads the variables behind
 * is_wanted() and are_requests_wanted(); it returns 0 if one is not valid, and prints that if `prints_errors`. */
void list_types(void);
int read_settings(int prints_errors);

/* The value of HOPBINE_START: hopbine starts at the end of MPI_Init, or with the first call that needs it. */
enum start_time { AT_INIT, AT_CALL, AT_UNKNOWN };
enum start_time start_wanted(void);

/* What HOPBINE_ONLY and HOPBINE_EXCEPT allow, as one number: it must be the same on all ranks. */
unsigned all_wanted(void);

/* Whether HOPBINE_ONLY and HOPBINE_EXCEPT allow a collective. */
int is_wanted(enum collective collective);

/* Whether non-blocking and persistent calls may be served: not if HOPBINE_EXCEPT has "requests". */
int are_requests_wanted(void);

/* The name of a collective in lower case, for instance "reduce_scatter_block". */
const char *collective_name(enum collective collective);

/* The MPI name of a call for reports, for instance "MPI_Iallreduce". */
const char *call_name(enum collective collective, enum form form);

#endif
