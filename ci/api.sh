#!/usr/bin/env bash
# What hopbine offers to other programs in Rust: every public item stands in docs/api/hopbine.txt, so that
# whoever changes one sees it; and against the last release nothing is missing, or the version says so.
#
#   ci/api.sh [--bless]
#
#   --bless   writes the list anew
#
# Needs cargo-public-api, once there is a release cargo-semver-checks (cargo install), and a nightly toolchain: the
# list is made of rustdoc's JSON. Without the feature `internals`, which is for tests.
#
# Exit code: 0 well, 1 the list differs, or a change needs another version, 3 a tool is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
list=docs/api/hopbine.txt

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

# Without what follows from every type's form: auto traits, blanket and derived implementations.
items=$(cargo +nightly public-api -p hopbine --features sim -sss)
if [ "${1:-}" = --bless ]; then
  printf '%s\n' "$items" >"$list"
  exit
fi
diff -u "$list" <(printf '%s\n' "$items") || {
  echo "the public items are others than $list says: ci/api.sh --bless, and see what changed" >&2
  exit 1
}
echo "$(wc -l <"$list") public items, as $list says"

if [ -z "$release" ]; then
  echo "there is no release yet that a change could break"
  exit
fi
cargo semver-checks -p hopbine --baseline-rev "$release"
