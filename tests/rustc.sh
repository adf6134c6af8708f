#!/bin/sh
# Cargo's RUSTC_WORKSPACE_WRAPPER, for test.sh: rustc, with the command (src/main.rs) and unit tests
# (src/lib.rs with --test) as they are. Optimising these takes longer than what they save, and cargo has
# no options for one target of a package. The proofs of torus/src are what computes in its tests.
#
#   tests/rustc.sh RUSTC [ARGUMENT]...
case " $* " in
  *\ torus/src/lib.rs\ *) ;;
  *src/main.rs\ * | *src/lib.rs\ *\ --test\ *)
    n=$#
    while [ "$n" != 0 ]; do
      case $1 in
        opt-level=*) set -- "$@" opt-level=0 ;;
        *) set -- "$@" "$1" ;;
      esac
      shift
      n=$((n - 1))
    done
    ;;
esac
exec "$@"
