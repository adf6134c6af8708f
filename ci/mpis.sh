#!/usr/bin/env bash
# What stands before MPI, under the MPIs of today: installs hopbine with all three kinds that libhopbine_preload.so
# chooses from, and runs programs with it and without; what passes without it must pass with it.
#
#   ci/mpis.sh [-c CHECKS] [MPI]...
#
#   -c  of rust,programs,fortran,hb,mpi4py,imb,osu,suite, with commas; all
#   MPI of openmpi5, mpich5, mpich5-abi, intel, intel-abi; all. Also given, as MPICC and MPIEXEC say (ci/mpi/launch.sh)
#
# programs: ours (capi/tests/mpi); fortran: those in Fortran, by each interface that the MPI has for the compiler
# here; hb: one with HB_ calls, as pkg-config says; rust: sys/mpi/tests; mpi4py: its own tests; imb: Intel's
# benchmarks, which come with its MPI and also run with MPICH; osu: OSU's benchmarks with validation, whose source
# $OSU_SOURCE names; suite: MPICH's collective tests (ci/mpi-suite.sh).
#
# Exit code: 0 well, 1 something fails only with hopbine, 3 something cannot be done here, which is named.
# shellcheck disable=SC2154 # use_mpi sets mpi
set -euo pipefail
cd "$(dirname "$0")/.."
checks=rust,programs,fortran,hb,mpi4py,imb,osu,suite
if [ "${1:-}" = -c ]; then
  checks=${2:?checks}
  shift 2
