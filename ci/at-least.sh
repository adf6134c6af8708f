# Tests that cannot go missing. Sourced.
# shellcheck shell=bash

# at_least N COMMAND...: cargo test in some way. Fewer tests than that are a failure, since a name that has
# changed would otherwise go unnoticed.
at_least() {
  local n=$1 said passed status=0
  shift
  said=$(mktemp)
  "$@" 2>&1 | tee "$said" || status=1
  passed=$(awk '/^test result: / { n += $4 } END { print n + 0 }' "$said")
  rm "$said"
  [ "$passed" -ge "$n" ] || { echo "$passed tests passed, not $n at least" >&2; return 1; }
  return $status
}
