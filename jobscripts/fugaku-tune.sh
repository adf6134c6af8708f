#!/usr/bin/env bash
# A decision table from measurements on the machine, compared with the built-in one.
#
# Needs:  hopbine built with MESSAGES=yes (docs/fugaku.md) under $HOPBINE_PREFIX (default: ~/hopbine).
# Submit: pjsub -g GROUP -x PJM_LLIO_GFSCACHE=VOLUME jobscripts/fugaku-tune.sh (the volume of ~/hopbine)
# Gives:  tuned-4x6x4.toml, for HOPBINE_TUNING; tuned-4x6x4.csv, all medians with their intervals. What a job has no
#         time for the next one goes on with, from tuned-4x6x4.toml.part.
#
# Not tried on the machine: see docs/fugaku.md.
#PJM -L "node=4x6x4:torus"
#PJM -L "rscgrp=small-torus"
#PJM -L "elapse=02:00:00"
#PJM --mpi "max-proc-per-node=1"
#PJM --mpi "rank-map-bychip"
#PJM -j
#PJM -S
set -euo pipefail
prefix=${HOPBINE_PREFIX:-$HOME/hopbine}
export LD_LIBRARY_PATH=$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
llio_transfer "$prefix/bin/hopbine"
trap 'llio_transfer --purge "$prefix/bin/hopbine"' EXIT
mpiexec -n 96 "$prefix/bin/hopbine" tune --measure --torus 4x6x4 --bytes 8..64MiB:x4 --ports 1,6 \
  --budget 110min -o tuned-4x6x4.toml --log tuned-4x6x4.csv
