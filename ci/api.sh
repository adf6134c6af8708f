#!/usr/bin/env bash
# What hopbine and hopbine-torus offer to other programs in Rust: every public item stands in docs/api/CRATE.txt, so
# that whoever changes one sees it; and against the last release nothing is missing, or the version says so.
#
#   ci/api.sh [--bless]
#
#   --bless   writes the lists anew
#
# Needs cargo-public-api, once there is a release cargo-semver-checks (cargo install), and a nightly toolchain: the
# lists are made of rustdoc's JSON. Without the feature `internals`, which is for tests.
#
# Exit code: 0 well, 1 a list differs, or a change needs another version, 3 a tool is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

release=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null) || release=
tools=(public-api)
[ -z "$release" ] || tools+=(semver-checks)
missing=()
for tool in "${tools[@]}"; do
  command -v "cargo-$tool" >/dev/null || missing+=("cargo-$tool")
done
cargo +nightly --version >/dev/null 2>&1 || missing+=("a nightly toolchain")
if [ ${#missing[@]} != 0 ]; then
  printf 'ci/api.sh: there is no %s\n' "${missing[@]}" >&2
  exit 3
fi

# CRATE FLAG...: compares its list, or writes it. Without what follows from every type's form: auto traits, blanket and
# derived implementations.
compare() {
  local list=docs/api/$1.txt items
  items=$(cargo +nightly public-api -p "$@" -sss)
  if [ "$bless" = --bless ]; then
    printf '%s\n' "$items" >"$list"
    return
  fi
  diff -u "$list" <(printf '%s\n' "$items") || {
    echo "the public items are others than $list says: ci/api.sh --bless, and see what changed" >&2
    exit 1
  }
  echo "$(wc -l <"$list") public items, as $list says"
}

bless=${1:-}
compare hopbine --features sim
compare hopbine-torus
[ "$bless" != --bless ] || exit 0

if [ -z "$release" ]; then
  echo "there is no release yet that a change could break"
  exit
fi
cargo semver-checks -p hopbine -p hopbine-torus --baseline-rev "$release"
