#!/usr/bin/env bash
# Examines a small job: device, kernel, pages, cores, places, a verified allreduce and its times beside the model's.
#
# Needs:  hopbine built with MESSAGES=yes (docs/fugaku.md) under $HOPBINE_PREFIX (default: ~/hopbine).
# Submit: pjsub -g GROUP -x PJM_LLIO_GFSCACHE=VOLUME jobscripts/fugaku-doctor.sh (the volume of ~/hopbine)
# Gives:  doctor.JOBID.out, a page to read, and doctor.JOBID.tar.gz, to send to whoever helps
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
export LD_LIBRARY_PATH=$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} PLE_MPI_STD_EMPTYFILE=off
llio_transfer "$prefix/bin/hopbine"
trap 'llio_transfer --purge "$prefix/bin/hopbine"' EXIT
mpiexec -n 48 -of "doctor.${PJM_JOBID:-here}.out" "$prefix/bin/hopbine" doctor -o "doctor.${PJM_JOBID:-here}.tar.gz"
