#!/usr/bin/env bash
# Runs tests under a sanitizer; any report is a failure.
#
#   ci/sanitize.sh address   memory errors and leaks
#   ci/sanitize.sh thread    data races, about eight minutes
#
# ci/nightly.sh runs both.
#
# Exit code: 0 no report, 1 a report or a failed test, 3 this toolchain cannot do it.
#
# Needed: rustc with the sanitizers' run-time libraries for x86-64 Linux (rustup's toolchains have
# them; RUSTC_BOOTSTRAP lets a stable one use them), gcc for `address`, the component rust-src for `thread`, which
# compiles the standard library with the sanitizer, too.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null
. ci/cores.sh

say() { printf '\n== %s\n' "$*"; }
cannot() {
  echo "ci/sanitize.sh: NOTHING WAS CHECKED: $*" >&2
  exit 3
}

kind=$*
case $kind in
  address | thread) ;;
  *)
    sed -n '2,13s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac

target=x86_64-unknown-linux-gnu
host=$(rustc -vV | sed -n 's/^host: //p')
[ "$host" = $target ] || cannot "this is for $target only, and rustc is for ${host:-nothing known}"

export RUSTC_BOOTSTRAP=1
# Not the caller's: flags that differ would be instrumented differently.
unset CARGO_ENCODED_RUSTFLAGS RUSTDOCFLAGS CARGO_BUILD_TARGET
export CARGO_TARGET_DIR=$PWD/target/sanitize-$kind
# With the lines of reports, which cost a tenth of the time to compile, unless the caller wants none.
export CARGO_PROFILE_TEST_DEBUG=${CARGO_PROFILE_TEST_DEBUG:-line-tables-only}
export CARGO_PROFILE_DEV_DEBUG=${CARGO_PROFILE_DEV_DEBUG:-line-tables-only}
export CARGO_INCREMENTAL=0
# More time goes into compiling than into running.
export CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_TEST_OPT_LEVEL=1
export CARGO_PROFILE_DEV_CODEGEN_UNITS=1 CARGO_PROFILE_TEST_CODEGEN_UNITS=1
# `cargo test` has them.
export CARGO_PROFILE_DEV_DEBUG_ASSERTIONS=false CARGO_PROFILE_TEST_DEBUG_ASSERTIONS=false
export CARGO_PROFILE_DEV_OVERFLOW_CHECKS=false CARGO_PROFILE_TEST_OVERFLOW_CHECKS=false
made=$CARGO_TARGET_DIR/made
mkdir -p "$made"
# Arguments of cargo for a standard library with the sanitizer.
with_std=()

# Sets RUSTFLAGS and the sanitizer's options.
address() {
  command -v gcc >/dev/null || cannot "gcc is needed, for C programs beside instrumented libraries"
  # The device as a C library has the sanitizer's functions from the program that loads it: from a
  # test program, which must show them, or from a C program, for which gcc brings its own. Another
  # shared object is left as it is: gcc's and Rust's run-time libraries do not bear each other.
  printf '%s\n' '#!/bin/sh' 'for a; do [ "$a" = -shared ] && exec gcc "$@"; done' \
    'exec gcc -fsanitize=address "$@"' >"$made/cc"
  chmod +x "$made/cc"
  export CC=$made/cc
  # cc may be another compiler.
  export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=gcc
  export RUSTFLAGS="-Zsanitizer=address -Clink-arg=-Wl,--export-dynamic-symbol=__asan_*"
  export ASAN_OPTIONS="strict_string_checks=1:detect_leaks=1"
}

thread() {
  # With the standard library, whose locks order our accesses.
  [ -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ] ||
    cannot "the standard library's source is needed: rustup component add rust-src"
  with_std=(-Zbuild-std --config 'profile.dev.package."*".opt-level=1')
  export RUSTFLAGS="-Zsanitizer=thread"
}

# Shows that the sanitizer reports what it must and nothing else.
probe() {
  say "does rustc $(rustc -V | cut -d' ' -f2) do it?"
  mkdir -p "$made/probe"
  printf '%s\n' '[package]' 'name = "probe"' 'edition = "2024"' '[[bin]]' 'name = "probe"' \
    "path = '$PWD/ci/sanitize/probe.rs'" '[workspace]' >"$made/probe/Cargo.toml"
  cargo build --quiet --manifest-path "$made/probe/Cargo.toml" --target $target "${with_std[@]}" ||
    cannot "the probe does not compile or link; see above"
  local probe=$CARGO_TARGET_DIR/$target/debug/probe
  "$probe" clean || cannot "it reports what is right; see above"
  local mode
  for mode in "$@"; do
    if "$probe" "$mode" >"$made/probe.log" 2>&1 || ! grep -q 'Sanitizer: ' "$made/probe.log"; then
      cat "$made/probe.log"
      cannot "it misses what the probe does wrong in mode $mode"
    fi
    echo "$mode: reported"
  done
}

