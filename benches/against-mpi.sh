#!/bin/bash
# Compares hopbine on one host with Open MPI and MPICH: runs them in turn, so that all see the same
# machine, and prints medians, ratios and geometric means as a table and as CSV.
#
#   benches/against-mpi.sh [-r ROUNDS] [-n RANKS] [-c COLLECTIVES] [-s SIZES] [-b BUDGET_MS]
#                          [-m MPIS] [-o CSV]
#
#   -r  rounds; 5
#   -n  numbers of ranks, with commas; 2,4,8
#   -c  of allreduce,reduce-scatter,allgather,bcast,reduce,alltoall,barrier; all. Also
#       alltoallv-uniform,alltoallv-skewed,alltoallv-sparse, for which `-c alltoallv` stands
#   -s  bytes that a rank holds in all; 8 to 64 MiB by factors of 8
#   -b  milliseconds per measurement; 20
#   -m  of openmpi,mpich; both
#   -o  where the CSV goes; target/against-mpi.csv
#
# Missing MPIs are installed with apt when this runs as root on Debian. Ranks on cores of their own
# are bound to them; ranks that outnumber the cores yield where the library can.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=5 ranks=2,4,8 budget=20 mpis=openmpi,mpich csv=target/against-mpi.csv
collectives=allreduce,reduce-scatter,allgather,bcast,reduce,alltoall,barrier
sizes=8,64,512,4096,32768,262144,2097152,16777216,67108864
while getopts r:n:c:s:b:m:o:h option; do
  case $option in
    r) rounds=$OPTARG ;; n) ranks=$OPTARG ;; c) collectives=$OPTARG ;; s) sizes=$OPTARG ;;
    b) budget=$OPTARG ;; m) mpis=$OPTARG ;; o) csv=$OPTARG ;;
    *) sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 2 ;;
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
if [ -z "${HOPBINE_BENCH_BUILT:-}" ]; then
  cargo build --release --quiet --example collectives --bin hopbine
fi
target=${CARGO_TARGET_DIR:-target}/release

# One run of everything with one library on $2 ranks: lines `collective bytes microseconds`.
measure() {
  local what=$1 n=$2 own=
  [ "$n" -le "$(nproc)" ] && own=yes
  case $what in
    hopbine)
      HOPBINE_BACKEND=${HOPBINE_BACKEND:-shm} "$target/hopbine" launch -n "$n" \
        "$target/examples/collectives" "$collectives" "$sizes" "$budget" ;;
    openmpi)
      local flags=(--bind-to core)
      [ "$own" ] || flags=(--bind-to none --oversubscribe --mca mpi_yield_when_idle 1)
      [ "$(id -u)" != 0 ] || flags+=(--allow-run-as-root)
      mpirun.openmpi "${flags[@]}" --mca btl_base_warn_component_unused 0 -n "$n" \
        "$out/collectives-openmpi" "$collectives" "$sizes" "$budget" ;;
    mpich)
      local flags=()
      [ "$own" ] && flags=(-bind-to core)
      mpiexec.mpich "${flags[@]}" -n "$n" \
        "$out/collectives-mpich" "$collectives" "$sizes" "$budget" ;;
  esac
}

raw=$out/raw.txt
: >"$raw"
for n in ${ranks//,/ }; do
  for ((round = 1; round <= rounds; round++)); do
    for what in hopbine ${mpis//,/ }; do
      echo "$n ranks, round $round of $rounds: $what" >&2
      measure "$what" "$n" | sed "s/^/$n $round $what /" >>"$raw"
    done
  done
done

# Medians over the rounds. A ratio is that of the best MPI's median to ours: above 1 we are ahead.
awk -v mpis="$mpis" -v csv="$csv" '
function median(list, n,   i, j, t) {
  for (i = 2; i <= n; i++)
    for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
  return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}
function us(time) { return time < 10 ? sprintf("%.2f", time) : time < 100 ? sprintf("%.1f", time) : sprintf("%.0f", time) }
{
  case_ = $1 " " $4 " " $5
  if (!(case_ in seen)) { seen[case_] = 1; cases[++n_cases] = case_ }
  times[case_, $3, ++n_times[case_, $3]] = $6
}
END {
  n_mpis = split(mpis, mpi, ",")
  line = "ranks collective bytes hopbine_us"
  for (m = 1; m <= n_mpis; m++) line = line " " mpi[m] "_us"
  line = line " ratio"
  print gensub_spaces(line, ",") > csv
  printf "%5s  %-17s %9s %10s", "ranks", "collective", "bytes", "hopbine"
  for (m = 1; m <= n_mpis; m++) printf " %10s", mpi[m]
  printf " %7s\n", "ratio"
  for (c = 1; c <= n_cases; c++) {
    split(cases[c], key, " ")
    best = 0
    for (m = 0; m <= n_mpis; m++) {
      name = m ? mpi[m] : "hopbine"
      n = n_times[cases[c], name]
      for (i = 1; i <= n; i++) list[i] = times[cases[c], name, i]
      value[m] = n ? median(list, n) : 0
      if (m && value[m] && (!best || value[m] < best)) best = value[m]
    }
    if (!value[0] || !best) continue
    ratio = best / value[0]
    printf "%5d  %-17s %9d %10s", key[1], key[2], key[3], us(value[0])
    line = key[1] "," key[2] "," key[3] "," value[0]
    for (m = 1; m <= n_mpis; m++) { printf " %10s", us(value[m]); line = line "," value[m] }
    printf " %7.2f\n", ratio
    print line "," sprintf("%.3f", ratio) > csv
    group = key[1] " " key[2]
    if (!(group in n_of)) groups[++n_groups] = group
    n_of[group]++; logs[group] += log(ratio); if (ratio < 1) behind[group]++
    n_of[key[1]]++; logs[key[1]] += log(ratio); if (ratio < 1) behind[key[1]]++
  }
  print ""
  printf "%5s  %-17s %9s %10s\n", "ranks", "collective", "geo. mean", "behind at"
  for (g = 1; g <= n_groups; g++) {
    split(groups[g], key, " ")
    if (last && key[1] != last) summary(last)
    last = key[1]
    printf "%5d  %-17s %9.2f %10s\n", key[1], key[2], exp(logs[groups[g]] / n_of[groups[g]]), behind[groups[g]] + 0 " of " n_of[groups[g]]
  }
  if (last) summary(last)
}
function summary(ranks) {
  printf "%5d  %-17s %9.2f %10s\n", ranks, "all", exp(logs[ranks] / n_of[ranks]), behind[ranks] + 0 " of " n_of[ranks]
}
function gensub_spaces(text, by) { gsub(/ /, by, text); return text }
' "$raw"
echo "CSV: $csv" >&2
