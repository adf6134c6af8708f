#!/usr/bin/env bash
# An independent referee of the network model: SimGrid is given the messages that `hopbine simulate --show messages`
# lists, on the same links, and its times must be within 5 % of those that hopbine predicts where software costs
# nothing. Prints a table of all cases, as docs/model.md has it.
#
#   ci/simgrid.sh [--install] [HOPBINE]
#
#   --install   SimGrid (Debian's python3-simgrid; as root)
#   HOPBINE     the command; without it, it is built
#
# Exit status 1: they are further apart, or a case cannot be played; 3: SimGrid is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = --install ]; then
  shift
  apt-get install -y -qq --no-install-recommends libsimgrid-dev python3-simgrid >/dev/null
fi
# Debian's own Python has it.
python=/usr/bin/python3
"$python" -c 'import simgrid' >/dev/null 2>&1 || { echo "ci/simgrid.sh needs python3-simgrid" >&2; exit 3; }
hopbine=${1:-}
if [ -z "$hopbine" ]; then
  cargo build --quiet -p hopbine-cli
  hopbine=${CARGO_TARGET_DIR:-target}/debug/hopbine
fi
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

# Tofu's network, with software that costs nothing.
tofu='tofu-d'
for cost in network.gap node.{post,poll,ack,reduce_ramp,copy_ramp,block} hopbine.{call,wake}; do tofu+=,$cost=0; done
for speed in node.{reduce,reduce_all,copy,copy_all}; do tofu+=,$speed=inf; done
# Without descriptors, which long messages wait for.
tofu+=,hopbine.eager=inf

# Whole messages: SimGrid's ranks do not pass pieces on.
# COLLECTIVE ALGORITHM SHAPE PORTS MACHINE BYTES [ROOT]
cases='
allreduce      bine                  8        2    ideal-torus  1MiB
allreduce      bine                  8x8      4    ideal-torus  64KiB
allreduce      bine-l                8x8      4    ideal-torus  4KiB
allreduce      swing                 16x4     max  ideal-torus  1MiB
allreduce      swing                 8x8      1    ideal-torus  1MiB
allreduce      doubling              4x4x4    max  ideal-torus  1MiB
allreduce      circulant             7        2    ideal-torus  1MiB
allreduce      mixed                 5x7      max  ideal-torus  1MiB
allreduce      bucket                3x5x2    max  ideal-torus  1MiB
allreduce      bucket                4x4x4    6    tofu-d       1MiB
allreduce      bine                  4x4x4    6    tofu-d       1MiB
allreduce      swing                 8x4x4    6    tofu-d       256KiB
allreduce      bine                  8x8      4    hyperx       1MiB
allreduce      bine                  8x8      4    hx2mesh      1MiB
allgather      bucket                13       2    ideal-torus  4MiB
allgather      circulant             11x3     max  ideal-torus  1MiB
allgather      bine-two              8x8      4    ideal-torus  1MiB
allgather      direct                4x6      2    hyperx       1MiB
reduce-scatter multiplying           6x6      max  ideal-torus  1MiB
reduce-scatter bine                  4x2x4    6    tofu-d       2MiB
alltoall       pairwise              4x4x4    6    ideal-torus  1MiB
alltoall       pairwise-nonblocking  3x5      4    ideal-torus  1MiB
alltoall       bine                  8x8      4    ideal-torus  1MiB
alltoall       pairwise              4x2x4    6    tofu-d       1MiB
bcast          bine-tree             8x8      1    ideal-torus  1MiB
bcast          trees                 4x4x4    6    ideal-torus  16MiB
bcast          knomial-tree          3x7      2    ideal-torus  64KiB  5
bcast          bine                  6x4      4    ideal-torus  4MiB   9
gather         mixed                 5x5      2    ideal-torus  1MiB   3
scatter        bine                  4x4x4    6    tofu-d       1MiB
scan           sweeps                12       1    ideal-torus  64KiB
alltoall       pairwise              4+2      2    ideal-torus  1MiB
'

# ARGUMENT...: of hopbine simulate. Leaves what was found in $work/found.
played() {
  "$hopbine" simulate "$@" --show messages --format json -o "$work/messages" || return 1
  timeout 300 "$python" ci/simgrid/play.py "$work/messages" >"$work/found" 2>"$work/said" ||
    { cat "$work/said" >&2; return 1; }
}

echo '| collective | algorithm | torus | ports | machine | bytes | messages | hopbine, us | SimGrid, us | apart |'
echo '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |'
status=0 n=0 most=0
while read -r collective algorithm shape ports machine bytes root; do
  [ -n "$collective" ] || continue
  model=$machine
  [ "$machine" != tofu-d ] || model=$tofu
  case="$collective $algorithm on $shape, $ports ports, $machine, $bytes"
  if ! played "$collective" --algorithm "$algorithm" --torus "$shape" --ports "$ports" --machine "$model" \
    --bytes "$bytes" --segment 1GiB --root "${root:-0}" </dev/null; then
    echo "$case: not played" >&2
    status=1
    continue
  fi
  read -r messages ours theirs <"$work/found"
  apart=$(awk -v a="$ours" -v b="$theirs" 'BEGIN { printf "%.2f", 100 * (a / b - 1) }')
  LC_ALL=C printf '| %s | %s | %s | %s | %s | %s | %d | %.2f | %.2f | %s %% |\n' "$collective" "$algorithm" "$shape" \
    "$ports" "$machine" "$bytes" "$messages" "$ours" "$theirs" "$apart"
  n=$((n + 1))
  if awk -v apart="$apart" 'BEGIN { exit !(apart * apart > 25) }'; then
    echo "$case: $apart % apart" >&2
    status=1
  fi
  most=$(awk -v a="$apart" -v most="$most" 'BEGIN { a = a < 0 ? -a : a; print (a > most ? a : most) }')
done <<<"$cases"
echo "$n cases, at most $most % apart"
[ "$n" -ge 20 ] || { echo "fewer than 20 cases" >&2; status=1; }
exit $status