packages=(-p hopbine -p hopbine-meet -p hopbine-testing -p utofu-emu -p utofu-emu-capi -p utofu)
device=(--test atomics --test model --test threads)
few=(--lib --test bootstrap --test brk --test errors --test gates --test handles --test jtofu --test seeds)
failed=0
log=$made/log

# build ARGUMENTS...: all that is needed at once, since what is built alone leaves a core idle.
build() {
  cargo test --quiet --no-run --target $target "${with_std[@]}" "${packages[@]}" "$@" || exit 1
}

# tests AT_LEAST ARGUMENTS...: cargo test of these targets; fewer tests than that are a failure,
# since a name that has changed would otherwise go unnoticed.
tests() {
  local at_least=$1 passed
  shift
  say "$kind: $*"
  if ! cargo test --quiet --no-fail-fast --target $target "${with_std[@]}" "${packages[@]}" "$@" 2>&1 | tee "$log"; then
    failed=1
  fi
  # Programs in the tests' charge print their reports, too.
  if grep -q 'Sanitizer: ' "$log"; then
    failed=1
  fi
  passed=$(awk '
    /^test result: / { n += $4 } /^conformance: / { n += $2 } /^bootstrap_processes: ok/ { n += 1 }
    END { print n + 0 }' "$log")
  echo "$passed passed"
  if [ "$passed" -lt "$at_least" ]; then
    echo "ci/sanitize.sh: expected $at_least tests at least" >&2
    failed=1
  fi
}

# part NAME: the function address_NAME, with a log of its own. Some tests wait for time-outs: three at a time.
part() {
  log=$made/log-$1
  RUST_TEST_THREADS=3 "address_$1"
  return $failed
}

run_address() {
  packages+=(-p hopbine-cli)
  build "${few[@]}" "${device[@]}" --test library --test ranks --test bootstrap_processes --test conformance \
    --test processes --test command
  # What the device does at once on several cores needs them.
  tests 19 "${device[@]}" --test processes -- --skip collectives:: --skip communicators:: --skip gates:: \
    --skip lost:: --skip chaos:: --skip mismatch:: --skip reg_cache:: --skip a_world_that_has_failed
  # So does what ranks still do in each other's memory when a call has failed; without leaks, as below.
  ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 tests 2 --test ranks -- --exact \
    failures::one_thread_frees_while_another_finds_out failures::nor_do_workers
  # The rest on one core each: ranks are more than cores. What takes longest comes first.
  each_on_a_core "$made/said" part ranks communicators collectives failures units wires conformance commands ||
    failed=1
}

# Left out: allocation, which counts allocations; matrix, which runs the code of emulated on more shapes;
# a test that measures its own memory, where the sanitizer keeps what is freed.
address_ranks() {
  tests 13 --test ranks -- --exact emulated::every_algorithm_on_a_ring_of_5 emulated::types_and_operators \
    emulated::every_algorithm_on_2x3 emulated::every_algorithm_with_workers emulated::puts_are_cut \
    emulated::wrong_calls_are_refused_and_harmless \
    engine::by_hand::folds_take_many_operands_in_order engine::by_hand::uneven_overlaps_are_refused \
    engine::by_hand::exchanges_in_place_do_not_wait_for_each_other engine::rooted \
    stress::wires_of_many_kinds stress::workers_meet_skew_and_delay \
    stress::a_sleeping_root_is_flooded_and_loses_nothing
}

address_communicators() {
  tests 30 --test processes -- communicators:: gates:: mismatch:: reg_cache:: \
    --skip memory_comes_back --skip processes_tell_each_other --skip both_ranks_that_disagree \
    --skip can_be_trusted --skip trust_is_refused
}

address_collectives() { tests 14 --test processes -- collectives::; }

# What ends with a failure leaves behind what a peer may still write to, as the library promises, and one
# test forgets requests: without the search for leaks.
address_failures() {
  ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 tests 12 --lib --test processes --test ranks -- --exact \
    again::a_world_that_has_failed_can_be_followed_by_another \
    chaos::ranks_survive_random_failures_in_shared_memory \
    chaos::ranks_survive_random_failures_on_the_emulated_device \
    engine::tests::workers_wake_after_the_first_messages_of_all_ports \
    mismatch::both_ranks_that_disagree_are_told_to_all mismatch::processes_tell_each_other \
    requests::dropped_and_forgotten_requests_complete \
    lost::all_that_are_missing_can_be_asked_for lost::a_rank_in_another_call_is_named \
    duplicate_ends::what_outlives_a_communicator_works_and_what_outlives_the_world_refuses \
    duplicate_ends::when_a_rank_panics_everybody_ends \
    ending::a_panic_in_a_worker_is_a_failure_of_its_rank
}

address_units() {
  tests 200 "${few[@]}" --test library -- --skip what_the_allocator_gives_back --skip the_allocator_can \
    --skip workers_wake_after_the_first_messages
}

# Not without_userfaultfd and what_the_allocator_gives_back, here and elsewhere: a sanitizer's allocator makes its
# system calls itself, past the C library's functions, which are what these tests watch. Nor where the C library's
# allocator is told to keep memory (the_allocator_can_be_told, can_be_trusted, trust_is_refused): a sanitizer has its own.
address_wires() {
  tests 50 --test ranks -- endpoint:: ending:: regcache:: requests:: shm:: \
    --skip dropped_and_forgotten_requests_complete --skip a_panic_in_a_worker --skip without_userfaultfd
}

# Not where the launcher's output is closed: it ends before the threads that read its ranks' outputs.
address_commands() { tests 20 --test command -- launched:: --skip a_closed_output; }

address_conformance() {
  tests 100 --test conformance
  tests 1 --test bootstrap_processes
}

run_thread() {
  build "${few[@]}" "${device[@]}" --test processes --test ranks
  # Left out: whatever needs several processes or C programs, which the sanitizer does not see
  # through (command, processes but for what is named here, bootstrap_processes, conformance, library,
  # and some tests of others); a test that measures its own memory, much of which is the
  # sanitizer's; allocation, which counts; matrix, as above; a test in which several ranks panic at
  # once, whose messages the standard library orders out of the sanitizer's sight; tests without userfaultfd, for which
  # the C library calls our code at the end of threads, when the sanitizer has forgotten them, and dies of it.
  # One test at a time, and without capture: both keep the harness's own threads out.
  local how=(--test-threads=1 --nocapture --skip queues_cost_what_is_used --skip what_the_allocator_gives_back
    --skip without_userfaultfd --skip the_c_library_tells_of_memory --skip changed_functions_tell
    --skip the_allocator_can --skip can_be_trusted --skip events_serve_programs
    --skip trust_is_refused)
  tests 150 "${few[@]}" "${device[@]}" -- "${how[@]}"
  tests 90 --test processes --test ranks -- "${how[@]}" \
    communicators:: duplicate_ends:: ending:: endpoint:: engine:: gates:: mismatch:: reg_cache:: \
    regcache:: requests:: \
    --skip memory_comes_back --skip two_threads_of_every_process \
    --skip processes_tell_each_other --skip when_a_rank_panics_everybody_ends
  tests 14 --test ranks -- "${how[@]}" --exact \
    emulated::every_algorithm_on_2x3 emulated::every_algorithm_on_2x2x2 \
    emulated::every_algorithm_on_a_ring_of_5 emulated::every_algorithm_with_workers \
    emulated::one_rank_alone emulated::defaults_choose_something_right emulated::puts_are_cut \
    emulated::types_and_operators emulated::wrong_calls_are_refused_and_harmless \
    stress::wires_of_many_kinds stress::workers_meet_skew_and_delay stress::sixteen_ranks \
    stress::ten_thousand_calls_over_a_slow_wire stress::a_sleeping_root_is_flooded_and_loses_nothing
  # Over shared memory, of which the ranks of a process have one mapping: so the sanitizer sees what they read and write
  # in it.
  HOPBINE_TEST_BACKEND=shm tests 45 --test ranks -- "${how[@]}" \
    duplicate_ends:: flat_buffers:: requests:: shm:: stress::wires_of_many_kinds stress::sixteen_ranks \
    emulated::every_algorithm_on_a_ring_of_5 emulated::every_algorithm_with_workers emulated::types_and_operators \
    emulated::puts_are_cut
}

case $kind in
  address)
    address
    probe overflow freed leak
    ;;
  thread)
    thread
    probe counter flag two-locks read-lock
    ;;
esac
"run_$kind"

if [ $failed != 0 ]; then
  say "$kind: FAILED, see above"
  exit 1
fi
say "$kind: no report"
