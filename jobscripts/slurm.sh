#!/usr/bin/env bash
# A program with HB_ calls, and then an unmodified one under the preload library, on a cluster with Slurm.
# The hosts of the job become the nodes of a torus, near-cubic unless HOPBINE_TORUS says otherwise;
# ranks of a host speak with each other through its memory.
#
# Needs:  hopbine under $HOPBINE_PREFIX (default: ~/hopbine), built with this cluster's MPI
#         (MPICC=mpicc ./install.sh), and the programs ./heat (HB_ calls) and ./heat-mpi (MPI calls only),
#         each used if it is there.
# Submit: sbatch jobscripts/slurm.sh
#         Open MPI meets through PMIx; for MPICH: sbatch --export=ALL,SRUN_MPI=pmi2 jobscripts/slurm.sh
#         (`srun --mpi=list` says what a cluster has). Without it each rank would be alone.
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=4
#SBATCH --time=00:10:00
#SBATCH --job-name=hopbine
set -euo pipefail
prefix=${HOPBINE_PREFIX:-$HOME/hopbine}
export LD_LIBRARY_PATH=$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} HOPBINE_REPORT=1
ranks=(srun --mpi="${SRUN_MPI:-pmix}")
if [ -x ./heat ]; then "${ranks[@]}" ./heat 96 100; fi
if [ -x ./heat-mpi ]; then "${ranks[@]}" env LD_PRELOAD="$prefix/lib/libhopbine_preload.so" ./heat-mpi 96 100; fi
