#!/usr/bin/env bash
# hopbine over messages of MPI's against hand-written loops of MPI_Isend and MPI_Irecv with the same
# schedules, in turn in one run; prints microseconds and the ratio (above 1: hopbine is ahead).
#
#   benches/against-loop.sh [RANKS]...      2 and 4 by default
#
# Needs Open MPI or MPICH as tests/mpi.sh does.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# != 0 ] || set -- 2 4
for mpi in openmpi mpich; do
  command -v "mpicc.$mpi" >/dev/null || continue
  if [ -z "${HOPBINE_BENCH_BUILT:-}" ]; then
    MPICC=mpicc.$mpi CARGO_TARGET_DIR=target/$mpi \
      cargo build --release --quiet --features mpi --bench mpi
  fi
  program=$(ls -t "target/$mpi"/release/deps/mpi-* | grep -v '\.' | head -n 1)
  for n; do
    own=
    [ "$n" -gt "$(nproc)" ] || own=yes
    flags=()
    case $mpi in
      openmpi)
        flags=(--allow-run-as-root --oversubscribe --mca btl_base_warn_component_unused 0)
        if [ "$own" ]; then flags+=(--bind-to core); else flags+=(--bind-to none --mca mpi_yield_when_idle 1); fi
        launcher=mpirun.openmpi ;;
      mpich)
        [ ! "$own" ] || flags=(-bind-to core)
        launcher=mpiexec.mpich ;;
    esac
    HOPBINE_BACKEND=mpi HOPBINE_SHM=off HOPBINE_TORUS=$n \
      "$launcher" "${flags[@]}" -n "$n" "$program"
  done
done
