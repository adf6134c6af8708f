#!/usr/bin/env bash
# Builds and installs hopbine on a compute node of Fugaku.
#
# Needs:  Rust for aarch64 (rustup) under $HOME/.cargo, and its crates fetched before, on a login node
#         (`cargo fetch --target aarch64-unknown-linux-gnu`): compute nodes reach no network.
# Submit: pjsub -g GROUP -x PJM_LLIO_GFSCACHE=VOLUME jobscripts/fugaku-build-native.sh (the volume of the source)
#
# Not tried on the machine: see docs/fugaku.md.
#PJM -L "node=1"
#PJM -L "rscgrp=small"
#PJM -L "elapse=00:30:00"
#PJM -j
#PJM -S
set -euo pipefail
cd "${PJM_O_WORKDIR:-.}"

export PATH=$HOME/.cargo/bin:$PATH PREFIX=${PREFIX:-$HOME/hopbine} CARGO_NET_OFFLINE=true
export RUSTFLAGS="${RUSTFLAGS:-} -C target-cpu=a64fx"
export CC=${CC:-fcc} FC=${FC-frt} MPICC=${MPICC:-mpifcc} MPIFC=${MPIFC-mpifrt}
# MESSAGES=yes links the command to MPI, so that mpiexec can start its ranks.
export MESSAGES=${MESSAGES:-no}
# The device is there.
export EMULATOR=no
./install.sh