fi
[ $# != 0 ] || set -- openmpi5 mpich5 mpich5-abi intel intel-abi
export MPIS=${MPIS:-$PWD/target/mpis}
ci/mpi/wheels.sh -d "$MPIS" || { [ $? = 1 ] || exit 3; }
# shellcheck source=/dev/null
. ci/mpi/launch.sh

prefix=$MPIS/hopbine out=$MPIS/out
mkdir -p "$out"
preload=$prefix/lib/libhopbine_preload.so
log() { "$@" >"$out/log" 2>&1 || { cat "$out/log" >&2; return 1; }; }
log env -u MPICC PREFIX="$prefix" FC= PROFILE="${PROFILE:-release}" ./install.sh
# A library for each kind, each by the first MPI here that has it; not those of another run.
rm -rf "$prefix/lib/hopbine"
for builder in openmpi5 mpich5 mpich5-abi intel "$@"; do
  (
    use_mpi "$builder" || exit 0
    . capi/mpi/build.sh
    variant=$(mpi_variant)
    [ -e "$prefix/lib/hopbine/$variant" ] || log env ONLY=doors PREFIX="$prefix" MPIFC= ./install.sh
  )
done
ls "$prefix/lib/hopbine"
# Intel's compiler, whose kind MPICH's has built, installs all in another place.
intels=$MPIS/hopbine-intel
[[ " $* " != *" intel "* ]] ||
  (use_mpi intel || exit 0; log env PREFIX="$intels" FC= PROFILE="${PROFILE:-release}" ./install.sh)

failed=0 missing=()
# NAME SECONDS RANKS PROGRAM ...: whether it ends well, with hopbine and without; FILTER keeps of its output what must
# be the same, and must keep something.
both() {
  local name=$1 seconds=$2 filter=$3 a b
  shift 3
  if ! a=$(launch_within "$seconds" "$@" 2>&1 | $filter); then
    echo "$mpi: $name fails without hopbine, too"
    return
  fi
  b=$(export LD_PRELOAD=$preload; launch_within "$seconds" "$@" 2>&1 | $filter) || b+=" FAILED"
  if [ -z "$a" ] || [ "$a" != "$b" ]; then
    printf 'ONLY WITH HOPBINE: %s: %s\n-- without\n%s\n-- with\n%s\n' "$mpi" "$name" "$a" "$b"
    failed=1
  else
    echo "$mpi: $name: the same"
  fi
}

# Without hopbine these fail with some MPIs, whose errors they make on purpose: with it they must be right.
check_programs() {
  local n program said except
  for program in calls requests mixed orders looks threads groups; do
    $MPICC -std=gnu11 -O1 -w -Iinclude "capi/tests/mpi/$program.c" -o "$out/$program-$mpi" -lpthread || return 1
    for n in 2 4; do
      said=$(export LD_PRELOAD=$preload HOPBINE_REPORT=1; launch_within 100 $n "$out/$program-$mpi" 2>&1) || said+=" FAILED"
      if [[ $said == *FAILED || $said != *"hopbine report: "* ]]; then
        printf 'FAILED: %s: %s on %s ranks\n%s\n' "$mpi" "$program" "$n" "$said"
        failed=1
      else
        echo "$mpi: $program on $n ranks: well"
      fi
    done
  done
  # Persistent collectives are served, whatever version the header says.
  said=$(export LD_PRELOAD=$preload HOPBINE_REPORT=1; launch_within 100 2 "$out/requests-$mpi" persistent 2>&1) || said+=" FAILED"
  [[ $said == *allreduce_init* && $said != *FAILED && $said != *"MPI_Allreduce_init "* ]] ||
    { printf 'FAILED: %s: persistent requests\n%s\n' "$mpi" "$said"; failed=1; }
  said=$(export LD_PRELOAD=$preload; launch_within 100 3 "$out/mixed-$mpi" persistent 2>&1) ||
    { printf 'FAILED: %s: persistent requests in lists\n%s\n' "$mpi" "$said"; failed=1; }
  # The report has calls with lists by their size, served or not.
  $MPICC -std=gnu11 -O1 -w -Iinclude capi/tests/mpi/sizes.c -o "$out/sizes-$mpi" || return 1
  for except in scan alltoallv,allgatherv,gatherv,scatterv,reduce_scatter,requests; do
    said=$(export LD_PRELOAD=$preload HOPBINE_REPORT=1 HOPBINE_EXCEPT=$except; launch_within 100 2 "$out/sizes-$mpi" 2>&1) || said+=" FAILED"
    [[ $said != *FAILED && $(grep -c ' <= 512 B ' <<<"$said") = 6 && $said != *" 0 B "* ]] ||
      { printf 'FAILED: %s: sizes in the report, without %s\n%s\n' "$mpi" "$except" "$said"; failed=1; }
  done
  # A library that has nothing for this MPI.
  mkdir -p "$out/alone"
  cp "$preload" "$out/alone/"
  said=$(export LD_PRELOAD=$out/alone/libhopbine_preload.so; launch_within 100 2 "$out/sizes-$mpi" 2>&1) || said+=" FAILED"
  if [[ $said == *FAILED || $(grep -c '^hopbine: the program has .*: MPI serves all calls' <<<"$said") != 1 ]]; then
    printf 'FAILED: %s: nothing is there for this MPI\n%s\n' "$mpi" "$said"
    failed=1
  fi
}

# Without the wrapper, or a module that the compiler can read, it cannot be done here.
check_fortran() {
  local fc=$MPIS/$mpi/bin/mpif90 flags=(-O1 -w -fallow-argument-mismatch -cpp) modules interface program n said
  [ "$mpi" != given ] || fc=$MPIFC
  command -v "${fc%% *}" >/dev/null || { missing+=("$mpi: Fortran, for which it has no compiler wrapper"); return 0; }
  [ "$mpi" != intel ] || command -v gfortran >/dev/null || { missing+=("$mpi: Fortran, without gfortran"); return 0; }
  # Intel's wrapper looks for them where its wheel does not have them.
  for modules in "$MPIS/$mpi/include/mpi/gfortran/$(gfortran -dumpversion)".*; do
    [ ! -e "$modules/mpi.mod" ] || flags+=("-I$modules")
  done
  for interface in mpif mpi mpi_f08; do
    printf 'use %s\nend\n' $interface >"$out/uses.f90"
    if [ $interface != mpif ] && ! $fc "${flags[@]}" -fsyntax-only "$out/uses.f90" >"$out/log" 2>&1; then
      missing+=("$mpi: Fortran's module $interface, which $($fc --version | head -n 1) cannot read")
      continue
    fi
    for program in calls mixed; do
      $fc "${flags[@]}" -DUSE_$interface "capi/tests/mpi/$program.f90" -o "$out/$program-f-$mpi" || return 1
      for n in 2 4; do
        said=$(export LD_PRELOAD=$preload HOPBINE_REPORT=1; launch_within 100 $n "$out/$program-f-$mpi" 2>&1) || said+=" FAILED"
        if [[ $said != *"all correct"* || $said == *FAILED || $said != *"served by"*"allreduce "* ]]; then
          printf 'FAILED: %s: Fortran, %s by %s on %s ranks\n%s\n' "$mpi" $program $interface $n "$said"
          failed=1
        else
          echo "$mpi: Fortran, $program by $interface on $n ranks: well"
        fi
      done
    done
  done
}

# PROGRAM: the MPI libraries that it finds.
mpis_of() { ldd "$1" | sed -n 's/.*libmpi[_a-z]*\.so[.0-9]* => \([^ ]*\) .*/\1/p'; }

# HB_ calls, in shared memory and by messages of the program's own MPI, whose library is the only one there.
check_hb() {
  local kind said how plain
  kind=$prefix/lib/hopbine/$(. capi/mpi/build.sh && mpi_variant) || return 1
  local flags
  read -ra flags <<<"$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs hopbine-hb)"
  $MPICC -std=gnu11 -O1 -w examples/mpi/heat.c "-L$kind" "${flags[@]}" "-Wl,-rpath,$kind:$prefix/lib" -lm -o "$out/hb-$mpi" || return 1
  $MPICC -std=gnu11 -O1 -w -Iinclude capi/tests/mpi/late.c -o "$out/late-$mpi" || return 1
  plain=$(mpis_of "$out/late-$mpi") said=$(mpis_of "$out/hb-$mpi")
  [[ $plain && $said == "$plain" && $said != *$'\n'* ]] || { printf 'FAILED: %s: HB_ calls find other MPIs than %s: %s\n' "$mpi" "$plain" "$said"; failed=1; }
  for how in auto mpi; do
    said=$(export HOPBINE_REPORT=1 HOPBINE_BACKEND=$how; [ $how = auto ] || export HOPBINE_SHM=off; launch_within 100 2 "$out/hb-$mpi" 24 24 2>&1) || said+=" FAILED"
    [[ $said == *"24 steps: heat "* && $said == *$'\nallreduce '*"<= 8 B"* && $said != *FAILED ]] &&
      echo "$mpi: HB_ calls, backend $how: served" ||
      { printf 'FAILED: %s: HB_ calls, %s\n%s\n' "$mpi" "$how" "$said"; failed=1; }
  done
}

check_rust() {
  [ "$mpi" != intel-abi ] || { missing+=("$mpi: sys/mpi/tests, which mpich5-abi's compiler builds"); return 0; }
  local built program
  built=$(cargo build --quiet --profile "${PROFILE:-release}" -p hopbine-mpi --features linked --test mpi \
    --message-format=json-render-diagnostics) || { failed=1; return 0; }
  program=$(sed -n 's/.*"executable":"\([^"]*\/mpi-[^"]*\)".*/\1/p' <<<"$built")
  cp "$program" "$out/mpi-$mpi"
  local said how
  for how in matrix "own multiple"; do
    # shellcheck disable=SC2086
    said=$(export HOPBINE_BACKEND=mpi HOPBINE_SHM=off; launch_within 200 2 "$out/mpi-$mpi" $how 2>&1) ||
      { printf 'FAILED: %s: %s over messages of MPI\n%s\n' "$mpi" "$how" "$said"; failed=1; continue; }
    echo "$mpi: $how over messages of MPI: $(tail -n 1 <<<"$said")"
  done
}

# Test by test: what passes without hopbine on a rank passes on it with hopbine, whatever else its MPI fails at. Each
# module has processes of its own, for some MPIs end them in the middle. Where MPI has no MPIX_Comm_iagree, mpi4py makes
# one of MPI_Iallreduce, which testIAgree calls before a barrier on one rank and after it on others: MPI forbids that.
check_mpi4py() {
  # It finds its MPI at run time, and has it for itself.
  local python=$MPIS/${mpi%-abi}/bin/python tests modules module n=0 how try rank status lost ends
  [[ $mpi != *-abi && $mpi != given ]] || { missing+=("$mpi: mpi4py, which chooses its MPI itself"); return 0; }
  local forbidden='\.testIAgree$'
  [ "$launcher" != openmpi ] || forbidden='^$'
  tests=$out/mpi4py-4.1.1/test
  if [ ! -d "$tests" ]; then
    (cd "$out" && CFLAGS="-O0 -g0" "$python" -m pip download -q --no-deps --no-binary :all: mpi4py==4.1.1 && tar xf mpi4py-4.1.1.tar.gz) ||
      { missing+=("$mpi: mpi4py's sources"); return 0; }
  fi
  local at=$out/mpi4py-$mpi
  mkdir -p "$at"
  modules=("$tests"/test_*.py)
  for module in "${modules[@]}"; do
    module=$(basename "$module" .py)
    case $module in test_spawn | test_dynproc | test_toplevel) continue ;; esac
    rm -f "$at/$module".{with,without}.*
    ends=''
    for how in without with; do
      # Open MPI 5's launcher now and then starts nothing.
      for try in 1 2; do
        status=0
        (
          [ $how = without ] || export LD_PRELOAD=$preload
          launch_within 300 2 "$python" capi/tests/mpi/third/each_test.py "$tests" "$at/$module.$how" "$module"
        ) >"$at/$module.$how.log" 2>&1 || status=$?
        [ $status = 124 ] && [ ! -e "$at/$module.$how.0" ] && [ $try = 1 ] || break
      done
      ends+=" $status"
    done
    lost=
    for rank in 0 1; do
      touch "$at/$module".{with,without}.$rank
      n=$((n + $(wc -l <"$at/$module.without.$rank")))
      lost+=$(comm -23 <(sort "$at/$module.without.$rank") <(sort "$at/$module.with.$rank") | grep -v "$forbidden" || true)
    done
    if [ "$ends" = " 124 124" ]; then
      echo "NOT COMPARED: $mpi: mpi4py's $module does not end in time, with hopbine and without"
    elif [ -n "$lost" ] || [[ $ends == " 0 "[1-9]* ]]; then
      printf 'ONLY WITH HOPBINE: %s: %s ends with%s without and with it; fail:\n%s\n' "$mpi" "$module" "$ends" "$lost"
      tail -n 40 "$at/$module.with.log"
      failed=1
    elif [ "$ends" != " 0 0" ]; then
      echo "$mpi: mpi4py's $module ends with$ends without and with hopbine"
    fi
  done
  # Of two ranks.
  echo "$mpi: mpi4py: $n tests of two ranks pass without hopbine"
  [ $n -ge 2000 ] || { printf 'FAILED: %s: too few tests of mpi4py ran\n' "$mpi"; failed=1; }
}

