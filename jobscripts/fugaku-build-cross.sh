#!/usr/bin/env bash
# Builds and installs hopbine for the compute nodes on a login node of Fugaku (x86-64).
#
# Needs:  Rust (rustup) with `rustup target add aarch64-unknown-linux-gnu`, Fujitsu's cross compilers
#         (module lang/tcsds-...: fccpx, mpifccpx, mpifrtpx).
# Start:  PREFIX=$HOME/hopbine jobscripts/fugaku-build-cross.sh
#         If frtpx refuses the Fortran modules: FC= MPIFC= jobscripts/fugaku-build-cross.sh
#
# Not tried on the machine: see docs/fugaku.md.
set -euo pipefail
cd "$(dirname "$0")/.."

export PREFIX=${PREFIX:-$HOME/hopbine}
export CARGO_BUILD_TARGET=aarch64-unknown-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=${LINKER:-fccpx}
export RUSTFLAGS="${RUSTFLAGS:-} -C target-cpu=a64fx"
export CC=${CC:-fccpx} FC=${FC-frtpx} MPICC=${MPICC:-mpifccpx} MPIFC=${MPIFC-mpifrtpx}
# MESSAGES=yes links the command to MPI, so that mpiexec can start its ranks.
export MESSAGES=${MESSAGES:-no}
# The device is there.
export EMULATOR=no
./install.sh
