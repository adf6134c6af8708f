#!/usr/bin/env bash
# Everything under Open MPI and MPICH: builds with each of them, in a directory of its own, and runs
# what the parts in ci/mpi/*.part.sh say.
#
#   ci/mpi.sh [--install] [--build] [--long] [--part NAME]... [openmpi] [mpich]
#
#   --install   only install what is missing (Debian, as root)
#   --build     build only
#   --long      with what takes long under MPICH, whose ranks do not yield; ci/nightly.sh runs this
#   --part      only this part
#
# Exit status 3: something is missing here, which is named.
#
# A part is a file with two functions, named after it: build_PART and run_PART. What runs for long has several of
# these, run_PART and run_PART_NAME: under Open MPI each of them takes a core. They find
#   $mpi      openmpi or mpich
#   $MPICC    its compiler wrapper, for cargo as well
#   $target   where cargo puts what it has built with this MPI (also CARGO_TARGET_DIR); programs go to
#             $programs
#   ranks N [NAME=VALUE]... PROGRAM [ARGUMENT]...
#             runs a program on N ranks, at most a minute ($limit seconds); its output is shown if it fails, or if it
#             is the last thing of the function. Ranks are more than cores here: they yield.
#   cargo_programs [ARGUMENT]...
#             cargo build or test with these arguments; says nothing unless it fails.
#   ${with_mpi[@]}
#             arguments of cargo for what is built with this MPI
#   beside COMMAND...
#             runs it beside what follows; `joined` waits for all of these, and fails if one has.
#   cargo_hopbine
#             all of hopbine that is built with this MPI: libraries, and if runs_all the command and
#             sys/mpi/tests/mpi as $programs/mpi. One call of cargo, so that all of it has the same features and nothing is
#             compiled twice.
set -euo pipefail
cd "$(dirname "$0")/.."

install=false build_only=false long=false
mpis=() wanted=()
while [ $# != 0 ]; do
  case $1 in
    --part) wanted+=("${2:?a part}"); shift ;;
    --install) install=true ;;
    --build) build_only=true ;;
    --long) long=true ;;
    openmpi | mpich) mpis+=("$1") ;;
    *) sed -n '2,33s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
  shift