sizes() { grep -aE '^ +[0-9]+ +[0-9]+ +[0-9.]+|^# Benchmarking' | awk '{ print /^#/ ? $0 : $1 }'; }
check_imb() {
  local imb=$MPIS/intel/bin/IMB
  case $mpi in openmpi5 | *-abi | given) missing+=("$mpi: IMB, which is built for MPICH's libraries"); return 0 ;; esac
  [ -x "$imb-MPI1" ] || { missing+=("$mpi: IMB, which comes with Intel's MPI"); return 0; }
  # With MPICH's library in place of Intel's.
  local libraries=$MPIS/$mpi/lib
  both "IMB-MPI1" 900 sizes 2 env LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$imb-MPI1" -msglog 14 -iter 100 -npmin 2 \
    Allreduce Reduce Reduce_scatter Reduce_scatter_block Allgather Allgatherv Gather Gatherv Scatter Scatterv Alltoall Alltoallv Bcast Barrier
  both "IMB-NBC" 900 sizes 2 env LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$imb-NBC" -msglog 12 -iter 50 -npmin 2 \
    Iallreduce Ireduce Ireduce_scatter Iallgather Iallgatherv Igather Igatherv Iscatter Iscatterv Ialltoall Ialltoallv Ibcast Ibarrier
}

