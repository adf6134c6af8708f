#!/usr/bin/env bash
# Plants faults in the library, one at a time, and sees that chaos finds each of them.
#
#   ci/planted.sh            all of them
#   ci/planted.sh NAME...    these (src/planted.rs)
#
# MOST_SEEDS is how many seeds may be needed (default: 5000), BACKEND what carries the messages (default: sim, but
# sim-utofu for what concerns registrations). Prints how many were.
#
# Exit code: 0 all were found, 1 one was not.
set -euo pipefail
cd "$(dirname "$0")/.."

most=${MOST_SEEDS:-5000}
export RUSTFLAGS="${RUSTFLAGS:-} --cfg planted" CARGO_TARGET_DIR=target/planted
cargo build --release --quiet
hopbine=target/planted/release/hopbine
[ $# != 0 ] || mapfile -t faults < <(sed -n 's/^        Planted::\([A-Za-z]*\),$/\1/p' src/planted.rs)
[ $# = 0 ] || faults=("$@")
[ $# != 0 ] || [ ${#faults[@]} -ge 12 ] || { echo "src/planted.rs is read wrongly: ${faults[*]}" >&2; exit 1; }

# What concerns registered memory of a real device.
declare -A backends=([EventMissed]=sim-utofu)
failed=0 said=$(mktemp)
trap 'rm -f "$said"' EXIT
for fault in "${faults[@]}"; do
  status=0
  out=$("$hopbine" chaos --seeds "1..$most" --backend "${BACKEND:-${backends[$fault]:-sim}}" --plant "$fault" --threads 1 --format json 2>"$said") || status=$?
  # 1: a seed is wrong. The command line itself is refused with 2.
  [ "$status" -le 1 ] || { cat "$said" >&2; exit 1; }
  # A fault can make a run go round in a circle, which is said in words.
  seed=$(sed -n 's/.*"seed":\([0-9]*\).*/\1/p; s/^seed \([0-9]*\) is wrong:$/\1/p' <<<"$out")
  what=$(sed -n 's/.*"wrong":\["\([^"]*\)".*/\1/p; s/^  \(it does not end.*\)/\1/p' <<<"$out")
  if [ -n "$seed" ]; then
    printf '%-18s %5s seeds: %s\n' "$fault" "$seed" "$what"
  else
    printf '%-18s NOT FOUND by %s seeds\n' "$fault" "$most"
    failed=1
  fi
done
exit $failed
