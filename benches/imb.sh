#!/bin/bash
# Measures MPIs without and with libhopbine_preload.so by a program that is not hopbine's: Intel's IMB-MPI1, the same
# binary for both. All run in turn; prints each size's medians and geometric means of the best MPI's time over hopbine's,
# of rounds in which a cache line takes less than 100 ns from core to core (near) and of the others (far) apart: virtual
# machines move their cores.
#
#   benches/imb.sh [-r ROUNDS] [-n RANKS] [-i CALLS] [-l LOG2_BYTES] [-o CSV] [BENCHMARK]...
#
#   -r  rounds; 5
#   -n  ranks; 2
#   -i  IMB's most calls for a size; 400. It makes fewer of long messages: 40 MiB in all
#   -l  the longest message is 2 to the power of this; 22. IMB's sizes are what one rank sends to another
#   -o  where the CSV goes; target/imb.csv
#   BENCHMARK  of IMB-MPI1; Allreduce, Reduce, Reduce_scatter_block, Allgather, Bcast, Alltoall, Gather, Scatter, Barrier
#
# A time is IMB's t_max: the mean over calls in a row, on the slowest rank. The MPIs are Intel MPI, with which IMB comes,
# and MPICH 5, for which it runs as well; both are installed with pip (ci/mpi/wheels.sh).
# shellcheck disable=SC2154 # use_mpi sets what it names
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=5 ranks=2 calls=400 longest=22 csv=target/imb.csv
while getopts r:n:i:l:o: option; do
  case $option in
    r) rounds=$OPTARG ;; n) ranks=$OPTARG ;; i) calls=$OPTARG ;; l) longest=$OPTARG ;; o) csv=$OPTARG ;;
    *) sed -n '2,17s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[ $# != 0 ] || set -- Allreduce Reduce Reduce_scatter_block Allgather Bcast Alltoall Gather Scatter Barrier

# shellcheck source=/dev/null
. ci/mpi/launch.sh
export MPIS=${MPIS:-$PWD/target/mpis}
ci/mpi/wheels.sh -d "$MPIS" intel mpich5
imb=$MPIS/intel/bin/IMB-MPI1
[ -x "$imb" ] || { echo "benches/imb.sh: $imb is not there: this release of Intel MPI has no IMB" >&2; exit 3; }
prefix=${HOPBINE_BENCH_BUILT:-$PWD/target/imb/hopbine}
if [ -z "${HOPBINE_BENCH_BUILT:-}" ]; then
  install_before "$prefix" intel mpich5
fi
mkdir -p target/imb "$(dirname "$csv")"
cc -O2 -pthread -o target/imb/line benches/against-mpi/line.c

# SIDE BENCHMARK...: lines `benchmark bytes microseconds`; `intel+` is Intel MPI with the library.
measure() (
  side=$1 before=()
  shift
  use_mpi "${side%+}"
  bind_ranks "$ranks"
  [ "$side" = "${side%+}" ] || before=(env "LD_PRELOAD=$prefix/lib/libhopbine_preload.so")
  # The program remembers where Intel's library is.
  export LD_LIBRARY_PATH=$MPIS/${side%+}/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  $MPIEXEC "${flags[@]}" -n "$ranks" "${sliced[@]}" "${before[@]}" "$imb" -npmin "$ranks" -iter "$calls" -msglog "3:$longest" "$@" |
    awk '/^# Benchmarking/ { name = tolower($3); gsub("_", "-", name) }
      /^ +[0-9]/ { if (name == "barrier") print name, 0, $3; else if ($1 > 0) print name, $1, $4 }'
)

raw=target/imb/raw.txt
: >"$raw"
for ((round = 1; round <= rounds; round++)); do
  line=$(target/imb/line)
  for side in intel intel+ mpich5 mpich5+; do
    echo "round $round of $rounds: $side" >&2
    measure $side "$@" | sed "s/^/$line $side /" >>"$raw"
  done
done
python3 - "$raw" "$csv" <<'PYTHON'
import collections, csv, math, statistics, sys

times = collections.defaultdict(list)
rounds = collections.defaultdict(dict)
for row in open(sys.argv[1]):
    line, side, benchmark, size, us = row.split()
    cores = "near" if line != "none" and float(line) < 100 else "far"
    rounds[cores][line] = True
    times[cores, benchmark, int(size), side].append(float(us))
sides = ["intel", "intel+", "mpich5", "mpich5+"]
with open(sys.argv[2], "w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["cores", "benchmark", "bytes", *(side + "_us" for side in sides)])
    for cores in rounds:
        cases = dict.fromkeys((benchmark, size) for where, benchmark, size, _ in times if where == cores)
        ratios = collections.defaultdict(list)
        print("%s cores: a line takes %s ns" % (cores, ", ".join(rounds[cores])))
        heads = ["benchmark", "bytes", *sides, "intel+", "mpich5+"]
        print("%-20s %9s%10s%10s%10s%10s%8s%8s" % tuple(heads))
        for benchmark, size in cases:
            medians = [statistics.median(times[cores, benchmark, size, side]) for side in sides]
            rows.writerow([cores, benchmark, size, *medians])
            best = min(medians[0], medians[2])
            gains = [best / medians[1], best / medians[3]]
            for group in (benchmark, "all"):
                ratios[group].append(gains)
            print("%-20s %9d%10.2f%10.2f%10.2f%10.2f%8.2f%8.2f" % (benchmark, size, *medians, *gains))
        print("\ngeometric means of the best MPI's time over hopbine's, and cases below 0.98:")
        for group, gains in ratios.items():
            means = [math.exp(statistics.fmean(map(math.log, side))) for side in zip(*gains)]
            behind = ["%d of %d" % (sum(gain < 0.98 for gain in side), len(side)) for side in zip(*gains)]
            print("%-20s" % group + "".join("  %s %.2f, %s" % part for part in zip(sides[1::2], means, behind)))
        print()
PYTHON