done
[ ${#mpis[@]} != 0 ] || mpis=(openmpi mpich)

# shellcheck source=/dev/null
. ci/mpi/launch.sh
if $install; then
  # shellcheck disable=SC2154 # of ci/mpi/launch.sh
  apt-get install -y -qq --no-install-recommends gcc libc6-dev "${debian_mpis[@]}" >/dev/null
  exit
fi
missing=()
for mpi in "${mpis[@]}"; do
  command -v "mpicc.$mpi" >/dev/null || missing+=("$mpi (its compiler and launcher)")
done
if [ ${#missing[@]} != 0 ]; then
  echo "ci/mpi.sh needs: ${missing[*]}" >&2
  exit 3
fi

export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0} CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0
# What is compiled on the way is where the other tests' is (with cargo 1.91 or later): what does not
# depend on the MPI is compiled once.
export CARGO_BUILD_BUILD_DIR=${CARGO_TARGET_DIR:-$PWD/target}
# What the ranks write to, and how long they wait for each other on a machine that is busy.
export HOPBINE_TIMEOUT=${HOPBINE_TIMEOUT:-50} RUST_BACKTRACE=${RUST_BACKTRACE:-0}
# What Open MPI chooses here. Looking for faster networks takes it as long as the rest of a start.
export OMPI_MCA_pml=ob1

limit=60
! $long || limit=900
# shellcheck source=/dev/null
. ci/cores.sh
. capi/mpi/build.sh

ranks() {
  local n=$1 started=$SECONDS said status=0 variables=()
  shift
  while [[ $1 == *=* ]]; do
    variables+=("$1")
    shift
  done
  said=$(
    [ ${#variables[@]} = 0 ] || export "${variables[@]}"
    launch_within "$limit" "$n" "$@" 2>&1
  ) || status=$?
  if [ $status != 0 ]; then
    printf 'FAILED (%s): %s ranks: %s %s\n%s\n' "$status" "$n" "${variables[*]}" "$*" "$said" >&2
    return 1
  fi
  printf '   %3s s  %s\n' "$((SECONDS - started))" "$(tail -n 1 <<<"$said")"
}

cargo_programs() {
  local said
  said=$(cargo "$@" 2>&1) || { printf '%s\n' "$said" >&2; return 1; }
}

# Whether what depends little on the MPI runs under this one, programs in Rust among it: MPICH's ranks do not yield.
runs_all() { [ "$mpi" = openmpi ] || $long; }

cargo_hopbine() {
  local built
  # A test, whichever it is, brings the features of what the other tests have built.
  runs_all || { cargo build "${with_mpi[@]}" --lib --test handles; return; }
  built=$(cargo build "${with_mpi[@]}" --lib --bin hopbine --test mpi \
    --message-format=json-render-diagnostics) || return 1
  cp "$(sed -n 's/.*"executable":"\([^"]*\/mpi-[^"]*\)".*/\1/p' <<<"$built")" "$programs/mpi"
}

beside=()
beside() {
  "$@" &
  beside+=($!)
}

joined() {
  local pid status=0
  for pid in "${beside[@]}"; do wait "$pid" || status=1; done
  beside=()
  return $status
}

parts=()
for file in ci/mpi/*.part.sh; do
  # shellcheck source=/dev/null
  . "$file"
  part=$(basename "$file" .part.sh)
  if [ ${#wanted[@]} = 0 ] || [[ " ${wanted[*]} " == *" $part "* ]]; then parts+=("$part"); fi
done

failed=${CARGO_TARGET_DIR:-$PWD/target}/mpi-failed
mkdir -p "${failed%/*}"
: >"$failed"

# step build|run PART...
step() {
  local step=$1 part started status=0
  shift
  for part; do
    echo "== $mpi: $step $part"
    started=$SECONDS
    # A function in a condition does not stop at errors: they say so themselves.
    if (set -e; CARGO_TARGET_DIR=$target; export CARGO_TARGET_DIR; "${step}_$part"); then
      echo "-- $((SECONDS - started)) s"
    else
      echo "$mpi: $step $part" >>"$failed"
      status=1
    fi
  done
  return $status
}

# MPI: what parts find, as said above.
prepare() {
  use_mpi "$1"
  target=${CARGO_TARGET_DIR:-$PWD/target}/$mpi
  programs=$target/programs
  mkdir -p "$programs"
  # What is built with one MPI stays while the other has its turn: its package has a profile for each.
  level=0
  [ "$mpi" = openmpi ] || level=1
  # With these packages come the features of what the other tests have built: nothing of it is compiled again.
  with_mpi=(--quiet -p utofu -p hopbine -p hopbine-mpi -p hopbine-capi -p hopbine-cli
    --features "hopbine-mpi/linked,hopbine-cli/mpi" --config "profile.dev.package.hopbine-mpi.opt-level=$level")
}

# C is compiled for one MPI beside Rust for the other.
pids=()
for mpi in "${mpis[@]}"; do
  prepare "$mpi"
  step build "${parts[@]}" >"$programs/built" 2>&1 &
  pids+=($!)
done
are_built=()
for i in "${!mpis[@]}"; do
  prepare "${mpis[i]}"
  ! wait "${pids[i]}" || are_built+=("$mpi")
  cat "$programs/built"
done
! $build_only || are_built=()
runs=()
for part in "${parts[@]}"; do mapfile -t -O ${#runs[@]} runs < <(compgen -A function "run_$part" | sed 's/^run_//'); done
for mpi in "${are_built[@]}"; do
  prepare "$mpi"
  # Open MPI's ranks yield, and mostly wait for its launcher. Those of MPICH take their cores.
  if [ "$mpi" = openmpi ]; then
    each_on_a_core "$programs/said" "step run" "${runs[@]}" || continue
  else
    step run "${runs[@]}" || continue
  fi
done
[ ! -s "$failed" ] || { sed 's/^/FAILED: /' "$failed" >&2; exit 1; }
