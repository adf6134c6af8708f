#!/usr/bin/env bash
# Installs as a packager would (DESTDIR, another LIBDIR) and moves that to a place of its own; builds programs on
# what is there: C (shared and static), C++ and Fortran by pkg-config, and C and Fortran by CMake; runs each as two
# ranks; with HB_ calls also after another MPI has been added, and for that. Then the names that leave the shared
# libraries, the man pages, and what is built without the emulated device.
#
#   ci/install.sh [MPI]           PROFILE=dev: what the other tests have built; with openmpi or mpich also programs with
#                                 HB_ calls, in C and Fortran, by pkg-config and CMake
#
# Exit code: 0 well, 1 something failed, 3 a tool is missing (pkg-config, gfortran, g++, cmake, those of the MPI).
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in pkg-config gfortran g++ cmake; do
  command -v $tool >/dev/null || { echo "ci/install.sh: there is no $tool" >&2; exit 3; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
mpi=${1:-}
# An example brings the features of what the tests need, and utofu its own: nothing is compiled again then.
export ALSO_BUILD="-p utofu -p hopbine --example allreduce"
export PROFILE=${PROFILE:-release}
# As Debian has it.
lib=$prefix/lib/$(gcc -print-multiarch)
if [ -n "$mpi" ]; then
  # shellcheck source=/dev/null
  . ci/mpi/launch.sh
  use_mpi "$mpi" || exit 3
  export MPIFC
else
  unset MPICC MPIFC
fi
# Before anything is built: no compiler of an MPI is named.
for wrong in /nonexistent false; do
  said=$(MPICC=$wrong PREFIX=$work/wrong timeout 10 ./install.sh 2>&1) && { echo "MPICC=$wrong: no error"; exit 1; }
  [[ $said == *"MPICC=$wrong is no compiler"* ]] && [ ! -e "$work/wrong" ] || { echo "MPICC=$wrong: $said"; exit 1; }
done
(umask 077 && DESTDIR=$work/stage PREFIX=$prefix/ LIBDIR=$lib ./install.sh) >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
hidden=$(find "$work/stage" -mindepth 1 ! -type l \( ! -perm -o=r -o -type d ! -perm -o=x \))
[ -z "$hidden" ] || { printf 'others cannot read what is installed:\n%s\n' "$hidden"; exit 1; }
! grep -rlI "$work/stage" "$work/stage" || { echo "what is installed names DESTDIR"; exit 1; }
mv "$work/stage$prefix" "$prefix"
export PKG_CONFIG_PATH=$lib/pkgconfig
at_run_time="-Wl,-rpath,$(pkg-config --variable=libdir hopbine)"

check() {
  local name=$1 said
  shift
  said=$(timeout 60 "$prefix/bin/hopbine" launch -n 2 --backend shm "$@" 2>&1) || { echo "$name: $said"; exit 1; }
  case $said in
  *correct*) echo "$name: well" ;;
  *) echo "$name: $said"; exit 1 ;;
  esac
}

read -ra c <<<"$(pkg-config --cflags --libs hopbine)"
read -ra f <<<"$(pkg-config --cflags hopbine-fortran)"
read -ra flibs <<<"$(pkg-config --libs hopbine-fortran)"
read -ra needs <<<"$(pkg-config --static --libs-only-l hopbine | sed 's/-lhopbine //')"
cc -std=c99 -O2 examples/c/cg.c "${c[@]}" "$at_run_time" -lm -o "$work/c"
check "C, shared" "$work/c" 10
cc -std=c99 -O2 examples/c/cg.c "-I$prefix/include" "$lib/libhopbine.a" "${needs[@]}" -o "$work/static"
check "C, static" "$work/static" 10
g++ -std=c++11 -O2 capi/tests/library/plus.cc "${c[@]}" "$at_run_time" -o "$work/plus"
check "C++" "$work/plus"
gfortran -std=f2018 -O2 "${f[@]}" examples/fortran/cg.f90 "${flibs[@]}" "$at_run_time" -o "$work/fortran"
check "Fortran" "$work/fortran" 10

mkdir "$work/project"
cp examples/c/cg.c examples/fortran/cg.f90 examples/utofu-c/{pingpong.c,ranks.h} "$work/project"
cat >"$work/project/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.19)
project(user C Fortran)
find_package(hopbine 0.1 REQUIRED)
find_package(hopbine 0.1...<0.2 REQUIRED)
find_package(hopbine 0.2...0.4 QUIET)
if(hopbine_FOUND)
  message(FATAL_ERROR "a version that is not in the range was found")
endif()
add_executable(c cg.c)
target_link_libraries(c hopbine::hopbine m)
add_executable(c-static cg.c)
target_link_libraries(c-static hopbine::static)
add_executable(f cg.f90)
target_link_libraries(f hopbine::fortran)
add_executable(pingpong pingpong.c)
target_link_libraries(pingpong hopbine::tofucom_emu)
EOF
cmake -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" &&
  cmake --build "$work/project/build" >>"$work/log" || { cat "$work/log"; exit 1; }
