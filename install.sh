#!/usr/bin/env bash
# Builds hopbine and installs it under PREFIX (default: /usr/local): the command, the C library
# (shared and static), headers, Fortran modules, pkg-config and CMake files.
#
#   ./install.sh                          without MPI
#   PREFIX=$HOME/hopbine ./install.sh
#   MPICC=mpicc MPIFC=mpifort ./install.sh     also what stands before this MPI: libhopbine_preload (for LD_PRELOAD)
#                                              and libhopbine_hb (HB_ calls, and their Fortran module)
#
# Any number of MPIs can follow each other in one place: lib/hopbine has what was built for each kind of them (abi,
# openmpi, mpich), of which libhopbine_preload takes what a program needs. lib/libhopbine_hb.so, the Fortran module and
# the command have the last one. MPICC may have arguments.
#
#   ONLY=doors MPICC=... ./install.sh          only what stands before this MPI, where the rest has been installed
#
# With MPICC the command is linked to that MPI, so that its mpirun can start ranks; MESSAGES=no leaves that out.
#
# EMULATOR=no leaves the emulated Tofu device out, which programs on a machine with Tofu do not need.
#
# Other variables: CC, FC (default: cc, gfortran if there is one; FC= installs no Fortran modules),
# CARGO_BUILD_TARGET (cross build), PROFILE (default: release), ALSO_BUILD (more arguments of cargo's).
# Modules of Fortran belong to one compiler: their sources are installed, too, under share/hopbine/fortran.
set -euo pipefail
cd "$(dirname "$0")"

if [ $# != 0 ]; then
  sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
prefix=${PREFIX:-/usr/local}
profile=${PROFILE:-release}
only=${ONLY:-all}
case $prefix in
/*) ;;
*) echo "install.sh: PREFIX must be an absolute path, not $prefix" >&2; exit 2 ;;
esac
case $only in
all) ;;
doors)
  [ -n "${MPICC:-}" ] && [ -e "$prefix/lib/libhopbine.so" ] ||
    { echo "install.sh: ONLY=doors needs MPICC, and $prefix with what ./install.sh installs" >&2; exit 2; } ;;
*) echo "install.sh: ONLY must be all or doors, not $only" >&2; exit 2 ;;
esac
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
fc=${FC-$(command -v gfortran || true)}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$PWD

# NAME OBJECT...: modules to include, and their objects as a static library.
install_modules() {
  local name=$1
  shift
  rm -f "$prefix/lib/lib$name.a"
  ar rcs "$prefix/lib/lib$name.a" "${@/#/$work/}"
  install -m 644 "$work"/*.mod "$prefix/include/"
}

install_all() {
  local features=() built module modules needs
  [ "${EMULATOR:-yes}" != no ] || features=(--no-default-features)
  if [ -n "${MPICC:-}" ] && [ "${MESSAGES:-yes}" != no ]; then
    export MPICC
    features+=(--features hopbine-cli/mpi)
  fi
  built=${CARGO_TARGET_DIR:-target}${CARGO_BUILD_TARGET:+/$CARGO_BUILD_TARGET}/$profile
  [ "$profile" != dev ] || built=${built%/dev}/debug
  # shellcheck disable=SC2086 # arguments
  cargo build --locked --profile "$profile" -p hopbine-capi -p hopbine-cli --lib --bin hopbine "${features[@]}" ${ALSO_BUILD:-}

  install -d "$prefix"/{bin,include,lib/pkgconfig,lib/cmake/hopbine,share/hopbine/fortran/mpi}
  install -m 755 "$built/hopbine" "$prefix/bin/hopbine"
  install -m 755 "$built/libhopbine_capi.so" "$prefix/lib/libhopbine.so.$version"
  ln -sfn "libhopbine.so.$version" "$prefix/lib/libhopbine.so.0"
  ln -sfn libhopbine.so.0 "$prefix/lib/libhopbine.so"
  install -m 644 "$built/libhopbine_capi.a" "$prefix/lib/libhopbine.a"
  install -m 644 include/*.h "$prefix/include/"
  install -m 644 fortran/*.f90 "$prefix/share/hopbine/fortran/"
  install -m 644 fortran/mpi/* "$prefix/share/hopbine/fortran/mpi/"

  if [ -n "$fc" ]; then
    modules=(hopbine_c_calls hopbine_c hopbine_base hopbine_calls hopbine_vector hopbine)
    for module in "${modules[@]}"; do (cd "$work" && "$fc" -O2 -fPIC -c "$root/fortran/$module.f90"); done
    install_modules hopbine_fortran "${modules[@]/%/.o}"
  else
    echo "install.sh: no Fortran compiler (FC): its modules are installed as sources only" >&2
  fi

  # The libraries that a static libhopbine needs. It has no MPI: programs bring theirs.
  needs="-lpthread -ldl -lm -lrt"
  cat >"$prefix/lib/pkgconfig/hopbine.pc" <<END
prefix=$prefix
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: hopbine
Description: MPI-style collectives along the links of a torus
Version: $version
Cflags: -I\${includedir}
Libs: -L\${libdir} -lhopbine -Wl,-rpath,\${libdir}
Libs.private: $needs
END
  cat >"$prefix/lib/pkgconfig/hopbine-fortran.pc" <<END
prefix=$prefix
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: hopbine-fortran
Description: hopbine's Fortran module
Version: $version
Requires: hopbine
Cflags: -I\${includedir}
Libs: -L\${libdir} -lhopbine_fortran
END
  sed "s/@VERSION@/$version/g; s|@NEEDS@|${needs// /;}|" capi/hopbine-config.cmake.in \
    >"$prefix/lib/cmake/hopbine/hopbine-config.cmake"
  sed "s/@VERSION@/$version/g" capi/hopbine-config-version.cmake.in \
    >"$prefix/lib/cmake/hopbine/hopbine-config-version.cmake"
}

install_doors() {
  local variant
  . capi/mpi/build.sh
  build_preload_library "$prefix/lib" -O2
  build_door_libraries "$prefix/lib" -O2
  install -m 755 capi/preload/hopbine-preload "$prefix/bin/hopbine-preload"
  variant=$(mpi_variant)
  ln -sfn "hopbine/$variant/libhopbine_hb.so" "$prefix/lib/libhopbine_hb.so"
  if [ -n "${MPIFC:-}" ]; then
    rm -f "$work"/*
    build_door_module "$work" -O2 -fPIC
    # shellcheck disable=SC2154 # of capi/mpi/build.sh
    install_modules hopbine_hb_fortran "${door_module[@]/%/.o}"
  fi
}

[ "$only" = doors ] || install_all
[ -z "${MPICC:-}" ] || install_doors
echo "hopbine $version is installed under $prefix"
