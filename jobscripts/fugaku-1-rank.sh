#!/usr/bin/env bash
# A C program with HB_ calls, one rank on each of 384 nodes of a torus.
#
# Needs:  hopbine under $HOPBINE_PREFIX (default: ~/hopbine), and a program where the job is submitted:
#         mpifccpx -O2 examples/mpi/heat.c -I ~/hopbine/include -L ~/hopbine/lib -lhopbine_hb -lhopbine -lm -o heat
# Submit: pjsub -g GROUP -x PJM_LLIO_GFSCACHE=VOLUME jobscripts/fugaku-1-rank.sh
#         (the volumes of ~/hopbine and of the program: /vol0003:/vol0004, for instance)
# Gives:  heat.JOBID.out, what the ranks print; hopbine-report.JOBID, what served which calls
#
# Not tried on the machine: see docs/fugaku.md.
#PJM -L "node=4x6x16:torus"
#PJM -L "rscgrp=small-torus"
#PJM -L "elapse=00:10:00"
#PJM --mpi "max-proc-per-node=1"
#PJM --mpi "rank-map-bychip"
#PJM -j
#PJM -S
set -euo pipefail
prefix=${HOPBINE_PREFIX:-$HOME/hopbine}
export LD_LIBRARY_PATH=$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# Six cores for hopbine's workers, one for each TNI; the others for the program.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-42}
export HOPBINE_DRIVE=workers HOPBINE_CORES=${HOPBINE_CORES:-54-59}
export HOPBINE_REPORT=$PWD/hopbine-report.%j
# No files for ranks that print nothing.
export PLE_MPI_STD_EMPTYFILE=off

# Every node gets its copy of what all of them read: links and what they lead to.
common=(./heat "$prefix"/lib/libhopbine.so* "$prefix"/lib/libhopbine_hb.so* "$prefix"/lib/hopbine/openmpi/libhopbine_hb.so*)
llio_transfer "${common[@]}"
trap 'llio_transfer --purge "${common[@]}"' EXIT
mpiexec -n 384 -of "heat.$PJM_JOBID.out" ./heat 768 1000
