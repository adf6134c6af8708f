#!/usr/bin/env bash
# Installs what the tests need and runs all of them: formatting, lints, documentation, tests.
#
#   ./test.sh            everything
#   ./test.sh --offline  the same without installing anything first
#
# Needed beyond Rust: a C compiler, for the uTofu conformance suite and the C examples.
set -euo pipefail
cd "$(dirname "$0")"

say() { printf '\n== %s\n' "$*"; }

if [ "${1:-}" != "--offline" ]; then
  say "packages"
  if command -v cc >/dev/null && command -v make >/dev/null; then
    echo "a C compiler is here"
  elif command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends gcc libc6-dev make
  else
    echo "please install a C compiler (cc) and make" >&2
    exit 1
  fi
fi

say "formatting"
cargo fmt --all --check

say "lints"
cargo clippy --workspace --all-targets --quiet -- -D warnings

say "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

say "tests"
cargo test --workspace --no-fail-fast

# Memory errors and leaks, in an instrumented build of its own.
say "address sanitizer"
sanitized=0
./sanitize.sh address || sanitized=$?
# 3: this toolchain has no sanitizer. A developer's may lack it, CI's may not.
if [ $sanitized != 0 ] && { [ $sanitized != 3 ] || [ "${CI:-}" = true ]; }; then
  exit $sanitized
fi

# Every interleaving of the device's lock-free queue, in a build of its own.
say "model checking"
CARGO_TARGET_DIR=target/loom RUSTFLAGS="--cfg loom" \
  cargo test --quiet --package utofu-emu --release --lib loom_

if [ $sanitized != 0 ]; then
  say "NOT CHECKED: the address sanitizer does not work here; sanitize.sh has said why"
fi
