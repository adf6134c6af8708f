/* Detection of a program's MPI. */
#ifndef HOPBINE_PRELOAD_MPI_H
#define HOPBINE_PRELOAD_MPI_H

struct mpi {
    /* Name for messages; directory of what is built for this MPI, null if hopbine supports no such MPI. */
    const char *name, *variant;
    /* Path of MPI's library, or "the program" if MPI is linked into it; `handle` is the library's, from dlopen(). */
    const char *path;
    void *handle;
};

/* The MPI of the library or program that contains this address. */
struct mpi mpi_of(const void *caller);

/* MPI's own function of that name, even if other libraries interpose it; null if there is none. */
void *find_in(const struct mpi *mpi, const char *name);

/* The function of that name that the library or program which contains this address sees behind this library; null if
 * there is none. */
void *find_seen_by(const void *caller, const char *name);

#endif
