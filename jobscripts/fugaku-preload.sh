#!/usr/bin/env bash
# A program that knows nothing of hopbine, with its collectives served by libhopbine_preload.so.
#
# Needs:  hopbine under $HOPBINE_PREFIX (default: ~/hopbine), built with Fujitsu MPI (MPICC names its compiler
#         wrapper: docs/fugaku.md), and the program as ./a.out where the job is submitted.
# Submit: pjsub -g GROUP -x PJM_LLIO_GFSCACHE=VOLUME jobscripts/fugaku-preload.sh
#         (the volumes of ~/hopbine and of the program: /vol0003:/vol0004, for instance)
# Gives:  a.out.JOBID.out, what the ranks print; hopbine-report.JOBID, what served which calls
#
# Not tried on the machine: see docs/fugaku.md.
#PJM -L "node=4x6x4:torus"
#PJM -L "rscgrp=small-torus"
#PJM -L "elapse=00:30:00"
#PJM --mpi "max-proc-per-node=4"
#PJM --mpi "rank-map-bychip"
#PJM -j
#PJM -S
set -euo pipefail
prefix=${HOPBINE_PREFIX:-$HOME/hopbine}
# The program's threads have all twelve cores of a rank: who calls a collective drives it.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-12} HOPBINE_RANKS_PER_NODE=4
export HOPBINE_REPORT=$PWD/hopbine-report.%j
# Only some collectives: export HOPBINE_ONLY=allreduce,bcast
# No files for ranks that print nothing.
export PLE_MPI_STD_EMPTYFILE=off

# Every node gets its copy of what all of them read: links and what they lead to.
common=(./a.out "$prefix"/bin/hopbine-preload "$prefix"/lib/libhopbine.so* "$prefix"/lib/libhopbine_preload.so
  "$prefix"/lib/hopbine/openmpi/libhopbine_mpi.so*)
llio_transfer "${common[@]}"
trap 'llio_transfer --purge "${common[@]}"' EXIT
# The library goes behind what the batch system preloads, for the ranks alone and not for mpiexec.
mpiexec -n 384 -of "a.out.$PJM_JOBID.out" "$prefix/bin/hopbine-preload" ./a.out
