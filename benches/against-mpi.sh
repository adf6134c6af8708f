#!/bin/bash
# Compares hopbine on one host with Open MPI and MPICH: runs them in turn, so that all see the same
# machine, and prints medians, ratios and geometric means as a table and as CSV.
#
#   benches/against-mpi.sh [-r ROUNDS] [-n RANKS] [-c COLLECTIVES] [-s SIZES] [-b BUDGET_MS]
#                          [-m MPIS] [-o CSV] [-d] [-v] [-H HOSTS]
#
#   -r  rounds; 5
#   -n  numbers of ranks, with commas; 2,4,8
#   -c  of allreduce,reduce-scatter,allgather,bcast,reduce,alltoall,barrier; all. Also
#       alltoallv-uniform,alltoallv-skewed,alltoallv-sparse, for which `-c alltoallv` stands; with -v
#       or -H also allgatherv-uniform
#   -s  bytes that a rank holds in all; 8 to 64 MiB by factors of 8
#   -b  milliseconds per measurement; 20
#   -m  of openmpi,mpich; both
#   -o  where the CSV goes; target/against-mpi.csv
#   -d  also the MPIs' own programs with libhopbine_mpi.so before MPI: what an unmodified program
#       gets. Their ratios are to the same MPI without it
#   -v  every call has another length than the last: MPIs without and with libhopbine_mpi.so only
#   -H  on so many hosts of ci/cluster.sh, with as many ranks on each as -n says: Open MPI
#       without and with libhopbine_mpi.so only, by TCP between hosts
#
# Missing MPIs are installed with apt when this runs as root on Debian. Ranks on cores of their own
# are bound to them; ranks that outnumber the cores yield where the library can. MPICH cannot: there
# it runs at ordinary priority whatever this script's, 50 ms a call (650 at `chrt -r 10`).
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=5 ranks=2,4,8 budget=20 mpis=openmpi,mpich csv=target/against-mpi.csv
collectives=allreduce,reduce-scatter,allgather,bcast,reduce,alltoall,barrier hosts=
sizes=8,64,512,4096,32768,262144,2097152,16777216,67108864
doors='' changing=
given=("$@")
while getopts r:n:c:s:b:m:o:H:dvh option; do
  case $option in
    r) rounds=$OPTARG ;; n) ranks=$OPTARG ;; c) collectives=$OPTARG ;; s) sizes=$OPTARG ;;
    b) budget=$OPTARG ;; m) mpis=$OPTARG ;; o) csv=$OPTARG ;; d) doors=yes ;; v) changing=changing doors=yes ;;
    H) hosts=$OPTARG doors=yes mpis=openmpi ;;
    *) sed -n '2,25s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done

[ "$collectives" = alltoallv ] && collectives=alltoallv-uniform,alltoallv-skewed,alltoallv-sparse

install() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null ||
    { echo "missing: $* (install Open MPI and MPICH with their compilers)" >&2; exit 1; }
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}
command -v cc >/dev/null || install gcc libc6-dev
for mpi in ${mpis//,/ }; do
  case $mpi in
    openmpi) command -v mpicc.openmpi >/dev/null || install openmpi-bin libopenmpi-dev ;;
    mpich) command -v mpicc.mpich >/dev/null || install mpich libmpich-dev ;;
    *) echo "unknown MPI: $mpi" >&2; exit 2 ;;
  esac
done

out=target/against-mpi
mkdir -p "$out" "$(dirname "$csv")"
for mpi in ${mpis//,/ }; do
  "mpicc.$mpi" -O3 -march=native -o "$out/collectives-$mpi" benches/against-mpi/collectives.c
done
cc -O2 -pthread -o "$out/line" benches/against-mpi/line.c
if [ -z "${HOPBINE_BENCH_BUILT:-}$hosts$changing" ]; then
  cargo build --release --quiet --example collectives --bin hopbine
fi
target=${CARGO_TARGET_DIR:-target}/release
sides=hopbine,$mpis
[ -z "$hosts$changing" ] || sides=$mpis
if [ "$doors" ]; then
  for mpi in ${mpis//,/ }; do
    sides=$sides,$mpi+
    if [ -z "${HOPBINE_BENCH_BUILT:-}" ]; then
      # Hosts need messages, with which a directory of cargo's is for one MPI.
      env ${hosts:+"CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/$mpi"} MESSAGES="${hosts:-no}" \
        PREFIX="$PWD/$out/$mpi" MPICC="mpicc.$mpi" FC= ./install.sh >/dev/null
    fi
  done
fi

if [ "$hosts" ] && [ -z "${CLUSTER_HOSTS:-}" ]; then
  HOPBINE_BENCH_BUILT=yes exec ci/cluster.sh "$hosts" benches/against-mpi.sh "${given[@]}"
fi

# One run of everything with one library on $2 ranks: lines `collective bytes microseconds`. A plus
# behind an MPI's name stands for hopbine before it.
measure() {
  local what=${1%+} n=$2 own= before=()
  [ "$n" -le "$(nproc)" ] && [ -z "$hosts" ] && own=yes
  [ "$1" = "$what" ] || before=(env "LD_PRELOAD=$PWD/$out/$what/lib/libhopbine_mpi.so")
  case $what in
    hopbine)
      HOPBINE_BACKEND=${HOPBINE_BACKEND:-shm} "$target/hopbine" launch -n "$n" \
        "$target/examples/collectives" "$collectives" "$sizes" "$budget" ;;
    openmpi)
      local flags=(--bind-to core)
      [ "$own" ] || flags=(--bind-to none --oversubscribe --mca mpi_yield_when_idle 1)
      [ "$(id -u)" != 0 ] || flags+=(--allow-run-as-root)
      if [ "$hosts" ]; then
        flags+=(--mca plm_rsh_agent "$CLUSTER_AGENT" --mca oob_tcp_if_include "$CLUSTER_SUBNET"
          --mca btl_tcp_if_include "$CLUSTER_SUBNET" --host "${CLUSTER_HOSTS// /:$n,}:$n")
        n=$((n * hosts))
      fi
      mpirun.openmpi "${flags[@]}" --mca btl_base_warn_component_unused 0 -n "$n" \
        "${before[@]}" "$out/collectives-openmpi" "$collectives" "$sizes" "$budget" $changing ;;
    mpich)
      # It never yields: a rank that waits takes its whole time slice, 100 ms at real-time priority.
      local flags=() sliced=(chrt -o 0)
      [ "$own" ] && flags=(-bind-to core) sliced=()
      mpiexec.mpich "${flags[@]}" -n "$n" "${sliced[@]}" \
        "${before[@]}" "$out/collectives-mpich" "$collectives" "$sizes" "$budget" $changing ;;
  esac
}

