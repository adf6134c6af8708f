/* The collectives by name: in reports, and in HOPBINE_ONLY and HOPBINE_EXCEPT. */
#include "doors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const names[N_COLLECTIVES] = {
    [ALLREDUCE] = "allreduce",
    [REDUCE] = "reduce",
    [REDUCE_SCATTER_BLOCK] = "reduce_scatter_block",
    [BCAST] = "bcast",
    [ALLGATHER] = "allgather",
    [GATHER] = "gather",
    [SCATTER] = "scatter",
    [ALLTOALL] = "alltoall",
    [BARRIER] = "barrier",
    [ALLGATHERV] = "allgatherv",
    [GATHERV] = "gatherv",
    [SCATTERV] = "scatterv",
    [ALLTOALLV] = "alltoallv",
    [ALLTOALLW] = "alltoallw",
    [REDUCE_SCATTER] = "reduce_scatter",
    [SCAN] = "scan",
    [EXSCAN] = "exscan",
};

const char *call_name(enum collective collective, enum form form) {
    static PER_THREAD char name[64];
    snprintf(name, sizeof name, "MPI_%s%s%s", form == NONBLOCKING ? "I" : "", names[collective],
             form == PERSISTENT ? "_init" : "");
    if (form != NONBLOCKING) name[4] = (char)(name[4] - 'a' + 'A');
    return name;
}

/* Whether a list of names has this one. */
static int lists(const char *list, const char *name) {
    const size_t length = strlen(name);
    while (*list) {
        const size_t word = strcspn(list, ", ");
        if (word == length && strncasecmp(list, name, length) == 0) return 1;
        list += word + (list[word] != 0);
    }
    return 0;
}

static int wanted[N_COLLECTIVES], requests_wanted;

void read_wishes(void) {
    const char *only = getenv("HOPBINE_ONLY"), *except = getenv("HOPBINE_EXCEPT");
    for (int c = 0; c < N_COLLECTIVES; c++)
        wanted[c] = (!only || !*only || lists(only, names[c])) && !(except && lists(except, names[c]));
    requests_wanted = !(except && lists(except, "requests"));
}

int is_wanted(enum collective collective) { return wanted[collective]; }

int are_requests_wanted(void) { return requests_wanted; }
