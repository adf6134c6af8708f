#!/usr/bin/env bash
# Times of collectives by every algorithm and size, as CSV.
#
# Needs:  hopbine built with MESSAGES=yes (docs/fugaku.md) under $HOPBINE_PREFIX (default: ~/hopbine).
# Submit: pjsub -g GROUP -x PJM_LLIO_GFSCACHE=VOLUME jobscripts/fugaku-sweep.sh (the volume of ~/hopbine)
# Gives:  sweep-JOBID/COLLECTIVE.csv, for `hopbine validate --measured sweep-JOBID/*.csv`
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
out=sweep-${PJM_JOBID:-here}
mkdir -p "$out"
llio_transfer "$prefix/bin/hopbine"
trap 'llio_transfer --purge "$prefix/bin/hopbine"' EXIT
for collective in allreduce reduce-scatter allgather bcast reduce gather scatter alltoall; do
  mpiexec -n 96 "$prefix/bin/hopbine" run "$collective" --torus 4x6x4 --algorithm all \
    --bytes 8..64MiB:x8 --format csv -o "$out/$collective.csv"
done
