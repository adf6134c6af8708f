# The two libraries that stand before MPI, from the C files of this directory, and the Fortran module of
# the first. Sourced by install.sh and the tests.
# shellcheck shell=bash

# DIRECTORY FLAG...: builds libhopbine_hb.so (HB_ calls) and libhopbine_mpi.so (for LD_PRELOAD) with
# $MPICC; libhopbine.so is in the same directory. From the top of the source.
build_door_libraries() {
  local into=$1 common own name
  shift
  common=(family init types names comms buffers rows serve again movement reduction ordered vector large kept)
  for name in hb mpi; do
    case $name in
      hb) own=(shaped fortran) ;;
      mpi) own=(requests background complete creators leave preload) ;;
    esac
    own=("${common[@]}" "${own[@]}")
    own=("${own[@]/#/capi/mpi/}")
    "$MPICC" -std=gnu11 -fPIC -fvisibility=hidden -shared -Iinclude "$@" "${own[@]/%/.c}" \
      -o "$into/libhopbine_$name.so" -L"$into" -lhopbine "-Wl,-rpath,\$ORIGIN" -ldl -lpthread || return 1
  done
}

# The parts of the module hopbine_mpi, in the order in which they are compiled.
door_module=(hopbine_mpi_call hopbine_mpi_f08 hopbine_mpi_integer hopbine_mpi)

# DIRECTORY: whether that module, compiled there, has persistent collectives.
has_persistent() {
  grep -q '^HB_PERSISTENT' "$1/version.txt"
}

# DIRECTORY FLAG...: compiles that module with $MPIFC into DIRECTORY, *.mod and *.o. Persistent collectives
# are there if $MPICC's MPI has them. From the top of the source.
build_door_module() {
  local into=$1 name
  shift
  printf '#include <mpi.h>\n#if MPI_VERSION >= 4\nHB_PERSISTENT\n#endif\n' >"$into/version.c"
  "$MPICC" -E "$into/version.c" >"$into/version.txt" || return 1
  ! has_persistent "$into" || set -- "$@" -DHB_PERSISTENT
  for name in "${door_module[@]}"; do
    name=$(ls "$PWD/fortran/mpi/$name".[fF]90)
    (cd "$into" && "$MPIFC" "$@" -c "$name") || return 1
  done
}
