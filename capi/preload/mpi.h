/* Which MPI a program has. */
#ifndef HOPBINE_PRELOAD_MPI_H
#define HOPBINE_PRELOAD_MPI_H

struct mpi {
    /* For people; and the directory of what is built for it, null if nothing can be. */
    const char *name, *variant;
    /* Of the library; its file, or "the program" if MPI is linked into that. */
    const char *path;
    void *handle;
};

/* The MPI of the library or program that has this address. */
struct mpi mpi_of(const void *caller);

/* Its function of that name, whatever else stands before it; null if it has none. */
void *find_in(const struct mpi *mpi, const char *name);

#endif
