#!/usr/bin/env bash
# Line coverage of the code that all wires share: matching, diagnosis and the engine.
#
#   ci/coverage.sh [COMMAND]...
#
# Each COMMAND is one argument, for example "cargo test -p hopbine --lib"; all are run with instrumented
# code. Default: the unit tests and the simulated wire, also with timelines.
#
# COVERAGE_FLOOR is the least that is enough, in percent (default: 95). Unit tests at the ends of files do
# not count as lines. Needs cargo-llvm-cov (cargo install cargo-llvm-cov) and LLVM's tools, of rustc's LLVM
# version: rustup's component llvm-tools, or those that LLVM_COV and LLVM_PROFDATA name (on Debian:
# llvm-22 for Rust 1.95).
#
# Exit code: 0 enough, 1 too little, or a command failed, 3 a tool is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
files='^src/(engine/.*|endpoint/[a-z_]+|endpoint/router/.*)[.]rs$'

[ $# != 0 ] || set -- "cargo test -p hopbine -p hopbine-testing --lib --test simulated --test seeds" \
  "env HOPBINE_TRACE=$PWD/target/coverage/trace.json cargo run -- run allreduce --backend sim --torus 3x3x3 --bytes 8..1MiB:x64 --seed 7" \
  "cargo run -- chaos --seeds 1..3000" \
  "cargo run -- chaos --seeds 1..600 --backend sim-utofu"
if ! cargo llvm-cov --version >/dev/null 2>&1; then
  echo "ci/coverage.sh: there is no cargo-llvm-cov: cargo install cargo-llvm-cov" >&2
  exit 3
fi
tools=$(rustc --print target-libdir)/../bin
if [ -z "${LLVM_COV:-}" ] && [ ! -x "$tools/llvm-cov" ]; then
  llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
  export LLVM_COV=llvm-cov-$llvm LLVM_PROFDATA=llvm-profdata-$llvm
  command -v "$LLVM_COV" >/dev/null || {
    echo "ci/coverage.sh: there is no llvm-cov $llvm: rustup component add llvm-tools" >&2
    exit 3
  }
fi

export CARGO_TARGET_DIR=$PWD/target/coverage CARGO_INCREMENTAL=0
# shellcheck source=/dev/null
source <(cargo llvm-cov show-env --sh)
# With what other sources have left: programs of theirs would count.
cargo llvm-cov clean --workspace
for command; do
  echo "== $command"
  # shellcheck disable=SC2086 # words
  $command
done
cargo llvm-cov report -p hopbine --lcov --output-path "$CARGO_TARGET_DIR/lcov" >/dev/null

# Of every file: lines that could run, and that ran.
awk -v root="$PWD/" -v files="$files" -v floor="${COVERAGE_FLOOR:-95}" '
  sub(/^SF:/, "") {
    name = $0
    sub("^" root, "", name)
    counts = name ~ files && name !~ /(_|\/)tests\.rs$/
    # The unit tests of a file are its end.
    end = 1e9
    for (line = 1; counts && (getline text < $0) > 0; line++) {
      if (text ~ /^mod tests/ && before ~ /^#\[cfg\(test\)\]/) end = line - 1
      before = text
    }
  }
  counts && sub(/^DA:/, "") {
    split($0, at, ",")
    if (at[1] >= end) next
    lines[name]++
    ran[name] += at[2] > 0
  }
  END {
    for (name in lines) {
      printf "%6.1f %%  %5d of %5d lines  %s\n", 100 * ran[name] / lines[name], ran[name], lines[name], name | "sort -n"
      all += lines[name]
      all_ran += ran[name]
    }
    close("sort -n")
    if (!all) { print "ci/coverage.sh: no lines of these files" > "/dev/stderr"; exit 1 }
    printf "%6.1f %%  of %d lines; %s %% are needed\n", 100 * all_ran / all, all, floor
    exit 100 * all_ran < floor * all
  }' "$CARGO_TARGET_DIR/lcov"
