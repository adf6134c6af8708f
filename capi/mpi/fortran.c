/* C side of the Fortran module hopbine_mpi: HB_ calls with Fortran's handles. */
#include "common.h"

#include "forms.h"
#include "fortran.h"
#include <hopbine_mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* A call from Fortran (fortran/mpi/hopbine_mpi_call.f90). Its members have the names of the parameters in
 * signatures.h. */
struct fortran_call {
    /* Counts are of MPI_COUNT_KIND and displacements of MPI_ADDRESS_KIND, else both are default integers. */
    int is_large;
    int collective;
    int64_t n, m;
    fint type, to, op, root, comm, info;
    const void *send;
    void *recv;
    const void *counts, *displs;
    const fint *types;
    const void *to_counts, *to_displs;
    const fint *to_types;
};

_Static_assert(sizeof(MPI_Count) == sizeof(int64_t) && sizeof(MPI_Aint) == sizeof(intptr_t),
               "fortran/mpi/kinds.inc has other kinds of counts or displacements than MPI");

/* Addresses by which the Fortran side passes MPI_IN_PLACE, MPI_BOTTOM, and a buffer with gaps. */
static const void *const in_place = (void *)-1, *const bottom = (void *)-2, *const gaps = (void *)-3;

static void *at(const void *address) {
    if (address == in_place) return MPI_IN_PLACE;
    return address == bottom ? MPI_BOTTOM : (void *)address;
}

/* Conversions of handles have no side effects, so they are declared pure; the attribute needs a function that is not
 * inlined. The compiler then drops the conversions of arguments that a call does not use. */
#define PURE __attribute__((pure, noinline))
PURE static MPI_Datatype type_of(fint type) { return type_of_f(type); }
PURE static MPI_Op op_of(fint op) { return op_of_f(op); }
PURE static MPI_Info info_of(fint info) { return info_of_f(info); }
PURE static MPI_Comm comm_of(fint comm) { return comm_of_f(comm); }

/* Declares all parameters that signatures.h uses, except an alltoallw's types. Each call uses some of them. */
#define MAYBE __attribute__((unused))
#define OPEN(call, N, D)                                                                           \
    MAYBE const void *const send = at((call)->send);                                               \
    MAYBE void *const recv = at((call)->recv), *const buffer = recv;                               \
    MAYBE const N n = (N)(call)->n, m = (N)(call)->m;                                              \
    MAYBE const fint root = (call)->root;                                                      \
    MAYBE const N *const counts = (call)->counts, *const to_counts = (call)->to_counts;            \
    MAYBE const D *const displs = (call)->displs, *const to_displs = (call)->to_displs;            \
    MAYBE const MPI_Datatype type = type_of((call)->type), to = type_of((call)->to);               \
    MAYBE const MPI_Op op = op_of((call)->op);                                                     \
    MAYBE const MPI_Info info = info_of((call)->info);                                             \
    const MPI_Comm comm = comm_of((call)->comm)

static void give(int code, fint *ierror) {
    if (ierror) *ierror = code;
}

EXPORTED void OF_KIND(hopbine_hb_init)(fint *ierror);
void OF_KIND(hopbine_hb_init)(fint *ierror) { give(HB_Init(), ierror); }

/* Number of types on each side of an alltoallw; 0 if `comm_f` is not a communicator. */
static int n_types_on(fint comm_f) {
    int is_inter = 0, n = 0;
    const MPI_Comm comm = comm_of_f(comm_f);
    if (comm == MPI_COMM_NULL) return 0;
    MPI_Comm_test_inter(comm, &is_inter);
    if (is_inter) MPI_Comm_remote_size(comm, &n);
    else MPI_Comm_size(comm, &n);
    return n;
}

/* Converts a list of types to C handles. The caller frees it; null if `comm_f` is not a communicator. */
static MPI_Datatype *types_of(const fint types[], fint comm_f) {
    const int n = n_types_on(comm_f);
    if (n == 0) return NULL;
    MPI_Datatype *const c = malloc((size_t)n * sizeof *c);
    for (int at = 0; c && at < n; at++) c[at] = type_of_f(types[at]);
    return c;
}

/* One case of a switch over collectives, with counts of type N and displacements of type D. */
#define CASE_OF(COLLECTIVE, N, D, CODE)                                                            \
    case COLLECTIVE: {                                                                             \
        OPEN(call, N, D);                                                                          \
        code = CODE;                                                                               \
        break;                                                                                     \
    }

#define MAKE(Name, name, COLLECTIVE, P, A, M) CASE_OF(COLLECTIVE, int, int, HB_##Name A)
#define MAKE_LARGE(Name, name, COLLECTIVE, P, A, M) CASE_OF(COLLECTIVE, MPI_Count, MPI_Aint, HB_##Name##_c A)

