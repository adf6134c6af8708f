#!/usr/bin/env bash
# Builds Debian packages of this tree: hopbine, libhopbine0.1, libhopbine-dev, hopbine-mpi.
#
#   packages/debian/build.sh DIRECTORY
#
# Needs what `control` names under Build-Depends, dpkg-dev, and cargo.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# = 1 ] || { sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2; }
out=$(realpath -m "$1")
command -v dh >/dev/null || { echo "packages/debian/build.sh: there is no debhelper" >&2; exit 3; }
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$here/../.."
git ls-files -z | tar c --null -T - | tar x -C "$work" --one-top-level=hopbine
cp -r "$here" "$work/hopbine/debian"
rm "$work/hopbine/debian/build.sh"
cd "$work/hopbine"
# Cargo's directory is where it was: debhelper sets another HOME.
export CARGO_HOME=${CARGO_HOME:-$HOME/.cargo} RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}
# -d: Rust comes from elsewhere than Debian.
dpkg-buildpackage -b -us -uc -d
mv ../*.deb "$out"
