# How the launchers are set up here: with more ranks than cores, also for root. Sourced by the scripts
# in tests/; $mpi is openmpi or mpich.
# shellcheck shell=bash disable=SC2154

# RANKS PROGRAM [ARGUMENT]...
launch() {
  case $mpi in
    openmpi)
      mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none \
        --mca mpi_yield_when_idle 1 --mca btl_base_warn_component_unused 0 -n "$@" ;;
    mpich) mpiexec.mpich -n "$@" ;;
  esac
}

# SECONDS RANKS PROGRAM ...: `timeout` starts programs only.
launch_within() {
  local seconds=$1
  shift
  export mpi
  export -f launch
  timeout -k 5 "$seconds" bash -c 'launch "$@"' launch "$@"
}
