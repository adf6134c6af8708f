/* Start and end of hopbine within an MPI program, and hopbine's communicators for MPI's. */
#include "common.h"

#include "../../sys/mpi/functions.h"
#include <hopbine_mpi.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

PER_THREAD int in_hopbine;

enum status status;
int wants_report;
const char *no_requests;
int refuses_aliases;
struct library library = {.start_at_init = start};
hopbine_comm_t world;
static MPI_Comm exchange_comm = MPI_COMM_NULL;
MPI_Comm self_comm = MPI_COMM_NULL;
static MPI_Request pending_receive = MPI_REQUEST_NULL;
static MPI_Group world_group;
static int keyval = MPI_KEYVAL_INVALID, end_keyval = MPI_KEYVAL_INVALID;
unsigned long generation;

/* -- Starting and ending ------------------------------------------------------------------- */

/* Makes progress on MPI's messages while a rank waits in hopbine. Testing any request makes progress on all of them,
 * and `pending_receive` never completes. (MPICH's MPI_Iprobe makes no progress.) */
static void progress(void *argument) {
    static int is_busy;
    (void)argument;
    if (__atomic_exchange_n(&is_busy, 1, __ATOMIC_ACQUIRE)) return;
    int flag;
    in_hopbine++;
    PMPI_Test(&pending_receive, &flag, MPI_STATUS_IGNORE);
    in_hopbine--;
    __atomic_store_n(&is_busy, 0, __ATOMIC_RELEASE);
}

static int forget(MPI_Comm comm, int key, void *value, void *extra) {
    (void)key, (void)extra;
    struct state *state = value;
    if (library.forget_comm) library.forget_comm(comm);
    __atomic_add_fetch(&generation, 1, __ATOMIC_RELEASE);
    if (state->comm != HOPBINE_COMM_NULL && state->comm != world) hopbine_comm_free(&state->comm);
    free_cache(state);
    free(state);
    return MPI_SUCCESS;
}

const char *kind_of_mpi(void) {
    /* As long as any MPI's text: this MPI may be another than the header's. */
    static char text[8192];
    int length = 0;
    PMPI_Get_library_version(text, &length);
    const int is_of_mpich = strstr(text, "MPICH") || strstr(text, "Intel") || strstr(text, "MVAPICH");
    return strstr(text, "Open MPI") ? "Open MPI" : is_of_mpich ? "MPICH" : NULL;
}

/* Says after HOPBINE_TIMEOUT that this rank waits, unless the watch is over before. */
static void *watch(void *argument) {
    struct watch *const this = argument;
    struct timespec until;
    int code;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)this->seconds + 1;
    while ((code = sem_timedwait(&this->is_over, &until)) != 0 && errno == EINTR) continue;
    if (code != 0)
        fprintf(stderr,
                "hopbine: rank %d has waited %g s for other ranks to start hopbine; one may be late, or it may not be loaded there\n",
                this->rank, this->seconds);
    return NULL;
}

