#!/usr/bin/env bash
# What registrations cost a repeated allreduce where they are expensive, in turn: kept by the cache, not kept (short
# calls are copied through memory that stays registered), and not kept with every buffer registered anew. On the
# emulated device, which charges 20 us for a registration and 10 us for its end.
#
#   benches/registration.sh [-n RANKS] [-t TORUS] [-r ROUNDS] [-l BUDGET_MS] [-s SIZES] [-c COLLECTIVES] [-m MACHINE]
#       (2, 2, 9, 40, 8 B to 4 MiB, allreduce, none)
#
# Without a machine (-m tofu-d) the device moves data as fast as this host copies, so that copies show most.
#
# Prints medians and minima over the rounds, in microseconds, and both as ratios to those with the cache. The machine
# is best left alone meanwhile; the ratio of minima hardly depends on it.
set -euo pipefail
cd "$(dirname "$0")/.."
n=2 torus=2 rounds=9 budget=40 what=allreduce machine=
sizes=8,64,512,4096,8192,32768,65536,131072,262144,524288,1048576,4194304
while getopts n:t:r:l:s:c:m: option; do
  case $option in
  n) n=$OPTARG ;; t) torus=$OPTARG ;; r) rounds=$OPTARG ;; l) budget=$OPTARG ;; s) sizes=$OPTARG ;; c) what=$OPTARG ;; m) machine=$OPTARG ;;
  *) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done

cargo build --quiet --release -p hopbine-cli --bin hopbine
built=${CARGO_TARGET_DIR:-target}/release
times=$(mktemp)
trap 'rm -f "$times"' EXIT

# KIND [VARIABLE=VALUE]...
measure() {
  local kind=$1
  shift
  env HOPBINE_EMU_REG_NS=20000 HOPBINE_EMU_DEREG_NS=10000 HOPBINE_SHM=off HOPBINE_EMU_MACHINE="$machine" "$@" \
    "$built/hopbine" launch -n "$n" --torus "$torus" --backend emu "$built/hopbine" bench-rank \
    "$what" "$sizes" "$budget" | awk -v kind="$kind" '{ print kind, $1, $2, $3 }' >>"$times"
}
for ((round = 1; round <= rounds; round++)); do
  # None is always behind the same other.
  kinds=(kept copied anew)
  [ $((round % 2)) = 0 ] || kinds=(anew copied kept)
  for kind in "${kinds[@]}"; do
    case $kind in
    kept) measure kept ;;
    copied) measure copied HOPBINE_REG_CACHE=off ;;
    anew) measure anew HOPBINE_REG_CACHE=off HOPBINE_STAGE_BYTES=0 ;;
    esac
  done
done

awk '
function sorted(list, n,   i, j, t) {
  for (i = 2; i <= n; i++)
    for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
}
{
  row = $2 " " $3
  if (!(row in seen)) { seen[row] = 1; rows[++n_rows] = row }
  values[row, $1, ++n_of[row, $1]] = $4
}
END {
  printf "%-24s %9s %9s | %9s %9s %6s %6s | %9s %9s %6s %6s\n", "", "kept", "least",
    "copied", "least", "median", "least", "anew", "least", "median", "least"
  split("kept copied anew", kinds, " ")
  for (r = 1; r <= n_rows; r++) {
    row = rows[r]
    printf "%-24s", row
    for (k = 1; k <= 3; k++) {
      n = n_of[row, kinds[k]]
      for (i = 1; i <= n; i++) list[i] = values[row, kinds[k], i]
      sorted(list, n)
      middle = n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
      if (k == 1) { printf " %9.2f %9.2f", middle, list[1]; kept = middle; least = list[1] }
      else printf " | %9.2f %9.2f %6.2f %6.2f", middle, list[1], middle / kept, list[1] / least
    }
    print ""
  }
}' "$times"
