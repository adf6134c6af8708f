#!/usr/bin/env bash
# The packages of the Rust crates, as `cargo publish` would send them: each is built outside this tree, on the others'
# packages; the command that comes out runs; the documentation is built as docs.rs does.
#
#   ci/crates.sh
#
# Exit code: 0 well, 1 something failed.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CARGO_TARGET_DIR=$work

# Those that are not published, which cargo would leave out only when it publishes.
private=()
for manifest in */Cargo.toml sys/*/Cargo.toml sys/emu/capi/Cargo.toml; do
  ! grep -q '^publish = false' "$manifest" || private+=(--exclude "$(sed -n '/^name = /{ s/.*"\(.*\)"/\1/p; q }' "$manifest")")
done
# (Its warnings name tests and examples, which stay here, and the missing address of a repository.)
cargo package --quiet --allow-dirty --workspace "${private[@]}" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
ls "$work"/package/*.crate
"$work/debug/hopbine" run allreduce --torus 2x2x2 --bytes 4KiB --per-node 2

RUSTDOCFLAGS="--cfg docsrs -D warnings" cargo doc --quiet --no-deps -p hopbine -p hopbine-mpi