void begin_watch(struct watch *this) {
    sigset_t all, before;
    this->seconds = hopbine_timeout();
    PMPI_Comm_rank(MPI_COMM_WORLD, &this->rank);
    sem_init(&this->is_over, 0, 0);
    /* The program's signals are its own threads'. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    /* Only the first ranks say it, of which one may be what the others wait for. */
    this->is_on = this->rank < 2 && pthread_create(&this->thread, NULL, watch, this) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void end_watch(struct watch *this) {
    sem_post(&this->is_over);
    if (this->is_on) pthread_join(this->thread, NULL);
    sem_destroy(&this->is_over);
}

/* Leaves all further calls to MPI, and frees what start() has made besides hopbine. */
static void stop(void) {
    status = CANNOT;
    PMPI_Cancel(&pending_receive);
    PMPI_Wait(&pending_receive, MPI_STATUS_IGNORE);
    PMPI_Comm_free(&exchange_comm);
    PMPI_Comm_free(&self_comm);
    PMPI_Group_free(&world_group);
}

/* Waits until all ranks are in MPI_Finalize: without a limit, as MPI does, while hopbine_finalize() calls a rank missing
 * that is late. The others' calls may need this rank. */
static void await_all_ranks(void) {
    MPI_Request request;
    uint64_t seen = 0;
    /* A rank that has been lost ends the wait, where MPI tells of it. */
    PMPI_Comm_set_errhandler(exchange_comm, MPI_ERRORS_RETURN);
    int are_here = PMPI_Ibarrier(exchange_comm, &request) != MPI_SUCCESS;
    while (!are_here) {
        hopbine_progress(world, 1, &seen);
        if (PMPI_Test(&request, &are_here, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
        /* Ranks that are late get the core. */
        usleep(100);
    }
}

/* Delete callback of an attribute of MPI_COMM_SELF, which MPI_Finalize frees first. If the program has started
 * hopbine itself (`value` is not null), the program has to end it. */
static int end(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)extra;
    in_hopbine++;
    if (library.end_requests) library.end_requests();
    if (!value) await_all_ranks();
    if (!value && hopbine_finalize() != HOPBINE_SUCCESS && !hopbine_last_error_is_said_elsewhere())
        fprintf(stderr, "hopbine: %s\n", hopbine_last_error());
    stop();
    in_hopbine--;
    return MPI_SUCCESS;
}

/* Sets `status`, when all else that calls need is there: another thread may be about to read it. */
static void try_to_start(void) {
    int rank, size, good, first, error;
    const char *reason = NULL;
    struct watch watch;
    wants_report = hopbine_report_wanted();
    list_types();
    const char *const kind = kind_of_mpi();
    refuses_aliases = kind && strcmp(kind, "MPICH") == 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    begin_watch(&watch);
    /* PMPI_Comm_dup would copy the program's attributes. */
    PMPI_Comm_split(MPI_COMM_WORLD, 0, 0, &exchange_comm);
    PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &self_comm);
    PMPI_Comm_set_errhandler(self_comm, MPI_ERRORS_RETURN);
    PMPI_Irecv(NULL, 0, MPI_BYTE, 0, 0, self_comm, &pending_receive);
    PMPI_Comm_group(MPI_COMM_WORLD, &world_group);
    /* The first rank whose variables are not valid, or not those of rank 0, says why. */
    const int is_valid = read_settings(0);
    unsigned of_first = all_wanted();
    PMPI_Bcast(&of_first, 1, MPI_UNSIGNED, 0, exchange_comm);
    const int unclear = is_valid && all_wanted() == of_first ? size : rank;
    PMPI_Allreduce(&unclear, &first, 1, MPI_INT, MPI_MIN, exchange_comm);
    end_watch(&watch);
    if (first < size) {
        if (first == rank && read_settings(1))
            fprintf(stderr, "hopbine: rank %d has another HOPBINE_ONLY or HOPBINE_EXCEPT than rank 0: all ranks need the "
                            "same; MPI serves all calls\n", rank);
        stop();
        return;
    }
    int is_started = 0, n_ranks = 0, own = 0;
    hopbine_initialized(&is_started);
    if (is_started) {
        /* The program has started hopbine itself. */
        world = hopbine_comm_world();
        good = hopbine_comm_size(world, &n_ranks) == HOPBINE_SUCCESS && hopbine_comm_rank(world, &own) == HOPBINE_SUCCESS;
        if (good && (n_ranks != size || own != rank)) {
            good = 0;
            reason = "the program has started hopbine with other ranks than MPI_COMM_WORLD's, or in another order";
        }
    } else {
        /* hopbine's messages between hosts can go over MPI. */
        const MPI_Comm everybody = MPI_COMM_WORLD;
        good = hopbine_init_mpi(hopbine_mpi_functions(), &everybody, progress, NULL, &world) == HOPBINE_SUCCESS;
    }
    /* As with MPI, a mismatch between ranks fails only the call concerned, where that is possible. */
    if (good && !is_started) good = hopbine_spare() == HOPBINE_SUCCESS;
    /* The progress thread (progress_thread.c) needs MPI_THREAD_MULTIPLE if hopbine's messages go over MPI. */
    int level, mine[2], everybodys[2];
    PMPI_Query_thread(&level);
    mine[0] = good ? size : rank;
    mine[1] = level == MPI_THREAD_MULTIPLE || strcmp(hopbine_backend(), "mpi") != 0;
    PMPI_Allreduce(mine, everybodys, 2, MPI_INT, MPI_MIN, exchange_comm);
    first = everybodys[0];
    if (first == rank) fprintf(stderr, "hopbine: %s; MPI serves all calls\n", reason ? reason : hopbine_last_error());
    /* Requests are served only if MPI_Wait is interposed, too. */
    if (!library.serve_request) no_requests = "a request, without libhopbine_preload.so";
    if (!everybodys[1]) no_requests = "a request over messages of MPI's, without MPI_THREAD_MULTIPLE";
    if (first < size) {
        stop();
    } else {
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL);
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &end_keyval, NULL);
        PMPI_Comm_set_attr(MPI_COMM_SELF, end_keyval, is_started ? &world : NULL);
        state_of(MPI_COMM_WORLD, 1, &error);
        state_of(MPI_COMM_SELF, 1, &error);
        __atomic_store_n(&status, STARTED, __ATOMIC_RELEASE);
    }
}