# Lines with a size, and whether it was right.
validated() { awk '/^[0-9]+ / { print $1, $NF } /Pass|Fail/ && !/^[0-9]/ { print }'; }
check_osu() {
  local at=$out/osu-$mpi program n
  [ -n "${OSU_SOURCE:-}" ] || { missing+=("$mpi: OSU's benchmarks (OSU_SOURCE)"); return 0; }
  if [ ! -d "$at" ]; then
    mkdir -p "$at"
    (cd "$at" && log "$(realpath "$OSU_SOURCE")/configure" CC="$MPICC" CXX="$MPICC" && log make -k -j2) || true
  fi
  local programs
  mapfile -t programs < <(find "$at" -path '*collective*' -type f -perm -u+x -name 'osu_*' ! -name '*.la')
  # A release has about 40.
  [ ${#programs[@]} -ge 10 ] || { echo "FAILED: $mpi: only ${#programs[@]} of OSU's programs are built"; failed=1; }
  for program in "${programs[@]}"; do
    for n in 2 4; do both "$(basename "$program") on $n ranks" 300 validated "$n" "$program" -c -m 1:65536 -i 20 -x 5; done
  done
}

check_suite() {
  local status=0
  BUILD_DIR=$MPIS/suite ci/mpi-suite.sh "$mpi" "$prefix" || status=$?
  case $status in
    0) ;;
    3) missing+=("$mpi: MPICH's tests") ;;
    *) failed=1 ;;
  esac
}

