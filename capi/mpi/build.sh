# The libraries that stand before MPI, from the C files of this directory and of capi/preload, and the Fortran module
# for HB_ calls; names of shared libraries. Sourced by install.sh and the tests, from the top of the source.
# shellcheck shell=bash

# The package's version, and the part of it that sonames have: before 1.0 every minor version may change the interface.
hopbine_version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
case $hopbine_version in
0.*) hopbine_soversion=${hopbine_version%.*} ;;
*) hopbine_soversion=${hopbine_version%%.*} ;;
esac

# DIRECTORY NAME: the links to DIRECTORY/NAME.VERSION by which a linker (NAME) and the loader (NAME.SOVERSION) find it.
link_names() {
  ln -sfn "$2.$hopbine_version" "$1/$2.$hopbine_soversion"
  ln -sfn "$2.$hopbine_soversion" "$1/$2"
}

# Prints which libraries $MPICC's MPI can have: abi (libmpi_abi.so), openmpi or mpich. Libraries of one kind have the
# same handles, so that what is built for one serves all of them.
mpi_variant() {
  local variant
  # shellcheck disable=SC2086 # it may have arguments
  variant=$(${MPICC:?} -E capi/mpi/variant.c | sed -n 's/^hopbine: //p') || variant=
  case $variant in
    abi | openmpi | mpich) echo "$variant" ;;
    *) echo "MPICC=$MPICC is no compiler of an MPI that hopbine knows: Open MPI, MPICH or one of the standard ABI" >&2; return 1 ;;
  esac
}

# DIRECTORY FLAG...: builds, with $MPICC, DIRECTORY/hopbine/VARIANT/libhopbine_mpi.so, which libhopbine_preload.so loads,
# and libhopbine_hb.so (HB_ calls) beside it, both with their versioned names. libhopbine.so is in DIRECTORY.
build_mpi_libraries() (
  local into=$1 variant common own name file with linker objects flags library lacking
  shift
  variant=$(mpi_variant) || return 1
  objects=$(mktemp -d)
  trap 'rm -r "$objects"' EXIT
  common=(mpi_functions init frees types names comms buffers sides serve call_cache movement reduction ordered pairs vector large intern)
  flags=(-std=gnu11 -fPIC -fvisibility=hidden -Iinclude "$@")
  # Without an MPI among what it needs, the library for programs that bring theirs takes theirs. The wrapper would add
  # its own; the compiler that it names does not: the words before the first flag for MPI's files.
  linker=$($MPICC -show 2>/dev/null | sed -E 's/ -([ILl]|Wl).*//') || linker=
  command -v "${linker%% *}" >/dev/null || linker=$MPICC
  # shellcheck disable=SC2086
  for name in hb mpi; do
    case $name in
      hb) own=(hb_calls fortran ../../sys/mpi/functions) ;;
      mpi) own=(requests lookup receives progress_thread complete starts creators retests mpi_calls own_functions) ;;
    esac
    own=("${common[@]}" "${own[@]}")
    for file in "${own[@]/#/capi/mpi/}"; do
      [ -f "$objects/${file##*/}.o" ] || $MPICC "${flags[@]}" -Wno-stringop-overflow -c "$file.c" -o "$objects/${file##*/}.o" || return 1
    done
    own=("${own[@]##*/}")
    own=("${own[@]/#/$objects/}")
    [ $name = hb ] && with=$MPICC || with=$linker
    library=$objects/libhopbine_$name.so
    $with -shared "$@" "${own[@]/%/.o}" "-Wl,-soname,libhopbine_$name.so.$hopbine_soversion" -o "$library" \
      -L"$into" -lhopbine "-Wl,-rpath,\$ORIGIN:\$ORIGIN/../.." -Wl,-z,lazy -ldl -lpthread || return 1
    # The linker takes any libhopbine.so, since MPI's functions are undefined, too; the loader finds out at a call.
    lacking=$(nm -D --undefined-only "$library" | grep -o '\bhopbine_.*' |
      grep -vxFf <(nm -D --defined-only "$into/libhopbine.so" | awk '{ print $3 }')) || true
    [ -z "$lacking" ] ||
      { echo "$into/libhopbine.so is of another source, without" $lacking": run ./install.sh without ONLY first" >&2; return 1; }
    install -Dm 755 "$library" "$into/hopbine/$variant/libhopbine_$name.so.$hopbine_version" || return 1
    link_names "$into/hopbine/$variant" "libhopbine_$name.so"
  done
)

# DIRECTORY FLAG...: builds libhopbine_preload.so there, with $CC: it belongs to no MPI.
build_preload_library() {
  local into=$1
  shift
  # shellcheck disable=SC2086 # it may have arguments
  ${CC:-cc} -std=gnu11 -fPIC -fvisibility=hidden -shared "$@" capi/preload/*.c -Wl,-soname,libhopbine_preload.so -Wl,--version-script=capi/preload/names.map -o "$into/libhopbine_preload.so" -ldl -lpthread
}

# The parts of the module hopbine_mpi, in the order in which they are compiled.
mpi_module=(hopbine_gaps hopbine_mpi_call hopbine_mpi_f08 hopbine_mpi_integer hopbine_mpi)

# DIRECTORY FLAG...: compiles that module with $MPIFC, and its part in C with $MPICC, into DIRECTORY, *.mod and *.o.
build_mpi_module() {
  local into=$1 name
  shift
  # shellcheck disable=SC2086
  $MPICC "$@" -c fortran/hopbine_gaps.c -o "$into/hopbine_gaps.o" || return 1
  for name in "${mpi_module[@]:1}"; do
    name=$(ls "$PWD/fortran/mpi/$name".[fF]90)
    # shellcheck disable=SC2086
    (cd "$into" && $MPIFC "$@" -c "$name") || return 1
  done
}
