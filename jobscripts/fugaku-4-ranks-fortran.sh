#!/usr/bin/env bash
# The Fortran example, four ranks on each node (one for each memory group) with OpenMP threads.
#
# Needs:  hopbine under $HOPBINE_PREFIX (default: ~/hopbine), and a program beside this script's job:
#         mpifrtpx -Kfast,openmp -I ~/hopbine/include examples/mpi/heat.f90 -L ~/hopbine/lib \
#           -lhopbine_hb_fortran -lhopbine_hb -lhopbine -o heat
# Submit: pjsub -g GROUP jobscripts/fugaku-4-ranks-fortran.sh
#
# Not tried on the machine: see docs/fugaku.md.
#PJM -L "node=2x3x2:torus"
#PJM -L "rscgrp=small-torus"
#PJM -L "elapse=00:10:00"
#PJM --mpi "max-proc-per-node=4"
#PJM -x PJM_LLIO_GFSCACHE=/vol0004
#PJM -j
#PJM -S
set -euo pipefail
prefix=${HOPBINE_PREFIX:-$HOME/hopbine}
export LD_LIBRARY_PATH=$prefix/lib:${LD_LIBRARY_PATH:-}
# Twelve cores each: eleven threads, and one core that hopbine's waiting does not share with them.
export OMP_NUM_THREADS=11 HOPBINE_RANKS_PER_NODE=4 HOPBINE_DRIVE=inline HOPBINE_REPORT=1

llio_transfer ./heat "$prefix/lib/libhopbine.so.0" "$prefix/lib/libhopbine_hb.so"
mpiexec -n 48 ./heat 192 1000
