#!/usr/bin/env bash
# Builds for aarch64 and runs tests as on an A64FX (512-bit SVE), under qemu.
#
#   ci/arm.sh            the library, the emulated device, ranks that are threads, what is only computed (torus), the
#                        simulated wire's traces, and reductions as vector code, many minutes; ci/nightly.sh runs this
#   ci/arm.sh --install  installs what that needs (Debian, as root; a toolchain of rustup's)
#
# With the oldest Rust that the packages name, or, where that has no standard library for aarch64,
# with Debian's (rustc-web, libstd-rust-web-dev:arm64). ARM_RUSTC names another.
#
# Exit code: 0 well, 1 a failed test, 3 this machine cannot do it.
#
# Left out: ranks as processes and C programs on the emulated device, as qemu's process_vm_readv
# and process_vm_writev answer ENOSYS; mutexes that outlive their owner, which it does not know
# either; tests that start themselves again; whatever needs userfaultfd, which it does not know: memory events come
# from the C library's changed functions there. The tests of the long matrix are x86's.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null
. ci/at-least.sh

target=aarch64-unknown-linux-gnu
oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)

if [ "${1:-}" = --install ]; then
  dpkg --add-architecture arm64
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross \
    libc6:arm64 libgcc-s1:arm64 qemu-user-static >/dev/null
  rustup toolchain install "$oldest" --profile minimal --no-self-update --target $target ||
    apt-get install -y -qq --no-install-recommends rustc-web libstd-rust-web-dev:arm64 >/dev/null
  exit
fi

# COMMAND...: whether this compiler can build for aarch64.
has_library() {
  local sysroot
  sysroot=$("$@" --print sysroot 2>/dev/null) && [ -d "$sysroot/lib/rustlib/$target/lib" ]
}
if [ -z "${ARM_RUSTC:-}" ] && has_library rustc "+$oldest"; then
  compiler=rustc toolchain=$oldest
else
  compiler=${ARM_RUSTC:-/usr/bin/rustc} toolchain=
fi
for command in "$compiler" aarch64-linux-gnu-gcc qemu-aarch64-static; do
  if ! command -v "$command" >/dev/null; then
    echo "ci/arm.sh: NOTHING WAS CHECKED: there is no $command; on Debian: ci/arm.sh --install" >&2
    exit 3
  fi
done
if ! has_library "$compiler" ${toolchain:+"+$toolchain"}; then
  echo "ci/arm.sh: NOTHING WAS CHECKED: $compiler has no standard library for $target" >&2
  exit 3
fi

# What a seed does there is what it does here: this machine leaves its traces.
mkdir -p target/aarch64
export HOPBINE_TEST_TRACES=$PWD/target/aarch64/traces
rm -f "$HOPBINE_TEST_TRACES"
at_least 1 cargo test --quiet -p hopbine --test simulated -- --ignored traces_are_the_same

export RUSTC=$compiler CARGO_TARGET_DIR=target/aarch64
[ -z "$toolchain" ] || export RUSTUP_TOOLCHAIN=$toolchain
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="timeout 300 qemu-aarch64-static -cpu a64fx"
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0
export CARGO_PROFILE_DEV_CODEGEN_UNITS=1 CARGO_PROFILE_TEST_CODEGEN_UNITS=1
# The tests of the machine that this runs on have them.
export CARGO_PROFILE_DEV_DEBUG_ASSERTIONS=false CARGO_PROFILE_TEST_DEBUG_ASSERTIONS=false
export CARGO_PROFILE_DEV_OVERFLOW_CHECKS=false CARGO_PROFILE_TEST_OVERFLOW_CHECKS=false

run() { cargo test --quiet --target $target --no-default-features --no-fail-fast "$@"; }
packages=(-p hopbine -p hopbine-meet -p hopbine-torus -p utofu-emu -p utofu
  --features "hopbine/emu hopbine/sim utofu/emu")
few=(--lib --test allocation --test atomics --test errors --test handles --test jtofu --test model --test threads)

# What is built alone leaves a core idle.
run --no-run "${packages[@]}" "${few[@]}" --test ranks --test simulated || exit 1
failed=0
at_least 300 run "${packages[@]}" "${few[@]}" -- --skip a_lock_outlives_its_owner \
  --skip the_allocator_can_be_told --skip what_was_read_from_a_stranger --skip the_dead_hold_nothing \
  --skip memory::monitor:: --skip memory::uffd::tests::unread_reports || failed=1
at_least 50 run "${packages[@]}" --test ranks -- endpoint:: ending:: engine:: regcache:: requests:: \
  emulated::every_algorithm_on_2x3 emulated::types_and_operators \
  --skip regcache::events:: --skip every_algorithm_on_2x3x2 || failed=1
at_least 1 run "${packages[@]}" --test simulated -- --ignored traces_are_the_same || failed=1

# DIRECTORY FLAGS: the reductions again, as vector code: on the level of the other tests the compiler makes none.
# Names with their types (v0) tell the loops apart: those of floats compute in SVE's registers and use
# none of NEON's.
vectors() {
  local built said
  export CARGO_TARGET_DIR=target/aarch64/$1 RUSTFLAGS="-C symbol-mangling-version=v0 $2"
  export CARGO_PROFILE_TEST_OPT_LEVEL=3 CARGO_PROFILE_DEV_OPT_LEVEL=3
  at_least 30 run -p hopbine --features emu --lib -- reduce:: || return 1
  built=$(find "$CARGO_TARGET_DIR/$target/debug/deps" -name "hopbine-*" ! -name "*.d" -printf "%T@ %p\n" | sort -n | tail -1)
  said=$(aarch64-linux-gnu-objdump -dC --no-show-raw-insn "${built#* }" | awk '
      /^[0-9a-f]+ <.*>:$/ { name = /::sve::(two|three)::<f(32|64), .*::(Sum|Product), / ? $0 : ""; if (name) n++ }
      name && /\tf(add|mul)\tz/ { sve[name] = 1 }
      name && /[^a-z0-9]v[0-9]+\.[0-9]/ { print "NEON in " name }
      END { for (name in sve) with++; print n + 0, with + 0 }')
  [ "$said" = "8 8" ] || { echo "loops, and those in SVE ($1): $said, not 8 8" >&2; return 1; }
}
(vectors generic "") || failed=1
(vectors a64fx "-C target-cpu=a64fx") || failed=1
exit $failed
