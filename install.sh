#!/usr/bin/env bash
# Builds hopbine and installs it under PREFIX (default: /usr/local): the command with its man pages and completions,
# the C library (shared and static), headers, Fortran modules, pkg-config and CMake files, the emulated Tofu device as
# a C library.
#
#   ./install.sh                          without MPI
#   PREFIX=$HOME/hopbine ./install.sh
#   MPICC=mpicc MPIFC=mpifort ./install.sh     also what stands before this MPI: libhopbine_preload (for LD_PRELOAD)
#                                              and libhopbine_hb (HB_ calls, and their Fortran module)
#
# Any number of MPIs can follow each other in one place: lib/hopbine/KIND has what was built for each kind of them (abi,
# openmpi, mpich), of which libhopbine_preload takes what a program needs. libhopbine_hb.so and the Fortran module also
# are in lib and include, for one of them, since programs are linked to them. MPICC, MPIFC, CC and FC may have arguments.
#
#   ONLY=doors MPICC=... ./install.sh          only what stands before this MPI, where the rest has been installed;
#                                              another MPI's libhopbine_hb.so and Fortran module stay
#
# With MPICC the command is linked to that MPI, so that its mpirun can start ranks; MESSAGES=no leaves that out.
#
# EMULATOR=no leaves the emulated Tofu device out, which programs on a machine with Tofu do not need.
#
# Everybody may read what is installed, whatever the umask is.
#
# Packagers: DESTDIR is put before every path that is written, LIBDIR is where libraries go (default: PREFIX/lib; a
# path below PREFIX). The cargo build takes the versions of Cargo.lock.
#
# Other variables: CC, FC (default: cc, gfortran if there is one; FC= installs no Fortran modules),
# CARGO_BUILD_TARGET (cross build), PROFILE (default: release), ALSO_BUILD (more arguments of cargo's).
# Modules of Fortran belong to one compiler: their sources are installed, too, under share/hopbine/fortran.
set -euo pipefail
cd "$(dirname "$0")"
umask 022

