/* Cache of repeated calls. What the analysis of a served call found is kept with its communicator and reused for
 * further calls that differ only in their addresses, blocking or non-blocking. There is no lock: MPI forbids threads
 * to call collectives on one communicator at the same time. */
#include "job.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A set-associative cache: a call can be in any way of its set. */
enum { N_SETS = 8, N_WAYS = 4 };

struct cached_call {
    struct call call;
    /* Arguments of hopbine's call; they determine the bytes of the buffers. */
    int64_t count;
    int element, op;
    int is_set;
    /* Repeats the call without checking it again, from its third time on; null if hopbine cannot, or has not been
     * asked yet. */
    hopbine_repeated_t *repeated;
    int has_asked;
};

/* The set of a call. */
static struct cached_call *set_of(struct cached_call *all, const struct call *call) {
    const uint64_t kind = (uint64_t)call->collective << 32 | (uint32_t)call->root;
    return &all[N_WAYS * (((uint64_t)call->recv_count + kind * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u >> 61)];
}

static int is_in_place(const struct call *call) {
    return (call->send == MPI_IN_PLACE) + 2 * (call->recv == MPI_IN_PLACE);
}

/* Whether two calls differ only in their addresses, or in the root if this rank is the root of neither. */
static int matches(const struct call *call, const struct call *other, const struct state *state) {
    return call->collective == other->collective && call->recv_count == other->recv_count &&
           call->recv_type == other->recv_type && call->op == other->op && call->send_count == other->send_count &&
           call->send_type == other->send_type && is_in_place(call) == is_in_place(other) &&
           (call->root == other->root || (call->root != state->rank && other->root != state->rank &&
                                          (unsigned)call->root < (unsigned)state->size));
}

/* Asks hopbine for what repeats a call that it has just made. */
static void prepare(struct cached_call *cached, const struct call *call, hopbine_comm_t comm, const void *send,
                    void *recv) {
    char function[64];
    snprintf(function, sizeof function, "hopbine_%s", collective_name(call->collective));
    cached->has_asked = 1;
    hopbine_repeat_prepare(function, send, recv, cached->count, cached->element, cached->op, call->root, comm,
                           &cached->repeated);
}

int serve_cached(const struct call *call, const struct state *state, hopbine_request_t *request, int *code) {
    if (!state->cache) return 0;
    struct cached_call *cached = set_of(state->cache, call), *const end = cached + N_WAYS;
    while (!cached->is_set || !matches(call, &cached->call, state))
        if (++cached == end) return 0;
    const int in_place = is_in_place(call);
    const void *const send = in_place == 1 ? HOPBINE_IN_PLACE : call->send;
    void *const recv = in_place == 2 ? HOPBINE_IN_PLACE : call->recv;
    if (cached->repeated) {
        *code = request ? hopbine_repeat_start(cached->repeated, send, recv, call->root, request)
                        : hopbine_repeat(cached->repeated, send, recv, call->root);
        if (*code != HOPBINE_NOT_REPEATED) return 1;
    }
    *code = issue_call(call, state->comm, request, send, recv, cached->count, cached->element, cached->op);
    if (*code == HOPBINE_SUCCESS && !cached->has_asked) prepare(cached, call, state->comm, send, recv);
    if (*code != HOPBINE_ERR_BUFFER) return 1;
    /* A buffer is null, or the two overlap: nothing has been done, and the call takes the full path. */
    *code = HOPBINE_SUCCESS;
    return 0;
}

void cache_call(const struct call *call, struct state *state, const struct job *job) {
    const struct side *const send = &job->send, *const recv = &job->recv;
    if (job->count < 0 || send->copy || recv->copy || job->scratch) return;
    /* A program may free a derived type, and get another type under the same handle. */
    if ((send->n && !is_predefined(send->type)) || (recv->n && !is_predefined(recv->type))) return;
    if (!state->cache) state->cache = calloc(N_SETS * N_WAYS, sizeof *state->cache);
    if (!state->cache) return;
    /* Replaces the entry of the same call, else the oldest entry of the set. */
    struct cached_call *const set = set_of(state->cache, call);
    int way = 0;
    while (way < N_WAYS - 1 && !(set[way].is_set && matches(call, &set[way].call, state))) way++;
    hopbine_repeat_free(set[way].repeated);
    memmove(set + 1, set, way * sizeof *set);
    *set = (struct cached_call){*call, job->count, job->element, job->op, 1, NULL, 0};
}

void free_cache(struct state *state) {
    for (int i = 0; state->cache && i < N_SETS * N_WAYS; i++) hopbine_repeat_free(state->cache[i].repeated);
    free(state->cache);
}
