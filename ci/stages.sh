# Scripts that run one stage after the other and end with a table: test.sh, ci/nightly.sh. Sourced,
# with $logs the name of a directory that is made anew.
# shellcheck shell=bash
rm -rf "${logs:?}"
mkdir -p "$logs"
logs=$(realpath "$logs")
# What cannot be done here adds a line: `stage`, `left_out`, and tests (hopbine_testing::skip).
export HOPBINE_TEST_SKIPPED=$logs/left-out

say() { printf '\n== %s\n' "$*"; }
limited() { timeout --kill-after=10 "$@"; }

# at_least N COMMAND...: cargo test in some way. Fewer tests than that are a failure, since a name that has
# changed would otherwise go unnoticed.
at_least() {
  local n=$1 said passed
  shift
  said=$(mktemp -p "$logs")
  "$@" 2>&1 | tee "$said" || return 1
  passed=$(awk '/^test result: / { n += $4 } END { print n + 0 }' "$said")
  [ "$passed" -ge "$n" ] || { echo "$passed tests passed, not $n at least" >&2; return 1; }
}

# stage NAME COMMAND...: runs it, says how long it took. Exit status 3 means that it cannot be done
# here: an error in CI only. Within COMMAND a failure does not end the function (`set -e` is off).
# What hangs is ended by `limited`, and fails.
stage() {
  local name=$1 started=$SECONDS status=0 outcome=well
  shift
  say "$name"
  "$@" || status=$?
  if [ $status = 3 ] && [ "${CI:-}" != true ]; then
    outcome="left out"
    echo "$name, as said above" >>"$HOPBINE_TEST_SKIPPED"
  elif [ $status != 0 ]; then
    outcome=FAILED
  fi
  echo "-- $name: $((SECONDS - started)) s"
  printf '%6d s  %-8s  %s\n' $((SECONDS - started)) "$outcome" "$name" >>"$logs/table"
}

# The table of all stages, what was left out, and how many checks that were. Fails if a stage has.
table() {
  say "done after $SECONDS s"
  cat "$logs/table"
  if [ -e "$HOPBINE_TEST_SKIPPED" ]; then
    sed 's/^/NOT CHECKED: /' "$HOPBINE_TEST_SKIPPED"
    echo "$(wc -l <"$HOPBINE_TEST_SKIPPED") left out"
  fi
  ! grep ' FAILED ' "$logs/table" >&2
}
