#!/usr/bin/env bash
# Installs what the tests need and runs all of them.
#
#   ./test.sh            everything
#   ./test.sh --offline  the same without installing anything first
#
# Needed beyond Rust: C, C++ and Fortran compilers (gcc, g++, gfortran), for the uTofu conformance
# suite and the programs on the C interface. Some checks need more (Open MPI and MPICH, cmake, shellcheck),
# single tests need userfaultfd or huge pages. Where that is missing, checks are left out, and counted
# and named at the end; in CI (CI=true) each is an error.
#
# Those with many ranks go one after the other: ranks wait for each other by yielding their core, so that whatever
# computes beside them slows them down by orders of magnitude. What has idle priority does, too: it gets
# most of the time of a core whose threads yield (Linux 6.18).
set -euo pipefail
cd "$(dirname "$0")"
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0
# A crate in one piece: optimising across pieces adds a tenth to a third to the time to compile.
export CARGO_PROFILE_DEV_CODEGEN_UNITS=1 CARGO_PROFILE_TEST_CODEGEN_UNITS=1

logs=target/test-logs
# shellcheck source=/dev/null
. ci/stages.sh
# shellcheck source=/dev/null
. ci/mpi/launch.sh

install=true
[ "${1:-}" != --offline ] || install=false
is_root_on_debian() { command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; }

can_compile() { command -v cc >/dev/null && command -v make >/dev/null; }
basics=(gcc g++ gfortran libc6-dev make cmake pkg-config shellcheck)
basic_packages() { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${basics[@]}" >/dev/null; }

say "packages"
if $install && is_root_on_debian; then
  # shellcheck disable=SC2154 # of ci/mpi/launch.sh
  echo "apt-get installs what is missing of ${basics[*]}, and for ci/mpi.sh ${debian_mpis[*]};"
  echo "/proc/sys/vm/nr_overcommit_hugepages becomes 16 if it is lower. ./test.sh --offline does neither."
  # What the first stages do not need is fetched beside them.
  can_compile || basic_packages
  # Huge pages for tests of memory events, which are left out where this is refused.
  pages=/proc/sys/vm/nr_overcommit_hugepages
  [ "$(<$pages)" -ge 16 ] || { echo 16 >$pages; } 2>/dev/null || true
elif ! can_compile; then
  echo "please install a C compiler (cc) and make" >&2
  exit 1
fi

clippy() { cargo clippy --workspace --all-targets --quiet -- -D warnings; }
documentation() { RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet; }
# The benchmarks have no tests, and what they need would have everything else built otherwise.
packages=(--workspace --exclude hopbine-benches)
# That of hopbine-mpi needs an MPI: ci/mpi.sh.
integration_tests=(cargo test "${packages[@]}" --exclude hopbine-mpi --bins --test '*')
# On level 1 hopbine's take five times as long to compile as on level 0, and hardly less to run.
unit_tests=(cargo test "${packages[@]}" --lib --config 'profile.test.package.hopbine.opt-level=0')
tests() {
  local status=0
  limited 1200 "${integration_tests[@]}" --no-fail-fast -- --skip lost:: --skip stress:: --skip launched:: || status=1
  limited 300 "${unit_tests[@]}" --no-fail-fast || status=1
  limited 100 cargo test "${packages[@]}" --doc || status=1
  return $status
}
# These modules mostly wait, for ranks that are lost (on both wires), for slow wires or for jobs: all at once, and four
# tests of each at a time.
tests_that_wait() {
  local test=(limited 400 cargo test "${packages[@]}" --test processes --test ranks -- --test-threads=4) pids=() pid status=0
  at_least 10 "${test[@]}" lost:: >"$logs/lost" 2>&1 & pids+=($!)
  HOPBINE_TEST_BACKEND=shm at_least 10 "${test[@]}" lost:: >"$logs/lost-shm" 2>&1 & pids+=($!)
  at_least 5 "${test[@]}" stress:: >"$logs/stress" 2>&1 & pids+=($!)
  at_least 3 limited 400 cargo test "${packages[@]}" --test simulated lost:: >"$logs/lost-simulated" 2>&1 & pids+=($!)
  at_least 20 limited 400 cargo test "${packages[@]}" --test command launched:: >"$logs/launch" 2>&1 & pids+=($!)
  for pid in "${pids[@]}"; do wait "$pid" || status=1; done
  cat "$logs"/{lost,lost-shm,lost-simulated,stress,launch}
  return $status
}
# Tests that say how ranks call and fail, with shared memory as the wire. The others take very long
# over it where 64 ranks with six ports share two cores: HOPBINE_TEST_BACKEND=shm runs them by hand.
tests_shm() {
  HOPBINE_TEST_BACKEND=shm at_least 15 limited 200 cargo test "${packages[@]}" --test ranks --test processes -- requests:: mismatch::
}

# Random calls and faults on the simulated wire, by the command that the tests have built.
chaos() {
  local hopbine=${CARGO_TARGET_DIR:-target}/debug/hopbine
  limited 600 "$hopbine" chaos --seeds 1..300 &&
    limited 300 "$hopbine" chaos --seeds 1..50 --backend sim-utofu
}

# What only the later stages need is fetched while the first ones compile.
more_packages() {
  ! $install || ! is_root_on_debian || { basic_packages && limited 600 ci/mpi.sh --install; }
}
more_packages >"$logs/more-packages" 2>&1 &
later=$!
building() {
  "${integration_tests[@]}" --no-run --quiet && "${unit_tests[@]}" --no-run --quiet &&
    { wait "$later" || { cat "$logs/more-packages" >&2; return 1; } }
}

stage "formatting" cargo fmt --all --check
stage "lints" clippy
stage "building" building
stage "tests" tests
stage "tests that wait" tests_that_wait
stage "tests in shared memory" tests_shm
stage "under MPI" limited 1500 ci/mpi.sh
# These compute, compile, wait, or emulate on one core: no many ranks.
beside "documentation" documentation
beside "chaos" chaos
beside "installation" limited 900 env PROFILE=dev ci/install.sh
beside "job scripts" limited 120 ci/jobscripts.sh
joined

table
