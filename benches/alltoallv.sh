#!/bin/bash
# Which alltoallv is fastest at which size of blocks, as Fan et al. 2025 ask (ParLogNa by radix,
# ParLinNa coalesced and staggered, single messages), on ranks that are processes of this host.
# Block sizes are uniform up to the largest. The formulas are in torus/tests/vector_alltoall.rs.
#
#   benches/alltoallv.sh [-r ROUNDS] [-t SHAPE] [-s SIZES] [-i ITERATIONS] [-o CSV]
#
#   -r  rounds, all measurements in turn in each; 3
#   -t  shape with a node axis; 4+4
#   -s  bytes of the largest block, with commas; 16,512,8192,65536
#   -i  calls per measurement; 20
#   -b  of shm,emu; both
#   -o  where the CSV goes; target/alltoallv.csv
#
# Over shared memory; and over the emulated device, with the delays of a machine, where a message
# inside a node costs less than one between nodes (model.sh): those times are the modelled machine's.
set -euo pipefail
cd "$(dirname "$0")/.."

. benches/model.sh
rounds=3 shape=4+4 sizes=16,512,8192,65536 iterations=20 backends=shm,emu csv=target/alltoallv.csv
while getopts r:t:s:i:b:o:h option; do
  case $option in
    r) rounds=$OPTARG ;; t) shape=$OPTARG ;; s) sizes=$OPTARG ;; i) iterations=$OPTARG ;; b) backends=$OPTARG ;;
    o) csv=$OPTARG ;;
    *) sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done
[ -n "${HOPBINE_BENCH_BUILT:-}" ] || cargo build --release --quiet --bin hopbine
hopbine=${HOPBINE:-${CARGO_TARGET_DIR:-target}/release/hopbine}
per_node=${shape##*+}
n=$per_node
for size in $(tr x ' ' <<<"${shape%+*}"); do n=$((n * size)); done
root=$(awk -v n="$n" 'BEGIN { r = int(sqrt(n) + 0.5); print r < 2 ? 2 : r }')

# Algorithms and the shape that each runs on: ParLogNa takes the ranks as one ring.
rows() {
  for radix in 2 "$root" "$n"; do echo "bruck:$radix $n"; done | sort -u
  echo "pairwise $n"; echo "pairwise-nonblocking $n"
  for form in parlinna parlinna-staggered; do
    for batch in -batched:1 -nonblocking; do echo "$form:2$batch $shape"; done
  done
}

mkdir -p "$(dirname "$csv")"
raw=$(mktemp)
trap 'rm -f "$raw"' EXIT
for ((round = 1; round <= rounds; round++)); do
  for backend in ${backends//,/ }; do
    for size in ${sizes//,/ }; do
      while read -r algorithm torus; do
        link=() unit=1
        [ $backend = emu ] && link=("${model[@]}") unit=$scale
        nodes=(-n "$n")
        [ "$torus" = "$shape" ] && nodes=(--torus "${shape%+*}" --ranks-per-node "$per_node")
        env "${link[@]}" "$hopbine" launch --backend $backend "${nodes[@]}" "$hopbine" run \
          alltoall --torus "$torus" --counts uniform --bytes $((n * size)) \
          --algorithm "$algorithm" --ports 1 --iterations "$iterations" --format csv </dev/null |
          awk -F, -v what="$backend,$size,$algorithm" -v unit=$unit '
            NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            { print what "," 1e6 / unit * $at["median_s"]; if ($at["verified"] != "true") exit 1 }' >>"$raw"
      done < <(rows)
    done
  done
done

# Medians over the rounds, in microseconds, and the fastest of each line.
awk -F, -v csv="$csv" '
function median(list, n,   i, j, t) {
  for (i = 2; i <= n; i++)
    for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
  return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}
{
  line = $1 " " $2
  if (!(line in known)) { known[line] = 1; lines[++n_lines] = line }
  if (!($3 in column)) { column[$3] = 1; names[++n_names] = $3 }
  times[line, $3, ++count[line, $3]] = $4
}
END {
  printf "%-4s %8s", "wire", "bytes"
  for (c = 1; c <= n_names; c++) printf " %30s", names[c]
  printf "  fastest\n"
  print "wire,bytes,algorithm,us" > csv
  for (l = 1; l <= n_lines; l++) {
    split(lines[l], key, " ")
    printf "%-4s %8d", key[1], key[2]
    best = ""
    for (c = 1; c <= n_names; c++) {
      n = count[lines[l], names[c]]
      for (i = 1; i <= n; i++) list[i] = times[lines[l], names[c], i]
      value = median(list, n)
      printf " %30.1f", value
      print key[1] "," key[2] "," names[c] "," value > csv
      if (best == "" || value < least) { best = names[c]; least = value }
    }
    printf "  %s\n", best
  }
}' "$raw"
echo "CSV: $csv" >&2
