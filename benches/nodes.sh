#!/usr/bin/env bash
# Trends of the many-core alltoall paper and of the generalized-radix paper over ranks that are
# processes, several on each node, in microseconds of the modelled machine or of this host; each
# row's algorithms in turn in one run.
#
#   benches/nodes.sh [NODES] [RANKS_PER_NODE] [BLOCK BYTES]...     4, 4 and 8 256 4096 by default
#
# Two kinds of links (LINKS, "host model"):
#   host   the device takes no time, ranks of a node speak through memory;
#   model  all messages go through the device, with the delays of a machine (model.sh). Between nodes
#          L = 0.5 us, o = 1.4 us at each end, 6.26 GB/s; inside nodes L = 0.1, o = 0.2 us, 10 GB/s.
#          Figures are those of the modelled machine.
#
# HOPBINE=PATH is the command to use, built if there is none; ROUNDS=N how often each is run (3),
# of which the smallest median is shown, as the paper shows the minimum of three runs. TABLES, the
# collectives wanted, "alltoall reduce bcast allreduce allgather".
set -euo pipefail
cd "$(dirname "$0")/.."
nodes=${1:-4} per_node=${2:-4}
shift $(($# < 2 ? $# : 2))
[ $# != 0 ] || set -- 8 256 4096
if [ -z "${HOPBINE:-}" ]; then
  cargo build --release --quiet --bin hopbine
  HOPBINE=target/release/hopbine
fi
ranks=$((nodes * per_node))
rounds=${ROUNDS:-3}
. benches/model.sh

# The smallest median of one algorithm: LINK COLLECTIVE ALGORITHM BYTES.
measure() {
  local best='' link=() unit=1
  [ "$1" = host ] || link=("${model[@]}") unit=$scale
  for _ in $(seq "$rounds"); do
    local got
    got=$(env "${link[@]}" "$HOPBINE" launch -n "$ranks" --torus "$nodes" \
      --ranks-per-node "$per_node" "$HOPBINE" run "$2" \
      --torus "$nodes" --per-node "$per_node" --backend emu --type u8 --bytes "$4" \
      --algorithm "$3" --ports 1 --iterations "${ITERATIONS:-15}" --format json |
      sed -n 's/.*"median_s": \([0-9.e-]*\).*/\1/p')
    best=$(printf '%s\n%s\n' "$best" "$got" | sed '/^$/d' | sort -g | head -n 1)
  done
  awk -v s="$best" -v unit="$unit" 'BEGIN { printf "%.1f", s * 1e6 / unit }'
}

# A table: COLLECTIVE, then algorithms; sizes are of blocks.
table() {
  local collective=$1
  [[ " ${TABLES:-$collective} " = *" $collective "* ]] || return 0
  shift
  printf '\n%s on %s nodes of %s ranks, us\n| link | block |' "$collective" "$nodes" "$per_node"
  printf ' %s |' "$@"
  printf '\n| --- | --- |'
  printf ' --- |%.0s' "$@"
  for link in ${LINKS:-host model}; do
    for block in $sizes; do
      printf '\n| %s | %s B |' "$link" "$block"
      for algorithm; do
        printf ' %s |' "$(measure "$link" "$collective" "$algorithm" $((block * ranks)))"
      done
    done
  done
  echo
}

sizes=$*
half=$((per_node / 2))
table alltoall pairwise pairwise-nonblocking hierarchical hierarchical-nonblocking \
  "multi-leader:$half" "multi-leader:$half-nonblocking" node-aware node-aware-nonblocking \
  "locality-aware:$half" "multi-leader-node-aware:$half" "multi-leader-node-aware:$half-nonblocking" \
  bruck:2
# Whole vectors of these sizes, from one rank to all and back.
for collective in reduce bcast; do
  table "$collective" knomial:2-tree knomial:4-tree "knomial:$ranks-tree"
done
table allreduce multiplying:2-l multiplying:4-l "multiplying:$ranks-l"
table allgather bucket "kring:$half"
