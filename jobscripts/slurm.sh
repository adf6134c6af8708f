#!/usr/bin/env bash
# A program with HB_ calls on a cluster with Slurm, ranks laid out as a torus of nodes.
#
# Needs:  hopbine under $HOPBINE_PREFIX (default: ~/hopbine), built with this cluster's MPI
#         (MPICC=mpicc ./install.sh), and the program as ./heat.
# Submit: sbatch jobscripts/slurm.sh
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=4
#SBATCH --time=00:10:00
#SBATCH --job-name=hopbine
set -euo pipefail
prefix=${HOPBINE_PREFIX:-$HOME/hopbine}
export LD_LIBRARY_PATH=$prefix/lib:${LD_LIBRARY_PATH:-}
export HOPBINE_RANKS_PER_NODE=4 HOPBINE_TORUS=2x2 HOPBINE_REPORT=1
srun -n 16 ./heat 96 100
