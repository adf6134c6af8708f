/* Conversions between MPI handles and Fortran integers. The standard ABI's header has no Fortran conversions; its
 * Fortran libraries take the integers of the ..._toint functions.
 *
 * OF_KIND: the name of a function for the Fortran module that was compiled with an MPI of the same kind. */
#ifndef HOPBINE_FORTRAN_H
#define HOPBINE_FORTRAN_H

#include <mpi.h>

#ifdef MPI_ABI_VERSION
#define OF_KIND(name) name##_abi
typedef int fint;
#define comm_of_f MPI_Comm_fromint
#define type_of_f MPI_Type_fromint
#define op_of_f MPI_Op_fromint
#define info_of_f MPI_Info_fromint
#define f_of_request MPI_Request_toint
#else
#ifdef OPEN_MPI
#define OF_KIND(name) name##_openmpi
#else
#define OF_KIND(name) name##_mpich
#endif
typedef MPI_Fint fint;
#define comm_of_f MPI_Comm_f2c
#define type_of_f MPI_Type_f2c
#define op_of_f MPI_Op_f2c
#define info_of_f MPI_Info_f2c
#define f_of_request MPI_Request_c2f
#endif

#endif
