#!/usr/bin/env bash
# The Fortran example, four ranks on each node (one for each memory group) with OpenMP threads.
#
# Needs:  hopbine under $HOPBINE_PREFIX (default: ~/hopbine), and a program where the job is submitted:
#         mpifrtpx -Kfast,openmp -I ~/hopbine/include examples/mpi/heat.f90 -L ~/hopbine/lib \
#           -lhopbine_hb_fortran -lhopbine_hb -lhopbine -o heat
# Submit: pjsub -g GROUP -x PJM_LLIO_GFSCACHE=VOLUME jobscripts/fugaku-4-ranks-fortran.sh
#         (the volumes of ~/hopbine and of the program: /vol0003:/vol0004, for instance)
# Gives:  heat.JOBID.out, what the ranks print; hopbine-report.JOBID, what served which calls
#
# Not tried on the machine: see docs/fugaku.md.
#PJM -L "node=2x3x2:torus"
#PJM -L "rscgrp=small-torus"
#PJM -L "elapse=00:10:00"
#PJM --mpi "max-proc-per-node=4"
#PJM --mpi "rank-map-bychip"
#PJM -j
#PJM -S
set -euo pipefail
prefix=${HOPBINE_PREFIX:-$HOME/hopbine}
export LD_LIBRARY_PATH=$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# Twelve cores each: eleven threads, and one for hopbine's worker. With twelve the callers drive.
export OMP_NUM_THREADS=11 HOPBINE_RANKS_PER_NODE=4
export HOPBINE_REPORT=$PWD/hopbine-report.%j
# No files for ranks that print nothing.
export PLE_MPI_STD_EMPTYFILE=off

# Every node gets its copy of what all of them read: links and what they lead to.
common=(./heat "$prefix"/lib/libhopbine.so* "$prefix"/lib/libhopbine_hb.so* "$prefix"/lib/hopbine/openmpi/libhopbine_hb.so*)
llio_transfer "${common[@]}"
trap 'llio_transfer --purge "${common[@]}"' EXIT
mpiexec -n 48 -of "heat.$PJM_JOBID.out" ./heat 192 1000