for name in c c-static f; do check "CMake, $name" "$work/project/build/$name" 10; done
readelf -d "$work/project/build/pingpong" | grep -q 'NEEDED.*\[libtofucom_emu.so\]' ||
  { echo "CMake, pingpong: does not ask for libtofucom_emu.so"; exit 1; }
# Without the static library, too.
mv "$lib/libhopbine.a" "$work"
sed -i '/c-static/d' "$work/project/CMakeLists.txt"
cmake -S "$work/project" -B "$work/project/shared" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" || { cat "$work/log"; exit 1; }
mv "$work/libhopbine.a" "$lib"

if [ -n "$mpi" ]; then
  read -ra c <<<"$(pkg-config --cflags --libs hopbine-hb)"
  read -ra f <<<"$(pkg-config --cflags --libs hopbine-hb-fortran)"
  ${MPICC:?} -O2 examples/mpi/heat.c "${c[@]}" "$at_run_time" -lm -o "$work/hb"
  ${MPIFC:?} -O2 examples/mpi/heat.f90 "${f[@]}" "$at_run_time" -o "$work/hb-fortran"
  mkdir "$work/with-mpi"
  cp examples/mpi/heat.c examples/mpi/heat.f90 "$work/with-mpi"
  cat >"$work/with-mpi/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.19)
project(user C Fortran)
find_package(MPI REQUIRED)
find_package(hopbine 0.1 REQUIRED)
add_executable(c heat.c)
target_link_libraries(c hopbine::hb MPI::MPI_C m)
add_executable(f heat.f90)
target_link_libraries(f hopbine::hb_fortran MPI::MPI_Fortran)
EOF
  cmake -S "$work/with-mpi" -B "$work/with-mpi/build" -DCMAKE_PREFIX_PATH="$prefix" -DMPI_C_COMPILER="$(command -v "$MPICC")" \
    -DMPI_Fortran_COMPILER="$(command -v "$MPIFC")" >"$work/log" &&
    cmake --build "$work/with-mpi/build" >>"$work/log" || { cat "$work/log"; exit 1; }
  served() {
    said=$(HOPBINE_REPORT=1 launch_within 60 2 "$1" 24 24 2>&1) && grep -q '^hopbine report: ' <<<"$said" ||
      { echo "$1: $said"; exit 1; }
    echo "${1#"$work"/}, with $mpi: served"
  }
  for program in "$work"/{hb,hb-fortran,with-mpi/build/c,with-mpi/build/f}; do served "$program"; done

  # The wrapper's compiler may have arguments. What stands before MPI takes the program's.
  MPICH_CC="env X=1 gcc" OMPI_CC="env X=1 gcc" ONLY=doors PREFIX=$prefix LIBDIR=$lib ./install.sh >"$work/log" 2>&1 ||
    { cat "$work/log"; exit 1; }
  ! readelf -d "$lib"/hopbine/*/libhopbine_mpi.so | grep 'NEEDED.*libmpi' || { echo "libhopbine_mpi.so needs an MPI"; exit 1; }

  # Nothing is put beside a libhopbine.so that lacks what it calls.
  mkdir -p "$work/stub/lib"
  cc -shared -x c /dev/null -o "$work/stub/lib/libhopbine.so"
  said=$(ONLY=doors PREFIX=$work/stub ./install.sh 2>&1) && { echo "a libhopbine.so without functions: no error"; exit 1; }
  [[ $said == *"without "*hopbine_allreduce* ]] && [ ! -e "$work/stub/lib/hopbine" ] || { echo "a libhopbine.so without functions: $said"; exit 1; }

  # Another MPI is added: these programs stay with theirs. With the other's library one ends, and says why.
  [ "$mpi" = openmpi ] && other=mpich || other=openmpi
  if (use_mpi "$other"); then
    (use_mpi "$other" && ONLY=doors PREFIX=$prefix LIBDIR=$lib ./install.sh) >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    served "$work/hb"
    served "$work/hb-fortran"
    said=$(launch_within 60 2 env LD_PRELOAD="$lib/hopbine/$other/libhopbine_hb.so" "$work/hb" 24 24 2>&1) || true
    grep -q "but its libhopbine_hb.so was built for" <<<"$said" || { echo "with the library for $other: $said"; exit 1; }
    # Fortran's module and library for the other; the module of one with the library of the other is not linked.
    own=$lib/hopbine/$other
    libs=(-L"$lib" "-Wl,-rpath,$own:$lib" -lhopbine_hb_fortran -lhopbine_hb -lhopbine)
    (use_mpi "$other" && $MPIFC -O2 examples/mpi/heat.f90 -I"$own" -L"$own" "${libs[@]}" -o "$work/hb-fortran-$other" &&
      served "$work/hb-fortran-$other")
    said=$($MPIFC -O2 examples/mpi/heat.f90 -I"$prefix/include" "$lib/libhopbine_hb_fortran.a" -L"$own" "${libs[@]:0:2}" \
      "${libs[@]:3}" -o "$work/mixed" 2>&1) && { echo "the module for $mpi was linked with the library for $other"; exit 1; }
    grep -q "undefined reference to .hopbine_hb_[a-z]*_$mpi" <<<"$said" || { echo "the module for $mpi: $said"; exit 1; }
  fi
fi

# The library to preload is found from any place, and by the command; its benchmark has all sides.
if [ -n "$mpi" ]; then
  ln -s "$prefix/bin/hopbine-preload" "$work/preload"
  [ "$("$work/preload" --path)" = "$(realpath "$lib/libhopbine_preload.so")" ] || { echo "hopbine-preload --path: $("$work/preload" --path)"; exit 1; }
  [ -s "$prefix/share/man/man1/hopbine-preload.1" ] || { echo "there is no man page of hopbine-preload"; exit 1; }
  said=$(timeout 300 "$prefix/bin/hopbine" bench allreduce,alltoallv-sparse --bytes 8..4KiB:x512 --rounds 1 --budget 1 --cc cc \
    --mpicc "$MPICC" --mpiexec "$MPIEXEC" --format csv 2>&1) || { echo "hopbine bench: $said"; exit 1; }
  for side in hopbine "hopbine in C" MPI '"MPI, hopbine preloaded"'; do
    # Two sizes of both.
    [ "$(grep -c ",$side,[0-9]" <<<"$said")" = 4 ] || { echo "hopbine bench has no $side: $said"; exit 1; }
  done
  echo "hopbine bench, with $mpi: well"
fi

# Only names of the interface leave the libraries: any other could stand before a name of the program.
for library in "$lib"/libhopbine.so "$lib"/libtofucom_emu.so "$lib"/libhopbine_preload.so "$lib"/hopbine/*/libhopbine_*.so; do
  [ -e "$library" ] || continue
  case $library in
  */libhopbine.so) names='^hopbine_' ;;
  */libtofucom_emu.so) names='^(utofu|jtofu)_' ;;
  *) names='^(P?MPIX?_|p?mpix?_|HB_|hb_|hopbine_)' ;;
  esac
  left=$(nm -D --defined-only "$library" | awk '{ print $3 }' | grep -Ev "$names") || true
  [ -z "$left" ] || { printf '%s shows other names:\n%s\n' "$library" "$left" >&2; exit 1; }
  soname=$(readelf -d "$library" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
  case $library:$soname in
  # Without one, so that a program that is linked to it by the vendor's name asks for that name.
  */libtofucom_emu.so:) ;;
  *:libhopbine_preload.so | *.so:*.so.[0-9]*) [ -e "$(dirname "$library")/$soname" ] || { echo "there is no $soname beside $library" >&2; exit 1; } ;;
  *) echo "$library has no soname with a version, but '$soname'" >&2; exit 1 ;;
  esac
