# Parts of a script at once, each on a core of its own: ranks that are more than cores and wait by
# yielding slow each other down where they share several cores. Sourced.
# shellcheck shell=bash

# The cores that this may run on.
mapfile -t cores < <(
  list=$(taskset -cp $$ | sed 's/.*: //')
  for part in ${list//,/ }; do seq "${part%-*}" "${part#*-}"; done
)

# on_core NUMBER FILE COMMAND...: in the background, on the core of this number; what it says goes to the
# file.
on_core() {
  local number=$1 file=$2
  shift 2
  (
    taskset -cp "${cores[number % ${#cores[@]}]}" "$BASHPID" >/dev/null
    "$@"
  ) >"$file" 2>&1 &
}
