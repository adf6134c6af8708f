/* The MPI that a file is compiled with, as a table that hopbine calls it by. So hopbine needs no MPI to be built,
 * and one build of it serves all of them. */
#ifndef HOPBINE_MPI_FUNCTIONS_H
#define HOPBINE_MPI_FUNCTIONS_H

/* For hopbine_init_mpi(), or hopbine::mpi::provide() in Rust. Never null, always valid. */
const void *hopbine_mpi_functions(void);

#endif
