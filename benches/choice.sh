#!/usr/bin/env bash
# Is what the library chooses on this host the fastest that it has? Every algorithm of the registry that serves, on
# 1 port and on all, in turn with a call that names none, over shared memory; as a table.
#
#   benches/choice.sh [RANKS]...     2 and 4 by default
#
# A row for each collective and size: the call that names none, the fastest algorithm besides, and how much longer the call
# takes (median and, in brackets, what holds it with 95 %). The fastest of many algorithms is also lucky, so `again` has the
# same ratio from 15 more rounds of the fastest and the table's algorithm in turn, if it is above 1 with 99 %. Only this
# ratio counts as slower. HOPBINE=PATH is the command to use, built if there is none; SIZES=RANGE and BUDGET=TIME are its
# --bytes and --budget for each number of ranks.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# != 0 ] || set -- 2 4
if [ -z "${HOPBINE:-}" ]; then
  cargo build --release --quiet --bin hopbine
  HOPBINE=target/release/hopbine
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "| ranks | collective | bytes | chosen, us | fastest | us | chosen over fastest | again |"
echo "| ---: | --- | ---: | ---: | --- | ---: | ---: | ---: |"
for ranks; do
  "$HOPBINE" tune --measure --backend shm --torus "$ranks" --bytes "${SIZES:-8..16MiB:x8}" --ports 1 --quiet \
    --budget "${BUDGET:-10min}" -o "$work/$ranks.toml" --log "$work/$ranks.csv"
  awk -F, -v ranks="$ranks" '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { key = $at["collective"] "," $at["bytes"]; us = $at["median_us"] }
    !(key in seen) { seen[key] = 1; order[++n] = key }
    $at["algorithm"] == "auto" { auto[key] = us; low[key] = $at["low_us"]; high[key] = $at["high_us"]; next }
    $at["anew_over_before"] > 0 { again[key] = 1 / $at["anew_over_before"] }
    !(key in best) || us < best[key] { best[key] = us; name[key] = $at["algorithm"] }
    END {
      for (i = 1; i <= n; i++) {
        key = order[i]
        if (!(key in auto) || !(key in best)) continue
        split(key, of, ",")
        over = key in again && auto[key] > best[key] ? again[key] : 1
        worst = over > worst ? over : worst
        slower += over > 1.1
        printf "| %d | %s | %s | %.2f (%.2f to %.2f) | %s | %.2f | %.2f | %s |\n", ranks, of[1], of[2], auto[key], low[key], high[key], name[key], best[key], auto[key] / best[key], (over > 1 ? sprintf("%.2f", over) : "")
      }
      printf "%d ranks: %d of %d calls are more than 10 %% slower than the fastest, the worst %.2f times\n", ranks, slower, n, worst > "/dev/stderr"
    }' "$work/$ranks.csv"
done
