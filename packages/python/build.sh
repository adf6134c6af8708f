#!/usr/bin/env bash
# Builds a wheel with the command and the library to preload, for each MPI whose compiler wrapper is named.
#
#   packages/python/build.sh -o DIRECTORY MPICC...
#
# One compiler wrapper of each kind is enough: Open MPI, MPICH (or a derivative), the standard ABI (mpicc_abi). Needs
# maturin. The wheel fits Linux with this machine's C library or a newer one.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [ "${1:-}" != -o ] || [ $# -lt 3 ]; then
  sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
out=$(realpath -m "$2")
shift 2
command -v maturin >/dev/null || { echo "packages/python/build.sh: there is no maturin (pip install maturin)" >&2; exit 3; }

stage=$(mktemp -d)
lib=$here/python/hopbine/lib
trap 'rm -rf "$stage" "$lib"' EXIT
cd "$here/../.."
# shellcheck source=/dev/null
. capi/mpi/build.sh
env -u MPICC PREFIX="$stage" FC='' ./install.sh
for MPICC; do
  export MPICC
  ONLY=doors MPIFC='' PREFIX="$stage" ./install.sh
done
# A wheel has no links: each library once, under the name that the loader looks for.
rm -rf "$lib"
mkdir -p "$lib"
cp "$stage/lib/libhopbine.so.${hopbine_soversion:?}" "$stage/lib/libhopbine_preload.so" "$lib/"
for kind in "$stage"/lib/hopbine/*; do
  mkdir -p "$lib/hopbine/${kind##*/}"
  cp "$kind/libhopbine_mpi.so" "$lib/hopbine/${kind##*/}/"
done
cd "$here"
maturin build --release --compatibility linux -o "$out"
