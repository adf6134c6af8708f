#!/usr/bin/env bash
# Installs into a directory of its own and builds programs on what is there: C (shared and static),
# C++ and Fortran by pkg-config, and C and Fortran by CMake; runs each as two ranks.
#
#   ci/install.sh                 PROFILE=dev: what the other tests have built
#
# Exit code: 0 well, 1 something failed, 3 a tool is missing (pkg-config, gfortran, g++, cmake).
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in pkg-config gfortran g++ cmake; do
  command -v $tool >/dev/null || { echo "ci/install.sh: there is no $tool" >&2; exit 3; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
# An example brings the features of what the tests need, and utofu its own: nothing is compiled again then.
export ALSO_BUILD="-p utofu -p hopbine --example collectives"
PREFIX=$prefix PROFILE=${PROFILE:-release} ./install.sh >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig

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
cc -std=c99 -O2 examples/c/cg.c "${c[@]}" -lm -o "$work/c"
check "C, shared" "$work/c" 10
cc -std=c99 -O2 examples/c/cg.c "-I$prefix/include" "$prefix/lib/libhopbine.a" "${needs[@]}" -o "$work/static"
check "C, static" "$work/static" 10
g++ -std=c++11 -O2 capi/tests/library/plus.cc "${c[@]}" -o "$work/plus"
check "C++" "$work/plus"
gfortran -std=f2018 -O2 "${f[@]}" examples/fortran/cg.f90 "${flibs[@]}" -o "$work/fortran"
check "Fortran" "$work/fortran" 10

mkdir "$work/project"
cp examples/c/cg.c examples/fortran/cg.f90 "$work/project"
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
EOF
cmake -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" &&
  cmake --build "$work/project/build" >>"$work/log" || { cat "$work/log"; exit 1; }
for name in c c-static f; do check "CMake, $name" "$work/project/build/$name" 10; done

# What is built for a machine with Tofu has nothing of the emulated device, and says so.
without=$work/without
# (In a directory of its own: both have a libhopbine_capi.so, and cargo does not see whose it is.)
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/no-emulator CARGO_PROFILE_DEV_OPT_LEVEL=0 \
  ALSO_BUILD='--config profile.dev.package.hopbine-torus.opt-level=0' \
  EMULATOR=no FC='' PROFILE=dev PREFIX=$without ./install.sh >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
# Other stages build with what tests bring (the feature `internals`): only here it would show that nobody uses
# something.
! grep -A6 '^warning: ' "$work/log" || exit 1
for file in bin/hopbine lib/libhopbine.so; do
  n_symbols() { nm "$1/$file" 2>/dev/null | grep -c utofu_emu || true; }
  with=$(n_symbols "$prefix")
  rest=$(n_symbols "$without")
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
