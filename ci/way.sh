#!/usr/bin/env bash
# The way of a call as a debugger sees it: the files from Communicator::allreduce to where the wire takes a
# message, of a call that has been made often before. Each must be in ARCHITECTURE.md ("The way of a call"),
# and they may be eight at most.
#
#   ci/way.sh [PROGRAM]
#
# PROGRAM is examples/calls.rs with line tables; without it, it is built (target/release).
#
# Exit status 3: gdb is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v gdb >/dev/null || { echo "ci/way.sh needs gdb" >&2; exit 3; }

most=8
program=${1:-}
if [ -z "$program" ]; then
  cargo build --release --quiet --example calls
  program=${CARGO_TARGET_DIR:-target}/release/examples/calls
fi
listed=$(sed -n '/^## The way of a call/,/^## Words/p' ARCHITECTURE.md)

# WIRE BYTES FILE:FUNCTION: the files on the stack, from the wire's function that takes a message up to the call. The
# first calls differ, so 400 messages pass.
files_on_the_way() {
  timeout 120 gdb -batch -nx -ex 'set pagination off' -ex "break $3" -ex 'ignore 1 400' \
    -ex "run $1 allreduce blocking $2 300" -ex bt "$program" 2>/dev/null |
    awk '/^#/ && match($0, / at (src|sys)\/[^:]*/) {
      file = substr($0, RSTART + 4, RLENGTH - 4)
      if (!seen[file]++) print file
      if (file == "src/comm/forms/methods.rs") exit
    }'
}

# Files of a wire are listed without their directory.
is_listed() {
  case $1 in
    src/endpoint/*/mod.rs) grep -qF "\`src/endpoint/{" <<<"$listed" ;;
    src/endpoint/*) grep -qF "\`${1##*/}\`" <<<"$listed" ;;
    *) grep -qF "\`$1\`" <<<"$listed" ;;
  esac
}

status=0
for wire in 'shm 65536 queue.rs:push' 'utofu 8 batch.rs:put_batch'; do
  read -r name bytes function <<<"$wire"
  mapfile -t files < <(files_on_the_way "$name" "$bytes" "$function")
  echo "$name: ${#files[@]} files: ${files[*]}"
  if [ ${#files[@]} = 0 ] || [ "${files[-1]}" != src/comm/forms/methods.rs ]; then
    echo "$name: the call is not on the stack where \`$function\` takes a message" >&2
    status=1
  elif [ ${#files[@]} -gt $most ]; then
    echo "$name: more than $most files" >&2
    status=1
  fi
  for file in "${files[@]}"; do
    is_listed "$file" || { echo "$name: ARCHITECTURE.md does not list $file" >&2; status=1; }
  done
done
exit $status
