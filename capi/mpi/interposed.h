/* Interposition of MPI's functions. MPICH's Fortran interfaces call MPI_X and PMPI_X; Open MPI's call PMPI_X, as do
 * its internal components. So this library defines both names and looks up MPI's own function. */
#ifndef HOPBINE_INTERPOSED_H
#define HOPBINE_INTERPOSED_H

/* MPI's own function of that name, or null. */
void *find_mpi_function(const char *name);

/* MPI's own function of that name; aborts if there is none. */
void *mpi_function(const char *name);

/* Declares `next`, or another variable, and sets it to MPI's own function. */
#define FIND(NAME) FIND_AS(next, NAME)
#define FIND_AS(own, NAME)                                                                         \
    static __typeof__(&NAME) own;                                                                  \
    if (!own) own = (__typeof__(own))mpi_function(#NAME)

/* Sets `code` to the result of `test`, and repeats a test that finds nothing while `retests_left` is positive; not for
 * hopbine's own calls. `found` is an expression: whether the test has found something. */
#define RETEST(code, found, test)                                                                  \
    int code = test;                                                                               \
    while (code == MPI_SUCCESS && !(found) && !in_hopbine && __atomic_load_n(&retests_left, __ATOMIC_RELAXED) > 0) { \
        code = test;                                                                               \
        if (!(found)) __atomic_sub_fetch(&retests_left, 1, __ATOMIC_RELAXED);                      \
    }

#define ALIAS_PMPI(NAME, PARAMETERS) EXPORTED extern int P##NAME PARAMETERS __attribute__((alias(#NAME)));

#endif
