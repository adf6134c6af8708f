#!/usr/bin/env bash
# The collective tests of MPICH's own test suite, in C, mpif.h, use mpi and use mpi_f08, plain and
# under libhopbine_preload.so: what passes without it must pass with it. By hand; ten minutes on two idle
# cores, of which three are building.
#
#   ci/mpi-suite.sh MPI PREFIX [TEST]...
#
# MPI is a name of ci/mpi/launch.sh: openmpi, mpich, openmpi5, mpich5, ..., or given, for MPICC, MPIFC and MPIEXEC. Without
# an MPIFC only C's tests. PREFIX is where `MPICC=mpicc.openmpi ./install.sh` (or another's) has installed hopbine. The source is
# Debian's package `mpich`, which is fetched unless $MPICH_SOURCE says where one is; it is built in
# $BUILD_DIR (default: target/mpi-suite), once. With TESTs only those (allred4 icbcast ...).
#
# Exit code: 0 well, 1 something fails only with hopbine, 3 the suite could not be built.
#
# errors/coll are calls that do not fit each other.
set -euo pipefail
cd "$(dirname "$0")/.."
named=${1:?the name of an MPI} library=$(realpath "${2:?where hopbine is installed}")/lib/libhopbine_preload.so
shift 2
[ -f "$library" ] || { echo "ci/mpi-suite.sh: there is no $library; see ./install.sh" >&2; exit 3; }
build=${BUILD_DIR:-$PWD/target/mpi-suite}
mkdir -p "$build"
# shellcheck source=/dev/null
. ci/mpi/launch.sh
use_mpi "$named" || { echo "ci/mpi-suite.sh: there is no $named" >&2; exit 3; }
parts=(coll errors/coll f77/coll f90/coll f08/coll)
[ -n "$MPIFC" ] || parts=(coll errors/coll)

fetch() {
  local at=$build/apt
  mkdir -p "$at/lists/partial" "$at/parts"
  # Where this system has its packages from, it has their sources from.
  sed 's/^Types:.*/Types: deb-src/' /etc/apt/sources.list.d/*.sources >"$at/parts/source.sources" 2>/dev/null || true
  sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$at/parts/source.list" 2>/dev/null || true
  local options=(-qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$at/parts"
    -o Dir::State::Lists="$at/lists")
  (cd "$build" && apt-get "${options[@]}" update && apt-get "${options[@]}" source --download-only mpich &&
    dpkg-source -x mpich_*.dsc mpich)
  # Names of MPI-1, which Open MPI no longer has.
  sed -i 's/MPI_Type_\(hvector\|hindexed\|struct\)(/MPI_Type_create_\1(/' "$build"/mpich/test/mpi/dtpools/src/*.c
}
source=${MPICH_SOURCE:-$build/mpich}
[ -d "$source/test/mpi" ] || fetch >"$build/fetch.log" 2>&1 || { tail "$build/fetch.log" >&2; exit 3; }
source=$(realpath "$source")/test/mpi

suite=$build/with-$named
if [ ! -d "$suite/coll" ]; then
  mkdir -p "$suite"
  cd "$suite"
  wrong=(-fallow-argument-mismatch -w -O1)
  fortran=()
  [ -n "$MPIFC" ] || fortran=(--disable-fortran)
  env {CC,MPICC}="$MPICC" {FC,F77,MPIF77}="$MPIFC" FCFLAGS="${wrong[*]}" FFLAGS="${wrong[*]}" CFLAGS="-w -O1" \
    "$source/configure" --disable-cxx --disable-spawn --disable-dependency-tracking "${fortran[@]}" >configure.log 2>&1 ||
    { tail configure.log >&2; exit 3; }
  # Not all of them are for every MPI: those that do not build are told of below.
  for part in dtpools util "${parts[@]}"; do
    [ $part != f08/coll ] || continue
    make -k -j2 -C $part "$([[ $part == *coll ]] && echo check || echo all)" TESTS= >>make.log 2>&1 || true
  done
  if [ -n "$MPIFC" ]; then
    mkdir -p f08/coll
    cd f08/coll
    $MPIFC "${wrong[@]}" -c "$source/util/mtest_f08.f90" -o util.o
    for file in "$source"/f08/coll/*.f90; do
      $MPIFC "${wrong[@]}" "$file" util.o -o "$(basename "$file" .f90)" >>make.log 2>&1 || true
    done
  fi
fi

failed=0 passed=0 served=0 absent=() report=$build/report-$named
# DIRECTORY PROGRAM RANKS ARGUMENT...: whether it passes.
passes() {
  local said
  said=$(cd "$suite/$1" && launch_within 90 "$3" "./$2" "${@:4}" </dev/null 2>&1) && [[ $said == *"No Errors"* ]]
}
for part in "${parts[@]}"; do
  list=$suite/$part/testlist
  [ -f "$list" ] || list=$source/$part/testlist
  while read -r name n rest; do
    [[ $name =~ ^[a-z] ]] || continue
    [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
    [ -x "$suite/$part/$name" ] || { absent+=("$part/$name"); continue; }
    arguments=()
    for word in $rest; do [[ $word != arg=* ]] || arguments+=("${word#arg=}"); done
    rm -f "$report"
    if (export LD_PRELOAD=$library HOPBINE_REPORT=$report; passes $part "$name" "$n" "${arguments[@]}"); then
      passed=$((passed + 1))
      # Lines of calls; those that MPI serves say why.
      ! awk '/^hopbine report/ { calls = 0 } calls && !/ MPI: / { n++ } / served by$/ { calls = 1 } END { exit !n }' \
        "$report" 2>/dev/null || served=$((served + 1))
    elif passes $part "$name" "$n" "${arguments[@]}"; then
      echo "FAILS ONLY WITH HOPBINE: $part/$name on $n ranks ${arguments[*]}"
      failed=$((failed + 1))
    else
      echo "fails without hopbine, too: $part/$name on $n ranks ${arguments[*]}"
    fi
  done <"$list"
done
[ ${#absent[@]} = 0 ] || echo "not built for this MPI: ${absent[*]}"
echo "$named: $passed pass with hopbine, which serves calls of $served of them; $failed only without"
[ $failed = 0 ] && [ $served != 0 ] || exit 1
# Of all tests, nearly all have calls that hopbine serves.
[ $# != 0 ] || [ $((2 * served)) -ge $passed ]
