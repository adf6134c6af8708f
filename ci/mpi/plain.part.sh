# Programs that provide no MPI: ranks that mpirun or mpiexec has started find each other by
# their variables. Sourced by ci/mpi.sh.
# shellcheck shell=bash disable=SC2154

build_plain() {
  # Nothing of it depends on the MPI: one build serves both. The selection is that of ci/install.sh, so that
  # features are the same and nothing is compiled again.
  (
    unset CARGO_PROFILE_DEV_OPT_LEVEL CARGO_PROFILE_TEST_OPT_LEVEL CARGO_BUILD_BUILD_DIR
    CARGO_TARGET_DIR=${target%/*} cargo_programs build -p hopbine-capi -p hopbine-cli --lib --bin hopbine \
      -p utofu -p hopbine --example allreduce
  ) || return 1
  cp "${target%/*}/debug/hopbine" "$programs/plain"
}

run_plain() {
  local backend status=0
  for backend in shm emu; do
    ranks 4 HOPBINE_BACKEND=$backend "$programs/plain" bench-rank allreduce,alltoall,barrier 8,4096 1 || status=1
  done
  return $status
}
