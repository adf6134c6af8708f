#!/usr/bin/env bash
# The way of a call as a debugger sees it: the files from Communicator::allreduce to where each of the four wires takes
# a message, of a call that has been made often before. Each must be in ARCHITECTURE.md ("The way of a call"), and they
# may be eight at most.
#
#   ci/way.sh [PROGRAM]
#
# PROGRAM is examples/calls.rs with line tables and Debian's Open MPI; without it, it is built (target/release).
#
# Exit status 3: gdb or Open MPI is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/mpi/launch.sh
if ! command -v gdb >/dev/null || ! use_mpi openmpi; then
  echo "ci/way.sh needs gdb and Debian's Open MPI" >&2
  exit 3
fi

most=8
program=${1:-}
if [ -z "$program" ]; then
  cargo build --release --quiet -p hopbine-mpi --features linked --example calls-mpi
  program=${CARGO_TARGET_DIR:-target}/release/examples/calls-mpi
fi
listed=$(sed -n '/^## The way of a call/,/^## Words/p' ARCHITECTURE.md)

# WIRE BYTES FILE:FUNCTION: the files on the stack, from the wire's function that takes a message up to the call. The
# first calls differ, so 400 messages pass. Of ranks that are processes, the debugger starts the first.
files_on_the_way() {
  local call=("$program" "$1" allreduce blocking "$2" 300) start=(timeout 120) others=()
  if [ "$1" = mpi ]; then
    export HOPBINE_BACKEND=mpi HOPBINE_SHM=off HOPBINE_TORUS=2
    start=(launch_within 120 1) others=(: -n 1 "${call[@]}")
  fi
  "${start[@]}" gdb -batch -nx -ex 'set pagination off' -ex "break $3" -ex 'ignore 1 400' -ex run -ex bt \
    --args "${call[@]}" "${others[@]}" 2>/dev/null |
    awk '/^#/ && !ended && match($0, / at (src|sys)\/[^:]*/) {
      file = substr($0, RSTART + 4, RLENGTH - 4)
      if (!seen[file]++) print file
      ended = file == "src/comm/forms/methods.rs"
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
for wire in 'shm 65536 queue.rs:push' 'utofu 8 batch.rs:put_batch' 'mpi 8 src/endpoint/mpi/outbound.rs:send' \
  'sim 8 src/endpoint/sim/device.rs:copied'; do
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