EXPORTED void OF_KIND(hopbine_hb_make)(const struct fortran_call *call, fint *ierror);
void OF_KIND(hopbine_hb_make)(const struct fortran_call *call, fint *ierror) {
    const int has_types = call->to_types != NULL;
    MPI_Datatype *const types = has_types && call->send != in_place ? types_of(call->types, call->comm) : NULL;
    MPI_Datatype *const to_types = has_types ? types_of(call->to_types, call->comm) : NULL;
    int code = MPI_SUCCESS;
    if (call->is_large) switch ((enum collective)call->collective) {
            SIGNATURES(MAKE_LARGE, MPI_Count, MPI_Aint)
        default: break;
        }
    else switch ((enum collective)call->collective) {
            SIGNATURES(MAKE, int, int)
            BARRIER_SIGNATURE(MAKE)
        default: break;
        }
    give(code, ierror);
    if (has_types) free(types), free(to_types);
}

/* The error of a non-blocking or persistent call with a non-contiguous buffer; else MPI_SUCCESS. */
static int refuse(const struct fortran_call *call) {
    if (call->send != gaps && call->recv != gaps) return MPI_SUCCESS;
    const MPI_Comm comm = comm_of_f(call->comm);
    fputs("hopbine: a buffer of a call that gives a request has gaps; it must be contiguous\n", stderr);
    PMPI_Comm_call_errhandler(comm == MPI_COMM_NULL ? MPI_COMM_WORLD : comm, MPI_ERR_BUFFER);
    return MPI_ERR_BUFFER;
}

/* Whether C's datatype handles are Fortran integers, as in MPICH. MPI then reads the program's own list, which has to
 * stay. */
#define ARE_TYPES_FORTRANS _Generic((MPI_Datatype)0, fint: 1, default: 0)

/* Sets *types to the list of types of a non-blocking or persistent call, null if it has none or no communicator.
 * Returns the error. */
static int intern_types(const struct fortran_call *call, const fint types_f[], const MPI_Datatype **types) {
    *types = NULL;
    const int n = types_f ? n_types_on(call->comm) : 0;
    if (n == 0) return MPI_SUCCESS;
    if (ARE_TYPES_FORTRANS) return *types = (const void *)types_f, MPI_SUCCESS;
    MPI_Datatype *const c = types_of(types_f, call->comm);
    if (c) *types = intern_list(c, (size_t)n * sizeof *c);
    free(c);
    if (*types) return MPI_SUCCESS;
    PMPI_Comm_call_errhandler(comm_of_f(call->comm), MPI_ERR_NO_MEM);
    return MPI_ERR_NO_MEM;
}

/* A non-blocking or persistent call: CASE expands it for default integer counts, CASE##_LARGE for large counts. */
#define REQUEST_CALL(NAME, CASE)                                                                   \
    EXPORTED void NAME(const struct fortran_call *call, fint *request_f, fint *ierror);    \
    void NAME(const struct fortran_call *call, fint *request_f, fint *ierror) {            \
        const MPI_Datatype *types = NULL, *to_types = NULL;                                        \
        MPI_Request request = MPI_REQUEST_NULL;                                                    \
        int code = refuse(call);                                                                   \
        if (code == MPI_SUCCESS && call->send != in_place) code = intern_types(call, call->types, &types); \
        if (code == MPI_SUCCESS) code = intern_types(call, call->to_types, &to_types);             \
        if (code == MPI_SUCCESS && call->is_large) switch ((enum collective)call->collective) {    \
                SIGNATURES(CASE##_LARGE, MPI_Count, MPI_Aint)                                      \
            default: break;                                                                        \
            }                                                                                      \
        else if (code == MPI_SUCCESS) switch ((enum collective)call->collective) {                 \
                SIGNATURES(CASE, int, int)                                                         \
                BARRIER_SIGNATURE(CASE)                                                            \
            default: break;                                                                        \
            }                                                                                      \
        *request_f = f_of_request(request);                                                     \
        give(code, ierror);                                                                        \
    }

#define BEGIN(Name, name, COLLECTIVE, P, A, M)                                                     \
    CASE_OF(COLLECTIVE, int, int, HB_I##name(UNPAREN A, &request))
#define BEGIN_LARGE(Name, name, COLLECTIVE, P, A, M)                                               \
    CASE_OF(COLLECTIVE, MPI_Count, MPI_Aint, HB_I##name##_c(UNPAREN A, &request))
REQUEST_CALL(OF_KIND(hopbine_hb_begin), BEGIN)

#define PREPARE(Name, name, COLLECTIVE, P, A, M)                                                   \
    CASE_OF(COLLECTIVE, int, int, HB_##Name##_init(UNPAREN A, info, &request))
#define PREPARE_LARGE(Name, name, COLLECTIVE, P, A, M)                                             \
    CASE_OF(COLLECTIVE, MPI_Count, MPI_Aint, HB_##Name##_init_c(UNPAREN A, info, &request))
REQUEST_CALL(OF_KIND(hopbine_hb_prepare), PREPARE)
