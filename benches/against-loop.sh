#!/usr/bin/env bash
# hopbine over messages of MPI's against hand-written loops of MPI_Isend and MPI_Irecv with the same
# schedules, in turn in one run; prints microseconds and the ratio (above 1: hopbine is ahead).
#
#   benches/against-loop.sh [-t] [RANKS]...      2 and 4 by default
#
#   -t  MPI's messages go by TCP on both sides, as between hosts, where hopbine uses them; without it
#       through shared memory, where hopbine never does unless it is told to
#
# Needs Open MPI or MPICH as ci/mpi.sh does.
set -euo pipefail
cd "$(dirname "$0")/.."
tcp=
if [ "${1:-}" = -t ]; then
  tcp=yes
  shift
fi
[ $# != 0 ] || set -- 2 4
for mpi in openmpi mpich; do
  command -v "mpicc.$mpi" >/dev/null || continue
  if [ -z "${HOPBINE_BENCH_BUILT:-}" ]; then
    MPICC=mpicc.$mpi CARGO_TARGET_DIR=target/$mpi \
      cargo build --release --quiet -p hopbine-benches --features mpi --bench mpi
  fi
  program=$(find "target/$mpi/release/deps" -name 'mpi-*' ! -name '*.*' -printf '%T@ %p\n' | sort -rn | sed -n '1s/^[^ ]* //p')
  for n; do
    own=
    [ "$n" -gt "$(nproc)" ] || own=yes
    flags=() variables=()
    case $mpi in
      openmpi)
        flags=(--allow-run-as-root --oversubscribe --mca btl_base_warn_component_unused 0)
        if [ "$own" ]; then flags+=(--bind-to core); else flags+=(--bind-to none --mca mpi_yield_when_idle 1); fi
        [ ! "$tcp" ] || flags+=(--mca pml ob1 --mca btl "tcp,self")
        launcher=mpirun.openmpi ;;
      mpich)
        [ ! "$own" ] || flags=(-bind-to core)
        [ ! "$tcp" ] || variables=(MPIR_CVAR_NOLOCAL=1 "UCX_TLS=tcp,self")
        launcher=mpiexec.mpich ;;
    esac
    [ ! "$tcp" ] || echo "by TCP:"
    env "${variables[@]}" HOPBINE_BACKEND=mpi HOPBINE_SHM=off HOPBINE_TORUS=$n \
      "$launcher" "${flags[@]}" -n "$n" "$program"
  done
done
