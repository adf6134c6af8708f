/* Putting functions before MPI's. MPICH's Fortran interfaces call MPI_X and PMPI_X, Open MPI's PMPI_X, as do its own
 * components; so both names are taken and MPI's own is found behind. */
#ifndef HOPBINE_INTERPOSED_H
#define HOPBINE_INTERPOSED_H

/* What MPI has under that name; null if it has nothing. */
void *find_behind(const char *name);

/* The same; ends the program if there is nothing. */
void *behind(const char *name);

/* MPI's own function, kept in `next`, or under another name. */
#define FIND(NAME) FIND_AS(next, NAME)
#define FIND_AS(own, NAME)                                                                         \
    static __typeof__(&NAME) own;                                                                  \
    if (!own) own = (__typeof__(own))behind(#NAME)

/* `code` of `test`, which looks again if it is due (looks_due) and the program asks, not hopbine; `found` says whether it
 * has found something. */
#define LOOK(code, found, test)                                                                    \
    int code = test;                                                                               \
    while (code == MPI_SUCCESS && !(found) && !within && __atomic_load_n(&looks_due, __ATOMIC_RELAXED) > 0) { \
        code = test;                                                                               \
        if (!(found)) __atomic_sub_fetch(&looks_due, 1, __ATOMIC_RELAXED);                         \
    }

#define BOTH(NAME, PARAMETERS) DOOR_OUT extern int P##NAME PARAMETERS __attribute__((alias(#NAME)));

#endif
