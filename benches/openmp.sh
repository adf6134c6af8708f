#!/usr/bin/env bash
# What hopbine's workers cost a program that computes with OpenMP, in turn: driven by the caller, by one worker and by
# a worker for each port, on the emulated device, with as many threads as there are cores and with one less for each
# rank.
#
#   benches/openmp.sh [-n RANKS] [-t TORUS] [-r ROUNDS] [-b BYTES] [-u MICROSECONDS]     (2, 2, 5, 65536, 500)
#
# Prints medians over the rounds of rank 0's median step and of the computing in it, in microseconds, and the ratio
# of the step to that of `auto`. Needs gcc with OpenMP.
set -euo pipefail
cd "$(dirname "$0")/.."
n=2 torus=2 rounds=5 bytes=65536 us=500
while getopts n:t:r:b:u: option; do
  case $option in
  n) n=$OPTARG ;; t) torus=$OPTARG ;; r) rounds=$OPTARG ;; b) bytes=$OPTARG ;; u) us=$OPTARG ;;
  *) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done

cargo build --quiet --release -p hopbine-capi -p hopbine-cli --lib --bin hopbine
built=${CARGO_TARGET_DIR:-target}/release
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=/dev/null
. capi/mpi/build.sh
ln -s "$(realpath "$built")/libhopbine_capi.so" "$work/libhopbine.so.${hopbine_version:?}"
link_names "$work" libhopbine.so
gcc -std=gnu11 -O2 -fopenmp -Iinclude benches/openmp.c -L"$work" -lhopbine -o "$work/openmp"

cores=$(nproc)
most=$((cores / n > 0 ? cores / n : 1))
threads=("$most")
[ "$most" = 1 ] || threads+=($((most - 1)))
for ((round = 0; round < rounds; round++)); do
  for t in "${threads[@]}"; do
    for drive in auto inline worker workers; do
      LD_LIBRARY_PATH=$work OMP_NUM_THREADS=$t HOPBINE_DRIVE=$drive \
        "$built/hopbine" launch -n "$n" --torus "$torus" --backend emu "$work/openmp" 400 "$bytes" "$us" |
        sed "s/^/$t $drive /" >>"$work/times"
    done
  done
done
sort -s -k1,2 "$work/times" | awk '
  function median(list, count,    i, j, x) {
    for (i = 2; i <= count; i++) for (j = i; j > 1 && list[j] < list[j - 1]; j--) { x = list[j]; list[j] = list[j - 1]; list[j - 1] = x }
    return list[int((count + 1) / 2)]
  }
  function end() { if (count) { steps[key] = median(step, count); parts[key] = median(part, count); order[++keys] = key } }
  { if ($1 " " $2 != key) { end(); key = $1 " " $2; count = 0 } step[++count] = $3 + 0; part[count] = $4 + 0 }
  END {
    end()
    printf "%7s %8s %10s %12s %13s\n", "threads", "drive", "step us", "computing us", "step / auto"
    for (i = 1; i <= keys; i++) {
      split(order[i], words, " ")
      printf "%7s %8s %10.1f %12.1f %13.2f\n", words[1], words[2], steps[order[i]], parts[order[i]], steps[order[i]] / steps[words[1] " auto"]
    }
  }'