for name; do
  if ! (use_mpi "$name"); then
    missing+=("$name")
    continue
  fi
  # Each in a shell of its own: what an MPI needs in the environment the next one must not have.
  (
    use_mpi "$name"
    for check in ${checks//,/ }; do
      echo "== $mpi: $check"
      "check_$check" || failed=1
    done
    if [ "$mpi" = intel ]; then
      prefix=$intels preload=$intels/lib/libhopbine_preload.so
      for check in programs hb; do
        [[ ,$checks, != *,$check,* ]] || { echo "== $mpi, installed by its compiler: $check"; "check_$check" || failed=1; }
      done
    fi
    [ ${#missing[@]} = 0 ] || printf '%s\n' "${missing[@]}" >>"$out/missing"
    exit $failed
  ) || failed=1
done
if [ -s "$out/missing" ]; then mapfile -t -O "${#missing[@]}" missing <"$out/missing"; rm "$out/missing"; fi
for what in "${missing[@]}"; do
  echo "NOT RUN: $what"
  [ -z "${HOPBINE_TEST_SKIPPED:-}" ] || echo "today's MPIs: $what" >>"$HOPBINE_TEST_SKIPPED"
done
[ $failed = 0 ] || exit 1
# Without what comes from nowhere by a package manager it is well; without an MPI it is not.
for name; do [[ " ${missing[*]} " != *" $name "* ]] || exit 3; done