done
echo "names of the shared libraries: well"
[ -s "$prefix/share/man/man1/hopbine-run.1" ] && [ -s "$prefix/share/bash-completion/completions/hopbine" ] ||
  { echo "there are no man pages or completions" >&2; exit 1; }

# What is built for a machine with Tofu has nothing of the emulated device, and says so.
without=$work/without
# (In a directory of its own; what is compiled on the way is where the other is, with cargo 1.91 or later. There both
# have a libhopbine_capi.so, and cargo does not see whose it is: it makes the next one anew.)
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
trap 'rm -rf "$work" "$target"/debug/.fingerprint/hopbine-capi-*' EXIT
CARGO_BUILD_BUILD_DIR=$target CARGO_TARGET_DIR=$target/no-emulator CARGO_PROFILE_DEV_OPT_LEVEL=0 \
  EMULATOR=no FC='' MPICC='' PROFILE=dev PREFIX=$without ./install.sh >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
# Other stages build with what tests bring (the feature `internals`): only here it would show that nobody uses
# something.
! grep -A6 '^warning: ' "$work/log" || exit 1
n_symbols() { nm "$1" 2>/dev/null | grep -c utofu_emu || true; }
for file in bin/hopbine lib/libhopbine.so; do
  with=$(n_symbols "$prefix/${file/lib/"${lib#"$prefix/"}"}")
  rest=$(n_symbols "$without/$file")
  if [ "$with" = 0 ] || [ "$rest" != 0 ]; then
    echo "$file: $with symbols of the emulated device by default, $rest without it" >&2
    exit 1
  fi
done
said=$(HOPBINE_BACKEND=emu "$without/bin/hopbine" info 2>&1) && { echo "no error: $said"; exit 1; }
case $said in
*"built without the emulated device"*) echo "without the emulated device: well" ;;
*) echo "without the emulated device: $said"; exit 1 ;;
esac
