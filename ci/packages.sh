#!/usr/bin/env bash
# Packages, built, installed and removed as users do: Debian's, on this machine itself, and the wheel, with mpi4py and
# the MPIs of wheels.
#
#   ci/packages.sh [debian|wheel]...
#
# Exit code: 0 well, 1 something failed, 3 something is missing, which is named.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# != 0 ] || set -- debian wheel
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# NAME COMMAND...: what it says, if it fails.
log() {
  local name=$1
  shift
  "$@" >"$work/log" 2>&1 || { cat "$work/log"; echo "$name: FAILED"; exit 1; }
  echo "$name: well"
}

check_debian() {
  for tool in dh lintian dpkg-buildpackage; do
    command -v $tool >/dev/null || { echo "ci/packages.sh: there is no $tool" >&2; exit 3; }
  done
  [ "$(id -u)" = 0 ] || { echo "ci/packages.sh: only root can install packages" >&2; exit 3; }
  ! grep -q ^ii <<<"$(dpkg -l libhopbine-dev 2>/dev/null)" || { echo "ci/packages.sh: libhopbine-dev is installed already" >&2; exit 3; }
  log "Debian packages are built" packages/debian/build.sh "$work/debian"
  # No maintainer's address is public yet. What has no version is preloaded, or stands in for another library: no
  # loader has to find it.
  log "lintian" lintian --fail-on error --suppress-tags \
    bogus-mail-host,lacks-ldconfig-trigger,sharedobject-in-library-directory-missing-soname "$work"/debian/*.deb
  log "Debian packages are installed" apt-get install -y "$work"/debian/*.deb
  trap 'apt-get remove -y hopbine hopbine-mpi libhopbine-dev libhopbine0.1 >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
  # shellcheck disable=SC2046 # arguments
  log "C" cc -O2 examples/c/cg.c $(pkg-config --cflags --libs hopbine) -lm -o "$work/cg"
  log "C, two ranks" hopbine launch -n 2 --backend shm "$work/cg" 10
  # shellcheck disable=SC2046 # arguments
  log "Fortran" gfortran -O2 examples/fortran/cg.f90 $(pkg-config --cflags --libs hopbine-fortran) -o "$work/cg-fortran"
  log "Fortran, two ranks" hopbine launch -n 2 --backend shm "$work/cg-fortran" 10
  log "a man page" man -w hopbine-run
  # shellcheck source=/dev/null
  . ci/mpi/launch.sh
  local mpi said
  for mpi in openmpi mpich; do
    use_mpi $mpi || exit 3
    sed 's/HB_/MPI_/g; s/hopbine_mpi.h/mpi.h/' examples/mpi/heat.c >"$work/heat.c"
    $MPICC -O2 "$work/heat.c" -lm -o "$work/heat"
    said=$(HOPBINE_REPORT=1 launch_within 60 2 hopbine-preload "$work/heat" 24 24 2>&1)
    grep -q "^hopbine report: " <<<"$said" || { echo "$mpi: $said"; exit 1; }
    echo "an unchanged program of $mpi: served"
  done
  log "Debian packages are removed" apt-get remove -y hopbine hopbine-mpi libhopbine-dev libhopbine0.1
  ! ls /usr/bin/hopbine* /usr/include/hopbine* 2>/dev/null || { echo "something stays"; exit 1; }
}

check_wheel() {
  local mpi said python
  export MPIS=${MPIS:-$PWD/target/mpis}
  ci/mpi/wheels.sh -d "$MPIS" openmpi5 mpich5
  python3 -m venv "$work/maturin"
  log "maturin" "$work/maturin/bin/pip" install -q 'maturin>=1.7,<2'
  PATH=$work/maturin/bin:$PATH log "the wheel is built" packages/python/build.sh -o "$work/wheels" \
    "$MPIS/openmpi5/bin/mpicc" "$MPIS/mpich5/bin/mpicc" "$MPIS/mpich5/bin/mpicc_abi"
  cat >"$work/program.py" <<'END'
from mpi4py import MPI
import numpy
comm = MPI.COMM_WORLD
total = numpy.zeros(1000)
for _ in range(10):
    comm.Allreduce(numpy.full(1000, comm.rank + 1.0), total)
assert (total == comm.size * (comm.size + 1) / 2).all()
assert comm.allgather(comm.rank) == list(range(comm.size))
END
  # shellcheck source=/dev/null
  . ci/mpi/launch.sh
  for mpi in openmpi5 mpich5; do
    use_mpi $mpi || exit 3
    python=$MPIS/$mpi/bin/python
    log "the wheel is installed beside $mpi" "$python" -m pip install --force-reinstall -q "$work"/wheels/*.whl
    log "its command" "$MPIS/$mpi/bin/hopbine" check allreduce --torus 4x4 --algorithm bine
    said=$(export HOPBINE_REPORT=1 LD_PRELOAD; LD_PRELOAD=$("$python" -m hopbine); launch_within 60 2 "$python" "$work/program.py" 2>&1) ||
      { echo "$mpi: $said"; exit 1; }
    grep -q "^allreduce " <<<"$said" || { echo "$mpi: $said"; exit 1; }
    echo "an unchanged program of mpi4py and $mpi: served"
    log "the wheel is removed" "$python" -m pip uninstall -q -y hopbine
  done
}

for what; do
  case $what in
  debian | wheel) check_$what ;;
  *) echo "ci/packages.sh: nothing is called $what" >&2; exit 2 ;;
  esac
done
