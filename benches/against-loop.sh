#!/usr/bin/env bash
# hopbine over messages of MPI's against hand-written loops of MPI_Isend and MPI_Irecv with the same
# schedules, in turn in one run; prints microseconds and the ratio (above 1: hopbine is ahead).
#
#   benches/against-loop.sh [-t] [-m MPIS] [RANKS]...      2 and 4 by default
#
#   -t  MPI's messages go by TCP on both sides, as between hosts, where hopbine uses them; without it
#       through shared memory, where hopbine never does unless it is told to
#   -m  names of ci/mpi/launch.sh, with commas; openmpi,mpich
# shellcheck disable=SC2154 # use_mpi sets mpi, launcher, MPICC and MPIEXEC
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null
. ci/mpi/launch.sh
tcp='' mpis=openmpi,mpich
while getopts tm:h option; do
  case $option in
    t) tcp=yes ;;
    m) mpis=$OPTARG ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[ $# != 0 ] || set -- 2 4

# With the MPI of use_mpi, on each of these numbers of ranks.
measure() {
  local program n flags sliced variables
  if [ -z "${HOPBINE_BENCH_BUILT:-}" ]; then
    CARGO_TARGET_DIR=target/$mpi cargo build --release --quiet -p hopbine-benches --features mpi --bench mpi
  fi
  program=$(find "target/$mpi/release/deps" -name 'mpi-*' ! -name '*.*' -printf '%T@ %p\n' | sort -rn | sed -n '1s/^[^ ]* //p')
  for n; do
    variables=()
    bind_ranks "$n"
    case $tcp:$launcher in
      yes:openmpi) flags+=(--mca pml ob1 --mca btl "tcp,self") ;;
      yes:hydra) variables=(MPIR_CVAR_NOLOCAL=1 "UCX_TLS=tcp,self") ;;
    esac
    [ ! "$tcp" ] || echo "by TCP:"
    # shellcheck disable=SC2086
    env "${variables[@]}" HOPBINE_BACKEND=mpi HOPBINE_SHM=off HOPBINE_TORUS="$n" \
      $MPIEXEC "${flags[@]}" -n "$n" "${sliced[@]}" "$program"
  done
}

for name in ${mpis//,/ }; do
  (
    use_mpi "$name" || { echo "$name: NOT MEASURED: it is not here" >&2; exit; }
    measure "$@"
  )
done
