#!/usr/bin/env bash
# Makes a source archive that builds without a network, for compute nodes and packagers:
# hopbine-VERSION-vendored.tar.gz, with all crates that Cargo.lock names.
#
#   ci/vendored.sh                   writes target/hopbine-VERSION-vendored.tar.gz
#   ci/vendored.sh check             also unpacks it, installs from it where no network is, and runs a program
#
# What is packed is the last commit. Exit code: 0 well, 1 it does not build, 3 this machine has no network
# namespaces (unshare, as root).
set -euo pipefail
cd "$(dirname "$0")/.."
case $* in
'' | check) ;;
*) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

# shellcheck source=/dev/null
. capi/mpi/build.sh
name=hopbine-${hopbine_version:?}
archive=$PWD/target/$name-vendored.tar.gz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p target
git archive --prefix="$name/" HEAD | tar -x -C "$work"
mkdir "$work/$name/.cargo"
(cd "$work/$name" && cargo vendor --quiet --locked vendor >/dev/null)
cat >"$work/$name/.cargo/config.toml" <<'END'
[source.crates-io]
replace-with = "vendored-sources"
[source.vendored-sources]
directory = "vendor"
END
# The same archive from the same commit: order, owners and times are the commit's.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -C "$work" -c "$name" |
  gzip -n9 >"$archive"
echo "$archive: $(du -h "$archive" | cut -f1), $(find "$work/$name/vendor" -mindepth 1 -maxdepth 1 | wc -l) crates"
[ "${1:-}" = check ] || exit 0

unshare -n true 2>/dev/null || { echo "ci/vendored.sh: no network namespaces here" >&2; exit 3; }
mkdir "$work/there"
tar -xf "$archive" -C "$work/there"
# An empty registry: nothing that this machine has fetched before helps.
cd "$work/there/$name"
CARGO_HOME=$work/cargo CARGO_TARGET_DIR=$work/target PREFIX=$work/prefix PROFILE=dev unshare -n ./install.sh
"$work/prefix/bin/hopbine" run allreduce --torus 2x2 --bytes 1KiB
