/* The table of MPI's functions (sys/mpi/functions.h) for libhopbine_mpi.so: MPI's own functions, also where this library
 * defines the same name. hopbine calls them on any of its threads, with its own locks held: an interposed one would make
 * progress on requests, and wait for their lock, whose holder may wait for hopbine. */
#include "interposed.h"

#include <mpi.h>

#define OWN(NAME)                                                                                  \
    (*({                                                                                           \
        FIND_AS(own_function, NAME);                                                               \
        own_function;                                                                              \
    }))
#define PMPI_Allreduce OWN(PMPI_Allreduce)
#define PMPI_Barrier OWN(PMPI_Barrier)
#define PMPI_Cancel OWN(PMPI_Cancel)
#define PMPI_Comm_free OWN(PMPI_Comm_free)
#define PMPI_Comm_split OWN(PMPI_Comm_split)
#define PMPI_Ibarrier OWN(PMPI_Ibarrier)
#define PMPI_Ibcast OWN(PMPI_Ibcast)
#define PMPI_Improbe OWN(PMPI_Improbe)
#define PMPI_Init_thread OWN(PMPI_Init_thread)
#define PMPI_Iprobe OWN(PMPI_Iprobe)
#define PMPI_Request_free OWN(PMPI_Request_free)
#define PMPI_Request_get_status OWN(PMPI_Request_get_status)
#define PMPI_Test OWN(PMPI_Test)
#define PMPI_Testall OWN(PMPI_Testall)
#define PMPI_Testsome OWN(PMPI_Testsome)
#define PMPI_Wait OWN(PMPI_Wait)
#define PMPI_Waitall OWN(PMPI_Waitall)

#include "../../sys/mpi/functions.c"
