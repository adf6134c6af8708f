#!/usr/bin/env bash
# A program with HB_ calls on one machine, by mpirun.
#
# Needs:  hopbine under $HOPBINE_PREFIX (default: ~/hopbine), built with this MPI, and the program
#         as ./heat.
# Start:  jobscripts/mpirun.sh [RANKS]
set -euo pipefail
prefix=${HOPBINE_PREFIX:-$HOME/hopbine}
export LD_LIBRARY_PATH=$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export HOPBINE_REPORT=1
mpirun -n "${1:-4}" ./heat 48 100
