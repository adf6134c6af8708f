#!/usr/bin/env bash
# Fuzzes what reads bytes of other processes (fuzz/fuzz_targets), under the address sanitizer.
#
#   ci/fuzz.sh [SECONDS] [TARGET]...
#
# Each target for so many seconds (60), from the seeds that are checked in (fuzz/seeds) and what earlier
# runs have found (fuzz/corpus); all of them if none is named. An input that fails goes to
# fuzz/artifacts/TARGET: put it among the seeds, which every `cargo test` plays.
#
# Exit status: 0 nothing found, 1 something, 3 this toolchain cannot do it.
#
# Needed: rustc with the address sanitizer's run-time library for x86-64 Linux (rustup's toolchains have
# it; RUSTC_BOOTSTRAP lets a stable one use it), a C++ compiler. `cargo fuzz run TARGET fuzz/seeds/TARGET`
# does the same with a nightly toolchain.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=60
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
  seconds=$1
  shift
fi
mapfile -t targets < <(for file in fuzz/fuzz_targets/*.rs; do basename "$file" .rs; done)
[ $# = 0 ] || targets=("$@")

target=x86_64-unknown-linux-gnu
cannot() {
  echo "ci/fuzz.sh: NOTHING WAS FUZZED: $*" >&2
  exit 3
}
host=$(rustc -vV | sed -n 's/^host: //p')
[ "$host" = $target ] || cannot "this is for $target only, and rustc is for ${host:-nothing known}"
command -v c++ >/dev/null || cannot "a C++ compiler is needed (c++)"

export RUSTC_BOOTSTRAP=1 CARGO_INCREMENTAL=0
# Not the caller's: flags that differ would be instrumented differently.
unset CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET RUSTC_WORKSPACE_WRAPPER
# As cargo-fuzz has them.
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Zsanitizer=address"
build=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
echo "== building"
CARGO_TARGET_DIR=$build cargo build --quiet --release --locked --target $target --manifest-path fuzz/Cargo.toml

failed=0
for name in "${targets[@]}"; do
  echo "== $name, $seconds s"
  corpus=fuzz/corpus/$name found=fuzz/artifacts/$name log=$build/$name.log
  mkdir -p "$corpus" "$found"
  # An input may wait for what a lender's memory is taken back from; much longer is a hang.
  if "$build/$target/release/$name" "$corpus" "fuzz/seeds/$name" -max_total_time="$seconds" -timeout=10 \
    -rss_limit_mb=2048 -artifact_prefix="$found/" -print_final_stats=1 >"$log" 2>&1; then
    grep -E '^stat::(number_of_executed_units|average_exec_per_sec)' "$log" | tr '\n' ' '
    echo
  else
    failed=1
    tail -n 40 "$log"
    echo "$name: FAILED; the input is in $found"
  fi
done
exit $failed