void start(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (in_hopbine) return;
    in_hopbine++;
    pthread_mutex_lock(&lock);
    if (status == NEVER_TRIED) try_to_start();
    pthread_mutex_unlock(&lock);
    in_hopbine--;
}

static void print_not_started(void) {
    static int is_said;
    int rank;
    if (__atomic_exchange_n(&is_said, 1, __ATOMIC_RELAXED)) return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        fputs("hopbine: not started in MPI_Init: MPI serves HB_ calls until HB_Init, or a blocking one on all ranks\n",
              stderr);
}

void start_with(MPI_Comm comm, enum form form) {
    int is_there = 0, compared = MPI_UNEQUAL;
    if (in_hopbine) return;
    PMPI_Initialized(&is_there);
    if (!is_there) return;
    if (form != NONBLOCKING && comm != MPI_COMM_NULL) PMPI_Comm_compare(comm, MPI_COMM_WORLD, &compared);
    if (compared != MPI_UNEQUAL) start();
    else print_not_started();
}

EXPORTED int HB_Init(void) {
    start();
    return MPI_SUCCESS;
}

/* -- Communicators ------------------------------------------------------------------------- */

/* Broadcasts the number of a new communicator from its first rank. */
static uint64_t agree(uint64_t number, void *comm) {
    return PMPI_Bcast(&number, 1, MPI_UINT64_T, 0, *(MPI_Comm *)comm) == MPI_SUCCESS ? number : 0;
}

/* Writes the ranks in MPI_COMM_WORLD of the ranks of `comm`; returns whether all of them are of it. Ranks that know
 * this of `parent`, which `comm` was made from, tell each other their own: to translate a group, Open MPI searches all
 * of MPI_COMM_WORLD for each of its ranks. Other communicators may contain ranks of another MPI_COMM_WORLD, on which
 * hopbine may not run. */
static int translate(MPI_Comm comm, const struct state *state, MPI_Comm parent, int *ranks) {
    int error, own;
    const struct state *const known = state_of(parent, 0, &error);
    MPI_Group group;
    if (parent == MPI_COMM_WORLD || (known && known->is_of_world)) {
        PMPI_Comm_rank(MPI_COMM_WORLD, &own);
        return PMPI_Allgather(&own, 1, MPI_INT, ranks, 1, MPI_INT, comm) == MPI_SUCCESS;
    }
    int *const members = malloc((size_t)state->size * sizeof *members);
    for (int rank = 0; rank < state->size; rank++) members[rank] = rank;
    PMPI_Comm_group(comm, &group);
    PMPI_Group_translate_ranks(group, state->size, members, world_group, ranks);
    PMPI_Group_free(&group);
    free(members);
    for (int rank = 0; rank < state->size; rank++)
        if (ranks[rank] == MPI_UNDEFINED) return 0;
    return 1;
}