if [ $# != 0 ]; then
  sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
# shellcheck source=/dev/null
. capi/mpi/build.sh
without_slash() { sed -E 's|(.)/+$|\1|' <<<"$1"; }
prefix=$(without_slash "${PREFIX:-/usr/local}")
libdir=$(without_slash "${LIBDIR:-$prefix/lib}")
profile=${PROFILE:-release}
only=${ONLY:-all}
case $prefix in
*[[:space:]:]*) echo "install.sh: PREFIX must have no spaces and colons, which separate names in LD_PRELOAD: $prefix" >&2; exit 2 ;;
/*) ;;
*) echo "install.sh: PREFIX must be an absolute path, not $prefix" >&2; exit 2 ;;
esac
[ "$(realpath -m "$prefix")" != "$PWD" ] ||
  { echo "install.sh: PREFIX must be another directory than this one, the source" >&2; exit 2; }
case $libdir in
*[[:space:]:]*) echo "install.sh: LIBDIR must have no spaces and colons: $libdir" >&2; exit 2 ;;
"$prefix"/*) ;;
*) echo "install.sh: LIBDIR must be a path below PREFIX ($prefix), not $libdir" >&2; exit 2 ;;
esac
case ${DESTDIR:=} in
/* | '') ;;
*) echo "install.sh: DESTDIR must be an absolute path, not $DESTDIR" >&2; exit 2 ;;
esac
# Where files go now.
to=$DESTDIR$prefix lib=$DESTDIR$libdir
case $only in
all) ;;
doors)
  [ -n "${MPICC:-}" ] && [ -e "$lib/libhopbine.so" ] ||
    { echo "install.sh: ONLY=doors needs MPICC, and $lib with what ./install.sh installs" >&2; exit 2; } ;;
*) echo "install.sh: ONLY must be all or doors, not $only" >&2; exit 2 ;;
esac
fc=${FC-$(command -v gfortran || true)}
variant=${MPICC:+$(mpi_variant)}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$PWD

# LIBRARY DIRECTORY OBJECT...: modules to DIRECTORY, and their objects as a static library.
install_modules() {
  local library=$1 modules=$2
  shift 2
  rm -f "$library"
  ar rcs "$library" "${@/#/$work/}"
  install -m 644 "$work"/*.mod "$modules"
}

# FILE NAME: a shared library, by its version.
install_shared() {
  install -m 755 "$1" "$lib/$2.${hopbine_version:?}"
  link_names "$lib" "$2"
}

# NAME DESCRIPTION LIBS [LINE]...: a file for pkg-config. No run path: distributions do not want one, and programs in
# other places add -Wl,-rpath,$(pkg-config --variable=libdir hopbine).
install_pc() {
  local name=$1 description=$2 libs=$3 headers=${headers:-}
  shift 3
  install -d "$lib/pkgconfig"
  {
    printf '%s\n' "prefix=$prefix" "libdir=\${prefix}${libdir#"$prefix"}" "includedir=\${prefix}/include$headers" "" \
      "Name: $name" "Description: $description" "Version: $hopbine_version" "$@" \
      "Cflags: -I\${includedir}" "Libs: -L\${libdir} $libs"
  } >"$lib/pkgconfig/$name.pc"
}

# The command's man pages and completions, which it writes itself: with HOPBINE, where it was built for another machine.
install_pages() {
  local hopbine=${HOPBINE:-$to/bin/hopbine} share=$to/share
  if [ -n "${CARGO_BUILD_TARGET:-}" ] && [ -z "${HOPBINE:-}" ]; then
    echo "install.sh: no man pages and completions: the command runs elsewhere (HOPBINE names one that runs here)" >&2
    return
  fi
  install -d "$share"/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}
  "$hopbine" generate man -o "$share/man/man1"
  "$hopbine" generate bash -o "$share/bash-completion/completions/hopbine"
  "$hopbine" generate zsh -o "$share/zsh/site-functions/_hopbine"
  "$hopbine" generate fish -o "$share/fish/vendor_completions.d/hopbine.fish"
}

install_all() {
  local features=() built module modules needs packages=(-p hopbine-capi -p hopbine-cli)
  if [ "${EMULATOR:-yes}" = no ]; then
    features+=(--no-default-features)
  else
    packages+=(-p utofu-emu-capi)
  fi
  if [ -n "${MPICC:-}" ] && [ "${MESSAGES:-yes}" != no ]; then
    export MPICC
    features+=(--features hopbine-cli/mpi)
  fi
  # Cargo says where the command is, and the libraries with it: variables and files of cargo's choose the directory.
  # shellcheck disable=SC2086 # arguments
  built=$(cargo build --locked --profile "$profile" "${packages[@]}" --lib --bin hopbine "${features[@]}" ${ALSO_BUILD:-} \
    --message-format=json-render-diagnostics | sed -n 's|.*"executable":"\([^"]*\)/hopbine".*|\1|p')

  install -d "$to"/{bin,include,share/hopbine/fortran/mpi,share/doc/hopbine} "$lib/cmake/hopbine"
  install -m 755 "$built/hopbine" "$to/bin/hopbine"
  install_shared "$built/libhopbine_capi.so" libhopbine.so
  install -m 644 "$built/libhopbine_capi.a" "$lib/libhopbine.a"
  install -m 644 include/*.h "$to/include/"
  install -m 644 fortran/*.* "$to/share/hopbine/fortran/"
  install -m 644 fortran/mpi/* "$to/share/hopbine/fortran/mpi/"
  install -m 644 LICENSE-* README.md CHANGELOG.md "$to/share/doc/hopbine/"
  install_pages

  if [ -n "$fc" ]; then
    modules=(hopbine_c_calls hopbine_c hopbine_base hopbine_calls hopbine_vector hopbine)
    # shellcheck disable=SC2086 # it may have arguments
    for module in "${modules[@]}"; do (cd "$work" && $fc -O2 -fPIC -c "$root/fortran/$module.f90"); done
    # shellcheck disable=SC2086
    ${CC:-cc} -O2 -fPIC -c fortran/hopbine_gaps.c -o "$work/hopbine_gaps.o"
    install_modules "$lib/libhopbine_fortran.a" "$to/include" hopbine_gaps.o "${modules[@]/%/.o}"
    install_pc hopbine-fortran "hopbine's Fortran module" -lhopbine_fortran "Requires: hopbine"
  else
    echo "install.sh: no Fortran compiler (FC): its modules are installed as sources only" >&2
  fi

  # The libraries that a static libhopbine needs. It has no MPI: programs bring theirs.
  needs="-lpthread -ldl -lm -lrt"
  install_pc hopbine "MPI-style collectives along the links of a torus" -lhopbine "Libs.private: $needs"
  sed "s|@NEEDS@|${needs// /;}|; s|@PREFIX@|$(realpath -ms --relative-to="$libdir/cmake/hopbine" "$prefix")|
    s|@LIBDIR@|${libdir#"$prefix/"}|; s/@VERSION@/$hopbine_version/; s/@SOVERSION@/${hopbine_soversion:?}/" \
    capi/hopbine-config.cmake.in >"$lib/cmake/hopbine/hopbine-config.cmake"
  sed "s/@VERSION@/$hopbine_version/g" capi/hopbine-config-version.cmake.in \
    >"$lib/cmake/hopbine/hopbine-config-version.cmake"

  if [ "${EMULATOR:-yes}" != no ]; then
    # In a directory of their own: a machine with Tofu has its own utofu.h.
    install -d "$to/include/hopbine"
    install -m 644 sys/include/*.h "$to/include/hopbine/"
    install -m 755 "$built/libtofucom_emu.so" "$lib/libtofucom_emu.so"
    headers=/hopbine install_pc tofucom_emu "The emulated Tofu device, with uTofu's functions" -ltofucom_emu
  fi
}

install_mpi_libraries() {
  local name own=$lib/hopbine/$variant
  install -d "$to/bin"
  build_mpi_libraries "$lib" -O2
  build_preload_library "$lib" -O2
  sed "s|/\.\./lib/|/../${libdir#"$prefix/"}/|" capi/preload/hopbine-preload >"$work/hopbine-preload"
  install -m 755 "$work/hopbine-preload" "$to/bin/hopbine-preload"
  install -Dm 644 capi/preload/hopbine-preload.1 -t "$to/share/man/man1"
  if [ -n "${MPIFC:-}" ]; then
    rm -f "$work"/*
    build_mpi_module "$work" -O2 -fPIC
    # shellcheck disable=SC2154 # of capi/mpi/build.sh
    install_modules "$own/libhopbine_hb_fortran.a" "$own" "${mpi_module[@]/%/.o}"
  fi
  if [ "$only" = doors ] && [ -e "$lib/libhopbine_hb.so" ] &&
    [ "$(readlink "$lib/libhopbine_hb.so")" != "hopbine/$variant/libhopbine_hb.so" ]; then
    echo "install.sh: HB_ calls: $libdir/libhopbine_hb.so stays $(readlink "$lib/libhopbine_hb.so"), for programs that are" \
      "linked to it, and so does its Fortran module; with this MPI, take both from $libdir/hopbine/$variant" >&2
    return
  fi
  for name in libhopbine_hb.so{,".$hopbine_soversion"}; do ln -sfn "hopbine/$variant/$name" "$lib/$name"; done
  install_pc hopbine-hb "HB_ calls beside MPI, served by hopbine" -lhopbine_hb "Requires: hopbine"
  if [ -n "${MPIFC:-}" ]; then
    install -m 644 "$own/libhopbine_hb_fortran.a" "$lib/"
    install -m 644 "$own"/*.mod "$to/include/"
    install_pc hopbine-hb-fortran "The Fortran module of HB_ calls" -lhopbine_hb_fortran "Requires: hopbine-hb"
  fi
}

[ "$only" = doors ] || install_all
[ -z "${MPICC:-}" ] || install_mpi_libraries
echo "hopbine $hopbine_version is installed under $to"
