#!/usr/bin/env bash
# A program that knows nothing of hopbine, with its collectives served by libhopbine_preload.so.
#
# Needs:  hopbine under $HOPBINE_PREFIX (default: ~/hopbine), built with Fujitsu MPI (MPICC names its compiler
#         wrapper: docs/fugaku.md), and the program as ./a.out.
# Submit: pjsub -g GROUP jobscripts/fugaku-preload.sh
#
# Not tried on the machine: see docs/fugaku.md.
#PJM -L "node=4x4x4:torus"
#PJM -L "rscgrp=small-torus"
#PJM -L "elapse=00:30:00"
#PJM --mpi "max-proc-per-node=1"
#PJM -x PJM_LLIO_GFSCACHE=/vol0004
#PJM -j
#PJM -S
set -euo pipefail
prefix=${HOPBINE_PREFIX:-$HOME/hopbine}
export LD_LIBRARY_PATH=$prefix/lib:${LD_LIBRARY_PATH:-}
export HOPBINE_REPORT=1
# Only some collectives: export HOPBINE_ONLY=allreduce,bcast

llio_transfer ./a.out "$prefix/lib/libhopbine.so.0" "$prefix/lib/libhopbine_preload.so" \
  "$prefix/lib/hopbine/openmpi/libhopbine_mpi.so"
# For the ranks alone, not for mpiexec itself.
mpiexec -n 64 env LD_PRELOAD="$prefix/lib/libhopbine_preload.so" ./a.out
