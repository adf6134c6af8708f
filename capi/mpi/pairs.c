/* MPI_MINLOC and MPI_MAXLOC of pair types with padding, by hopbine's pairs without padding. The padding belongs to
 * the program and is not written. */
#include "job.h"

#include <stdlib.h>

struct double_int { double value; int at; };
struct long_int { long value; int at; };
struct short_int { short value; int at; };

/* A pair of hopbine's. Doubles represent all numbers of an MPI_DOUBLE_INT exactly, 64-bit integers those of the other
 * types. */
union pair {
    double reals[2];
    int64_t integers[2];
};

static void widen(MPI_Datatype type, const void *from, union pair *pairs, MPI_Count n) {
    const struct double_int *doubles = from;
    const struct long_int *longs = from;
    const struct short_int *shorts = from;
    for (MPI_Count i = 0; i < n; i++) {
        if (type == MPI_DOUBLE_INT) pairs[i].reals[0] = doubles[i].value, pairs[i].reals[1] = doubles[i].at;
        else if (type == MPI_LONG_INT) pairs[i].integers[0] = longs[i].value, pairs[i].integers[1] = longs[i].at;
        else pairs[i].integers[0] = shorts[i].value, pairs[i].integers[1] = shorts[i].at;
    }
}

static void narrow(MPI_Datatype type, const union pair *pairs, void *to, MPI_Count n) {
    struct double_int *doubles = to;
    struct long_int *longs = to;
    struct short_int *shorts = to;
    for (MPI_Count i = 0; i < n; i++) {
        if (type == MPI_DOUBLE_INT) doubles[i].value = pairs[i].reals[0], doubles[i].at = (int)pairs[i].reals[1];
        else if (type == MPI_LONG_INT) longs[i].value = (long)pairs[i].integers[0], longs[i].at = (int)pairs[i].integers[1];
        else shorts[i].value = (short)pairs[i].integers[0], shorts[i].at = (int)pairs[i].integers[1];
    }
}

int serve_pairs(struct call *call, const struct state *state, int *code, int *error) {
    const MPI_Datatype type = call->recv_type;
    const int is_real = type == MPI_DOUBLE_INT, is_min = call->op == MPI_MINLOC;
    const int gives_result = call->collective == ALLREDUCE || state->rank == call->root;
    const void *const from = call->send == MPI_IN_PLACE ? call->recv : call->send;
    if (!is_real && type != MPI_LONG_INT && type != MPI_SHORT_INT) return 0;
    if (!is_min && call->op != MPI_MAXLOC) return 0;
    if (call->collective != ALLREDUCE && call->collective != REDUCE) return 0;
    if (!from || (gives_result && !call->recv)) return 0;
    union pair *const pairs = malloc((size_t)call->recv_count * sizeof *pairs);
    if (!pairs) return *error = MPI_ERR_NO_MEM, 1;
    widen(type, from, pairs, call->recv_count);
    hopbine_request_t none;
    *code = issue_call(call, state->comm, &none, gives_result ? HOPBINE_IN_PLACE : pairs, pairs, call->recv_count,
                       is_real ? HOPBINE_PAIR_DOUBLE : HOPBINE_PAIR_INT64, is_min ? HOPBINE_MINLOC : HOPBINE_MAXLOC);
    if (*code == HOPBINE_SUCCESS && gives_result) narrow(type, pairs, call->recv, call->recv_count);
    free(pairs);
    return 1;
}