raw=$out/raw.txt lines=
: >"$raw"
for n in ${ranks//,/ }; do
  for ((round = 1; round <= rounds; round++)); do
    lines+=" $("$out/line")"
    for what in ${sides//,/ }; do
      echo "$n ranks, round $round of $rounds: $what" >&2
      measure "$what" "$n" | sed "s/^/$n $round $what /" >>"$raw"
    done
  done
done

# Medians over the rounds. A ratio is that of the best MPI's median to ours, or of one MPI's median
# to that with hopbine before it: above 1 we are ahead.
awk -v sides="$sides" -v csv="$csv" '
function median(list, n,   i, j, t) {
  for (i = 2; i <= n; i++)
    for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
  return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}
function us(time) { return time < 10 ? sprintf("%.2f", time) : time < 100 ? sprintf("%.1f", time) : sprintf("%.0f", time) }
function count(group, side, ratio) {
  n_of[group, side]++; logs[group, side] += log(ratio); if (ratio < 1) behind[group, side]++
}
function summary(ranks, collective, group,   s, line) {
  line = sprintf("%5d  %-17s", ranks, collective)
  for (s = 1; s <= n_sides; s++)
    if (is_ours[s])
      line = line sprintf(" %9.2f %10s", exp(logs[group, s] / n_of[group, s]), behind[group, s] + 0 " of " n_of[group, s])
  print line
}
{
  case_ = $1 " " $4 " " $5
  if (!(case_ in seen)) { seen[case_] = 1; cases[++n_cases] = case_ }
  times[case_, $3, ++n_times[case_, $3]] = $6
}
END {
  n_sides = split(sides, side, ",")
  for (s = 1; s <= n_sides; s++) {
    is_ours[s] = side[s] == "hopbine" || side[s] ~ /\+$/
    number[side[s]] = s
  }
  head = sprintf("%5s  %-17s %9s", "ranks", "collective", "bytes")
  line = "ranks,collective,bytes"
  for (s = 1; s <= n_sides; s++) { head = head sprintf(" %10s", side[s]); line = line "," side[s] "_us" }
  for (s = 1; s <= n_sides; s++) if (is_ours[s]) {
    head = head sprintf(" %8s", side[s] == "hopbine" ? "ratio" : "ratio+")
    line = line (side[s] == "hopbine" ? ",ratio" : "," side[s] "_ratio")
  }
  print head; print line > csv
  for (c = 1; c <= n_cases; c++) {
    split(cases[c], key, " ")
    best = 0; is_whole = 1
    text = sprintf("%5d  %-17s %9d", key[1], key[2], key[3])
    line = key[1] "," key[2] "," key[3]
    for (s = 1; s <= n_sides; s++) {
      n = n_times[cases[c], side[s]]
      for (i = 1; i <= n; i++) list[i] = times[cases[c], side[s], i]
      value[s] = n ? median(list, n) : 0
      if (!value[s]) is_whole = 0
      if (!is_ours[s] && (!best || value[s] < best)) best = value[s]
      text = text sprintf(" %10s", us(value[s])); line = line "," value[s]
    }
    if (!is_whole) { print cases[c] ": NOT MEASURED by all"; continue }
    group = key[1] " " key[2]
    if (!(group in is_known)) { is_known[group] = 1; groups[++n_groups] = group }
    for (s = 1; s <= n_sides; s++) if (is_ours[s]) {
      base = side[s]; sub(/\+$/, "", base)
      ratio = (side[s] == "hopbine" ? best : value[number[base]]) / value[s]
      count(group, s, ratio); count(key[1], s, ratio)
      text = text sprintf(" %8.2f", ratio); line = line "," sprintf("%.3f", ratio)
    }
    print text; print line > csv
  }
  print ""
  head = sprintf("%5s  %-17s", "ranks", "geometric means")
  for (s = 1; s <= n_sides; s++) if (is_ours[s]) head = head sprintf(" %9s %10s", side[s], "behind at")
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
