#!/usr/bin/env bash
# Builds and installs hopbine as on a login node of Fugaku (jobscripts/fugaku-build-cross.sh), with Debian's cross
# compilers in place of Fujitsu's and with Debian's Open MPI 4 for arm64. Then runs under qemu the
# examples in C and Fortran, on two ranks without MPI and on one beside it, and an MPI program by LD_PRELOAD.
#
#   ci/cross.sh            ci/nightly.sh runs this
#   ci/cross.sh --install  installs what that needs (Debian, as root; a toolchain of rustup's)
#
# Exit code: 0 well, 1 something has failed, 3 this machine cannot do it.
set -euo pipefail
cd "$(dirname "$0")/.."

work=${CARGO_TARGET_DIR:-$PWD/target}/cross
# What Debian has of Open MPI for arm64, unpacked: installed it would replace that of this machine.
mpi=$work/mpi libs=$work/mpi/usr/lib/aarch64-linux-gnu
oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)

if [ "${1:-}" = --install ]; then
  dpkg --add-architecture arm64
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends gcc-aarch64-linux-gnu gfortran-aarch64-linux-gnu \
    libc6-dev-arm64-cross libc6:arm64 libgcc-s1:arm64 qemu-user-static >/dev/null
  rustup toolchain install "$oldest" --profile minimal --no-self-update --target aarch64-unknown-linux-gnu
  rm -rf "$mpi"
  mkdir -p "$mpi/debs"
  (cd "$mpi/debs" && apt-get download -qq {libopenmpi3,libopenmpi-dev,libhwloc15,libevent-core-2.1-7,libevent-pthreads-2.1-7,libpmix2,libmunge2,libudev1,zlib1g,libgfortran5}:arm64)
  for deb in "$mpi"/debs/*.deb; do dpkg -x "$deb" "$mpi"; done
  exit
fi

missing() {
  echo "ci/cross.sh: NOTHING WAS CHECKED: there is no $1; on Debian: ci/cross.sh --install" >&2
  exit 3
}
for command in aarch64-linux-gnu-gcc aarch64-linux-gnu-gfortran qemu-aarch64-static rustup; do
  command -v $command >/dev/null || missing $command
done
[ -e "$libs/libmpi.so.40" ] || missing "Open MPI for arm64"
export RUSTUP_TOOLCHAIN=$oldest
[ -d "$(rustc --print sysroot)/lib/rustlib/aarch64-unknown-linux-gnu/lib" ] || missing "standard library of Rust $oldest for aarch64"

# Wrappers as Fujitsu's: -show names the compiler.
mkdir -p "$work/bin" "$work/programs"
# NAME COMPILER FLAGS LIBRARIES
wrapper() {
  # shellcheck disable=SC2016 # for the wrapper
  printf '#!/bin/sh\n[ "$1" != -show ] || { echo "%s"; exit; }\nexec %s %s "$@" %s\n' "$2" "$2" "$3" "$4" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
link="-L$libs/openmpi/lib -Wl,-rpath-link,$libs:$mpi/lib/aarch64-linux-gnu"
modules=$(echo "$libs"/fortran/gfortran-mod-*/openmpi)
wrapper mpicc aarch64-linux-gnu-gcc "-I$libs/openmpi/include" "$link -lmpi"
wrapper mpifort aarch64-linux-gnu-gfortran "-I$modules" "$link -lmpi_usempif08 -lmpi_usempi_ignore_tkr -lmpi_mpifh -lmpi"

# Compilers with arguments, as in `mpifccpx -Nclang`.
installed=$work/installed
export MPICC="$work/bin/mpicc -DHOPBINE_WORDS=1" MPIFC="$work/bin/mpifort -g0"
rm -rf "$installed"
echo "== build"
CARGO_TARGET_DIR=$work/target PROFILE=${PROFILE:-dev} PREFIX=$installed LINKER=aarch64-linux-gnu-gcc \
  CC="aarch64-linux-gnu-gcc -g0" FC="aarch64-linux-gnu-gfortran -g0" jobscripts/fugaku-build-cross.sh

# NAME [VARIABLE=VALUE]...: a program, alone. Open MPI must not start its daemon, which is not here.
on_qemu() {
  local name=$1
  shift
  env OPAL_PREFIX="$mpi/usr" OMPI_MCA_mca_base_component_path="$libs/openmpi/lib/openmpi3" \
    OMPI_MCA_mca_base_component_show_load_errors=0 OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_pml=ob1 OMPI_MCA_btl=self \
    HOPBINE_REPORT=1 "$@" timeout 300 qemu-aarch64-static -cpu a64fx ${preload:+-E "LD_PRELOAD=$preload"} \
    -E "LD_LIBRARY_PATH=$installed/lib:$libs:$mpi/lib/aarch64-linux-gnu" "$work/programs/$name"
}

failed=0
# NAME SAID WANTED: whether a program is right, and its report says so.
judge() {
  if [[ $2 == *"hopbine report: rank 0 of "*"$3"* && $2 == *"${right:-correct}"* ]]; then
    echo "-- $1: well"
  else
    printf 'FAILED: %s\n%s\n' "$1" "$2" >&2
    failed=1
  fi
}

# NAME: on two ranks, over shared memory.
pair() {
  local dir said
  dir=$(mktemp -d)
  said=$(
    for rank in 0 1; do
      on_qemu "$1" HOPBINE_BACKEND=shm HOPBINE_RENDEZVOUS="$dir/meet" HOPBINE_SIZE=2 HOPBINE_RANK=$rank 2>&1 &
    done
    wait
  )
  rm -r "$dir"
  judge "$1" "$said" "flat buffer"
}

# NAME: beside MPI, whose only rank needs nobody.
alone() { judge "$1" "$(on_qemu "$1" 2>&1)" "a rank alone"; }

cd "$work/programs"
source=$OLDPWD to="-I$installed/include -L$installed/lib"
echo "== examples"
# shellcheck disable=SC2086 # flags
{
  aarch64-linux-gnu-gcc "$source/examples/c/cg.c" $to -lhopbine -lm -o c-cg
  aarch64-linux-gnu-gfortran "$source/examples/fortran/cg.f90" $to -lhopbine_fortran -lhopbine -o fortran-cg
  for name in cg heat fft; do
    $MPICC "$source/examples/mpi/$name.c" $to -lhopbine_hb -lhopbine -lm -o "mpi-$name"
    $MPIFC "$source/examples/mpi/$name.f90" $to -lhopbine_hb_fortran -lhopbine_hb -lhopbine -o "mpi-fortran-$name"
  done
  # The same with MPI's own names.
  sed 's/HB_/MPI_/g; s/hopbine_mpi.h/mpi.h/' "$source/examples/mpi/cg.c" >plain-cg.c
  $MPICC plain-cg.c -lm -o preloaded-cg
}
for name in c-cg fortran-cg; do pair "$name"; done
for name in mpi-cg mpi-fortran-cg mpi-fft mpi-fortran-fft; do alone "$name"; done
for name in mpi-heat mpi-fortran-heat; do right="100 steps: heat 6972.479497064" alone "$name"; done
preload=$installed/lib/libhopbine_preload.so alone preloaded-cg
exit $failed
