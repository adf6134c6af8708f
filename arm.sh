#!/usr/bin/env bash
# Builds for aarch64 and runs tests as on an A64FX (512-bit SVE), under qemu.
#
#   ./arm.sh            about three minutes; test.sh runs this too
#   ./arm.sh --install  installs what that needs first (Debian, as root)
#
# Exit code: 0 well, 1 a failed test, 3 this machine cannot do it.
#
# Left out: ranks as processes and C programs on the emulated device, as qemu's process_vm_readv
# and process_vm_writev answer ENOSYS; mutexes that outlive their owner, which it does not know
# either; a test that starts itself again; userfaultfd, without which the registration cache keeps nothing. The tests of the long
# matrix are x86's. Without default features, so that these are checked, too.
set -euo pipefail
cd "$(dirname "$0")"

if [ "${1:-}" = --install ]; then
  dpkg --add-architecture arm64
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends rustc-web libstd-rust-web-dev:arm64 \
    gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static >/dev/null
fi

# Rust's own toolchain has no aarch64 standard library here; Debian's brings one.
export RUSTC=${ARM_RUSTC:-/usr/bin/rustc} CARGO_TARGET_DIR=target/arm
target=aarch64-unknown-linux-gnu
for command in "$RUSTC" aarch64-linux-gnu-gcc qemu-aarch64-static; do
  if ! command -v "$command" >/dev/null; then
    echo "arm.sh: NOTHING WAS CHECKED: there is no $command; on Debian: ./arm.sh --install" >&2
    exit 3
  fi
done
if ! [ -d "$("$RUSTC" --print sysroot)/lib/rustlib/$target" ]; then
  echo "arm.sh: NOTHING WAS CHECKED: $RUSTC has no standard library for $target" >&2
  exit 3
fi

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="timeout 300 qemu-aarch64-static -cpu a64fx"
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0

run() { cargo test --quiet --target $target --no-default-features --no-fail-fast "$@"; }

failed=0
run -p hopbine -p hopbine-torus -p utofu-emu -p utofu --lib --test allocation --test atomics \
  --test brk --test errors --test handles --test jtofu --test model --test threads \
  -- --skip a_lock_outlives_its_owner || failed=1
run -p hopbine --test ranks -- endpoint:: ending:: engine:: regcache:: requests:: \
  emulated::every_algorithm_on_2x3 emulated::types_and_operators \
  --skip forks_and_evictions || failed=1
exit $failed
