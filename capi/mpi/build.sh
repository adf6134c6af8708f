# The two libraries that stand before MPI, from the C files of this directory. Sourced by install.sh
# and the tests.
# shellcheck shell=bash

# DIRECTORY FLAG...: builds libhopbine_hb.so (HB_ calls) and libhopbine_mpi.so (for LD_PRELOAD) with
# $MPICC; libhopbine.so is in the same directory. From the top of the source.
build_door_libraries() {
  local into=$1 common own name
  shift
  common=(types names comms buffers rows serve again movement reduction ordered vector)
  for name in hb mpi; do
    case $name in
      hb) own=(shaped fortran) ;;
      mpi) own=(requests background complete creators preload) ;;
    esac
    own=("${common[@]}" "${own[@]}")
    own=("${own[@]/#/capi/mpi/}")
    "$MPICC" -std=gnu11 -fPIC -fvisibility=hidden -shared -Iinclude "$@" "${own[@]/%/.c}" \
      -o "$into/libhopbine_$name.so" -L"$into" -lhopbine "-Wl,-rpath,\$ORIGIN" -ldl -lpthread || return 1
  done
}
