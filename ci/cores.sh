# Parts of a script at once, each on a core of its own: ranks that are more than cores and wait by
# yielding slow each other down where they share several cores. Sourced; bash 5.1 or later.
# shellcheck shell=bash

# The cores that this may run on.
mapfile -t cores < <(
  list=$(taskset -cp $$ | sed 's/.*: //')
  for part in ${list//,/ }; do seq "${part%-*}" "${part#*-}"; done
)

# each_on_a_core PREFIX COMMAND PART...: `COMMAND PART` for each of the parts, in this order, each on the
# core that is free next; then shows what each has said, which goes to the file PREFIX-PART meanwhile.
# Fails if one has. COMMAND is words.
each_on_a_core() {
  local prefix=$1 command=$2 part pid status=0 free=("${cores[@]}")
  local -A core_of
  shift 2
  for part; do
    if [ ${#free[@]} = 0 ]; then
      wait -n -p pid "${!core_of[@]}" || status=1
      free=("${core_of[$pid]}")
      unset "core_of[$pid]"
    fi
    (
      taskset -cp "${free[0]}" "$BASHPID" >/dev/null
      # shellcheck disable=SC2086 # words
      $command "$part"
    ) >"$prefix-$part" 2>&1 &
    core_of[$!]=${free[0]}
    free=("${free[@]:1}")
  done
  for pid in "${!core_of[@]}"; do wait "$pid" || status=1; done
  for part; do cat "$prefix-$part"; done
  return $status
}
