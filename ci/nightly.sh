#!/usr/bin/env bash
# What takes too long for test.sh, or needs much more than that: one stage after the other, then a table
# of how long each took. Hours.
#
#   ci/nightly.sh [--offline] [STAGE]...
#
#   --offline   installs nothing first (otherwise: on Debian, as root)
#   STAGE       only these of: lints oldest api bindings long chaos simulated loom simgrid planted way aarch64 cross address thread hosts slurm mpich installed third-party mpi-suite mpis rsmpi vendored packages crates book newcomer fuzz coverage
#
# SEEDS=FROM..TO names chaos's seeds (default: a hundred, which differ from day to day).
#
# Exit code: 0 well, 1 a stage failed. What cannot be done here is left out, and counted and named at the
# end; with CI=true each is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0

install=false
if [ "${1:-}" = --offline ]; then
  shift
elif command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  install=true
fi
stages=(lints oldest api bindings long chaos simulated loom simgrid planted way aarch64 cross address thread hosts slurm mpich installed third-party mpi-suite mpis rsmpi vendored packages crates book newcomer fuzz coverage)
for name; do
  [[ " ${stages[*]} " == *" $name "* ]] || { sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2; }
done
[ $# = 0 ] || stages=("$@")

logs=target/nightly-logs
# shellcheck source=/dev/null
. ci/stages.sh

# PACKAGE...: of Debian's.
need() { ! $install || apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }

# As users build it: without the feature `internals`, which tests bring. Links of private documentation count, too.
lints() {
  cargo clippy --quiet -p hopbine -p hopbine-cli -p hopbine-capi -- -D warnings &&
    RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps --document-private-items -p hopbine -p hopbine-torus
}

# The oldest compiler that the packages name, with default features and without. (In test.sh, clippy knows what is
# newer in the standard library.)
oldest() {
  local version
  version=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
  ! $install || rustup toolchain install "$version" --profile minimal --no-self-update || return 1
  cargo "+$version" --version >/dev/null || return 3
  local check=(limited 30m env CARGO_TARGET_DIR=target/oldest cargo "+$version" check --quiet)
  # The benchmarks are for one who has all of the source, with any compiler.
  "${check[@]}" --workspace --exclude hopbine-benches && "${check[@]}" -p hopbine -p hopbine-capi --no-default-features
}

# The public items.
api() {
  if $install; then
    rustup toolchain install nightly --profile minimal || return 1
    cargo install --quiet --locked cargo-public-api cargo-semver-checks || return 1
  fi
  limited 30m ci/api.sh
}

# The bindings that are checked in are those of the header.
bindings() {
  need libclang-dev
  if [[ $(ldconfig -p) != *libclang* ]] && ! ls /usr/lib/llvm-*/lib/libclang*.so* >/dev/null 2>&1; then
    echo "libclang is needed (on Debian: libclang-dev)" >&2
    return 3
  fi
  limited 30m sys/abi/regenerate.sh --check
}

# Tests that are ignored: proofs, predictions and searches on large shapes, and tests of ranks. What another test runs,
# in a process of its own, says so. And reductions as vector code, which the compiler makes on the level of a release.
long() {
  local elsewhere=
  elsewhere=$(grep -r "^ *#\[ignore" --include="*.rs" --exclude-dir={target,vendor} . | grep -v 'ignore = "run by ' | cut -d: -f1 |
    grep -Ev "^./(tests/(ranks|processes)/|cli/tests/command/|torus/tests/|torus/src/geometry/cycles.rs$)") || true
  [ -z "$elsewhere" ] || { echo "nobody runs the ignored tests of $elsewhere" >&2; return 1; }
  at_least 7 limited 1h cargo test -p hopbine-torus --test torus -- --ignored &&
    at_least 1 limited 1h cargo test -p hopbine-torus --lib -- --ignored cycles &&
    at_least 30 limited 1h cargo test --release -p hopbine --lib -- reduce:: &&
    cargo build -p hopbine --examples && at_least 3 limited 1h cargo test -p hopbine-cli --test command -- --ignored &&
    at_least 6 limited 4h cargo test -p hopbine --test ranks --test processes --no-fail-fast -- --ignored \
      --skip regcache::events:: --skip chaos::
}

# Ranks as processes that are killed, stopped, late, or in another call.
chaos() {
  local from=$((100 * ($(date +%s) / 86400)))
  export HOPBINE_TEST_SEEDS=${SEEDS:-$from..$((from + 100))}
  echo "seeds $HOPBINE_TEST_SEEDS"
  at_least 1 limited 1h cargo test -p hopbine --test processes -- --ignored chaos::
}

simulated() {
  limited 1h cargo run --release --quiet -- chaos --seeds 1..100000 &&
    limited 1h cargo run --release --quiet -- chaos --seeds 1..20000 --backend sim-utofu
}

# Every interleaving of the device's lock-free queue, in a build of its own.
loom() {
  # The checker itself is what computes.
  CARGO_TARGET_DIR=target/loom RUSTFLAGS="--cfg loom" at_least 1 limited 30m cargo test \
    --package utofu-emu --lib loom_ --config profile.dev.package.loom.opt-level=2 \
    --config profile.dev.package.generator.opt-level=2
}

# The network model's times against those of another simulator.
simgrid() {
  need libsimgrid-dev python3-simgrid
  limited 1h ci/simgrid.sh
}

planted() { limited 1h ci/planted.sh; }

# The files that a call passes on its way to the wire.
way() {
  need gdb openmpi-bin libopenmpi-dev
  limited 30m ci/way.sh
}

aarch64() {
  ! $install || ci/arm.sh --install || return 1
  limited 1h ci/arm.sh
}

cross() {
  ! $install || ci/cross.sh --install || return 1
  limited 1h ci/cross.sh
}

address() { limited 1h ci/sanitize.sh address; }

thread() {
  need llvm
  ! $install || rustup component add rust-src || return 1
  limited 1h ci/sanitize.sh thread
}

# What hosts and slurm run.
built_with_mpi() {
  ! $install || ci/mpi.sh --install || return 1
  limited 1h ci/mpi.sh --build --long
}

hosts() {
  need iproute2 util-linux
  built_with_mpi && limited 1h ci/hosts.sh
}

slurm() {
  need slurm-wlm munge iproute2
  built_with_mpi && limited 1h ci/slurm.sh
}

# COMMAND...: what runs with each MPI, and hopbine installed for it, whose place is the last argument.
with_each_mpi() {
  local mpi status=0 one
  ! $install || ci/mpi.sh --install || return 1
  for mpi in openmpi mpich; do
    command -v "mpicc.$mpi" >/dev/null || { echo "there is no mpicc.$mpi" >&2; status=3; continue; }
    echo "== $mpi"
    MPICC=mpicc.$mpi MPIFC=mpif90.$mpi PREFIX=$PWD/target/nightly/$mpi ./install.sh >"$logs/install-$mpi" 2>&1 ||
      { cat "$logs/install-$mpi" >&2; return 1; }
    one=0
    limited 3h "$@" "$mpi" "$PWD/target/nightly/$mpi" || one=$?
    # A failure outweighs what cannot be done.
    [ $one = 0 ] || [ $status = 1 ] || status=$one
  done
  return $status
}

mpich() {
  ! $install || ci/mpi.sh --install || return 1
  limited 3h ci/mpi.sh --long mpich
}

# What is installed, with programs that link an MPI; its man pages.
installed() {
  need mandoc pkg-config gfortran g++ cmake
  ! $install || ci/mpi.sh --install || return 1
  local name man
  for name in openmpi mpich; do limited 1h ci/install.sh "$name" || return; done
  man=$(mktemp -d)
  cargo run --quiet -- generate man -o "$man" && mandoc -T lint -W error "$man"/*.1 || return
  rm -r "$man"
}

third_party() {
  local how=(ci/third-party.sh)
  ! $install || how+=(--install)
  with_each_mpi "${how[@]}"
}

mpi_suite() {
  need dpkg-dev gfortran
  with_each_mpi ci/mpi-suite.sh
}

# MPIs of wheels.
mpis() {
  need gcc libc6-dev python3-venv dpkg-dev
  limited 6h ci/mpis.sh
}

# Programs that call MPI by the crate `mpi`; it is built for one MPI, and does not notice another.
rsmpi() {
  ! $install || ci/mpi.sh --install || return 1
  local name how=(-p hopbine-mpi --features rsmpi)
  for name in openmpi mpich; do
    (
      # shellcheck source=/dev/null
      . ci/mpi/launch.sh
      use_mpi "$name" || exit 3
      export CARGO_TARGET_DIR=$PWD/target/nightly/rsmpi-$name
      limited 30m cargo clippy --quiet "${how[@]}" --all-targets -- -D warnings &&
        limited 30m cargo build --quiet "${how[@]}" --example rsmpi &&
        launch_within 60 4 "$CARGO_TARGET_DIR/debug/examples/rsmpi"
    ) || return
  done
}

# The source archive, built and run without a network.
vendored() {
  need util-linux
  limited 1h ci/vendored.sh check
}

# Debian's packages and the wheel, installed and removed.
packages() {
  need debhelper lintian dpkg-dev fakeroot man-db pkg-config gfortran python3-venv
  ! $install || ci/mpi.sh --install || return 1
  limited 2h ci/packages.sh
}

crates() { limited 2h ci/crates.sh; }

# The pages as a book.
book() {
  need python3-minimal
  ! $install || command -v mdbook >/dev/null ||
    cargo install --quiet --locked mdbook --no-default-features --features search || return 1
  limited 1h ci/book.sh
}

# What somebody new does on a bare Debian 12.
newcomer() {
  need debootstrap util-linux
  limited 2h ci/newcomer.sh
}

fuzz() { limited 2h ci/fuzz.sh; }
coverage() {
  if $install; then
    rustup component add llvm-tools || return 1
    command -v cargo-llvm-cov >/dev/null || cargo install --quiet cargo-llvm-cov || return 1
  fi
  limited 1h ci/coverage.sh
}

for name in "${stages[@]}"; do stage "$name" "${name//-/_}"; done
table