/* Makes hopbine's communicator of the ranks of `comm`; all of them call it. `parent` is what it was made from, or null
 * if this is not known. */
static void init_state(MPI_Comm comm, struct state *state, MPI_Comm parent) {
    int is_inter;
    PMPI_Comm_test_inter(comm, &is_inter);
    PMPI_Comm_rank(comm, &state->rank);
    PMPI_Comm_size(comm, &state->size);
    if (is_inter) {
        state->reason = "an intercommunicator";
        return;
    }
    if (state->size == 1) {
        state->reason = "a rank alone";
        return;
    }
    if (comm == MPI_COMM_WORLD) {
        state->comm = world;
        state->is_of_world = 1;
        return;
    }
    int *const ranks = malloc((size_t)state->size * sizeof *ranks);
    state->is_of_world = translate(comm, state, parent, ranks);
    if (!state->is_of_world)
        state->reason = "ranks that are not of MPI_COMM_WORLD";
    else if (hopbine_comm_join(world, state->size, ranks, agree, &comm, &state->comm) != HOPBINE_SUCCESS)
        state->reason = "no further communicator could be made";
    free(ranks);
    /* A first call ends at another time on each rank, and a thread of the program may meanwhile make a communicator of
     * this one, for which all ranks must do the same. */
    if (parent == MPI_COMM_NULL) state->is_of_world = 0;
}

/* The communicator that this thread has MPI free, until MPI returns. If a callback has left MPI by a leap or an
 * exception, until MPI frees that communicator after all, or gives its handle to another. */
static PER_THREAD MPI_Comm dying = MPI_COMM_NULL;

MPI_Comm set_dying(MPI_Comm comm) {
    const MPI_Comm before = comm == dying ? MPI_COMM_NULL : dying;
    dying = comm;
    __atomic_add_fetch(&generation, 1, __ATOMIC_RELEASE);
    return before;
}

/* state_of() for a communicator made from `parent`, as init_state() takes it. */
static struct state *find_state(MPI_Comm comm, int creates, MPI_Comm parent, int *error) {
    static PER_THREAD MPI_Comm last;
    static PER_THREAD struct state *of_last;
    static PER_THREAD unsigned long at;
    static struct state of_dying = {.reason = "a communicator that is being freed"};
    const unsigned long now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    if (of_last && at == now && last == comm) return of_last;
    if (comm == MPI_COMM_NULL) return NULL;
    if (comm == dying) return &of_dying;
    struct state *state = NULL;
    int found = 0;
    *error = PMPI_Comm_get_attr(comm, keyval, &state, &found);
    if (*error != MPI_SUCCESS) return NULL;
    if (!found) {
        state = creates ? calloc(1, sizeof *state) : NULL;
        if (!state) return NULL;
        in_hopbine++;
        init_state(comm, state, parent);
        PMPI_Comm_set_attr(comm, keyval, state);
        in_hopbine--;
    }
    last = comm, of_last = state, at = now;
    return state;
}

struct state *state_of(MPI_Comm comm, int creates, int *error) {
    return find_state(comm, creates, MPI_COMM_NULL, error);
}

void create_state(MPI_Comm comm, MPI_Comm parent) {
    int error;
    if (comm == dying) dying = MPI_COMM_NULL;
    if (status == STARTED && !in_hopbine) find_state(comm, 1, parent, &error);
}

void mark_revoked(MPI_Comm comm) {
    int error = MPI_SUCCESS;
    if (status != STARTED || in_hopbine || comm == MPI_COMM_NULL) return;
    struct state *state = state_of(comm, 0, &error);
    if (!state && error == MPI_SUCCESS && (state = calloc(1, sizeof *state))) PMPI_Comm_set_attr(comm, keyval, state);
    if (state) state->reason = "a revoked communicator";
}
