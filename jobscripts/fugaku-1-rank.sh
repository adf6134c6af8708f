#!/usr/bin/env bash
# A C program with HB_ calls, one rank on each of 384 nodes of a torus.
#
# Needs:  hopbine under $HOPBINE_PREFIX (default: ~/hopbine), and a program beside this script's job:
#         mpifccpx -O2 examples/mpi/heat.c -I ~/hopbine/include -L ~/hopbine/lib -lhopbine_hb -lhopbine -lm -o heat
# Submit: pjsub -g GROUP jobscripts/fugaku-1-rank.sh
#
# Not tried on the machine: see docs/fugaku.md.
#PJM -L "node=4x6x16:torus"
#PJM -L "rscgrp=small-torus"
#PJM -L "elapse=00:10:00"
#PJM --mpi "max-proc-per-node=1"
#PJM -x PJM_LLIO_GFSCACHE=/vol0004
#PJM -j
#PJM -S
set -euo pipefail
prefix=${HOPBINE_PREFIX:-$HOME/hopbine}
export LD_LIBRARY_PATH=$prefix/lib:${LD_LIBRARY_PATH:-}
# Six cores for hopbine's workers, one for each TNI; the others for the program.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-42}
export HOPBINE_DRIVE=workers HOPBINE_CORES=${HOPBINE_CORES:-54-59} HOPBINE_REPORT=1

# Every node gets its copy of what all of them read.
llio_transfer ./heat "$prefix/lib/libhopbine.so.0" "$prefix/lib/libhopbine_hb.so"
mpiexec -n 384 ./heat 768 1000
