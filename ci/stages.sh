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

# shellcheck source=/dev/null
. ci/at-least.sh

# Sets $processor to the seconds of the processors' time that this shell's children have used. (A subshell,
# as of $(...), has no children yet.)
used() {
  local file=$logs/times-$BASHPID
  times >"$file"
  processor=$(sed -n '2s/[ms]/ /gp' "$file" | awk '{ printf "%d", 60 * ($1 + $3) + $2 + $4 }')
  rm "$file"
}

# stage NAME COMMAND...: runs it, says how long it took, and how much of the processors' time: where others
# compute beside it, that says more. Exit status 3 means that it cannot be done
# here: an error in CI only. Within COMMAND a failure does not end the function (`set -e` is off).
# What hangs is ended by `limited`, and fails.
stage() {
  local name=$1 started=$SECONDS status=0 outcome=well processor before
  shift
  say "$name"
  used
  before=$processor
  "$@" || status=$?
  if [ $status = 3 ] && [ "${CI:-}" != true ]; then
    outcome="left out"
    echo "$name, as said above" >>"$HOPBINE_TEST_SKIPPED"
  elif [ $status != 0 ]; then
    outcome=FAILED
  fi
  used
  echo "-- $name: $((SECONDS - started)) s"
  printf '%6d s  %6d s of processors  %-8s  %s\n' $((SECONDS - started)) $((processor - before)) "$outcome" "$name" >>"$logs/table"
}

# beside NAME COMMAND...: the same beside what follows, up to `joined`, which shows what each has said.
said_beside=() pids_beside=()
beside() {
  local said=$logs/beside-${#said_beside[@]}
  stage "$@" >"$said" 2>&1 &
  pids_beside+=($!) said_beside+=("$said")
}
joined() {
  local pid status=0
  for pid in "${pids_beside[@]}"; do wait "$pid" || status=1; done
  cat "${said_beside[@]}"
  said_beside=() pids_beside=()
  return $status
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
