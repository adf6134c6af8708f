#!/usr/bin/env bash
# The job scripts: their options are read and their bodies run, by a stand-in for pjsub.
# Then every shell script that git tracks goes through shellcheck.
#
#   ci/jobscripts.sh      seconds; test.sh runs this
#
# Exit code: 0 well, 1 something is wrong, 3 there is no shellcheck.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD failed=0
fail() { echo "$*" >&2; failed=1; }

# A place with programs and an installation, whose files have the names of the real one.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
job=$work/job prefix=$work/home/hopbine
mkdir -p "$job" "$prefix"/{bin,lib/hopbine/openmpi}
# shellcheck source=/dev/null
. capi/mpi/build.sh
touch "$prefix/lib/libhopbine.so.${hopbine_version:?}" "$prefix"/lib/libhopbine_preload.so
link_names "$prefix/lib" libhopbine.so
for name in libhopbine_hb.so libhopbine_mpi.so; do
  touch "$prefix/lib/hopbine/openmpi/$name.$hopbine_version"
  link_names "$prefix/lib/hopbine/openmpi" "$name"
done
for name in libhopbine_hb.so{,".${hopbine_soversion:?}"}; do ln -s "hopbine/openmpi/$name" "$prefix/lib/$name"; done
cp capi/preload/hopbine-preload "$prefix/bin/"
for program in "$job/heat" "$job/a.out" "$prefix/bin/hopbine"; do
  printf '#!/bin/sh\necho "preloaded: $LD_PRELOAD; report: $HOPBINE_REPORT; threads: $OMP_NUM_THREADS"\n' >"$program"
  chmod +x "$program"
done

# SCRIPT [ARGUMENT]...: submits it.
submit() { HOME=$work/home PJSUB_DIR=$job SYSTEM_PRELOAD=/system/libpmix.so ci/jobscripts/pjsub "${@:2}" "$1" 2>&1; }
listed=(-g GROUP -x PJM_LLIO_GFSCACHE=/vol0003)

for script in jobscripts/fugaku-*.sh; do
  grep -q '^# Needs: ' "$script" || fail "$script does not say what it needs"
  grep -q '^#PJM' "$script" || continue
  # As its own line says, with volumes.
  how=$(sed -n 's/^# Submit: pjsub \(.*\) jobscripts.*/\1/p' "$script")
  [ "$how" = "-g GROUP -x PJM_LLIO_GFSCACHE=VOLUME" ] || fail "$script does not say how to submit it"
  [ "$script" != jobscripts/fugaku-build-native.sh ] || continue
  said=$(submit "$root/$script" "${listed[@]}") || { fail "$script: $said"; continue; }
  [[ $said == *"llio_transfer of"* && $said == *"mpiexec of"* ]] || fail "$script runs nothing: $said"
  echo "$script: $(grep -c '^mpiexec of' <<<"$said") run(s), $(sed -n 's/^mpiexec //p' <<<"$said" | tail -1)"
  case $script in *-sweep.sh | *-doctor.sh | *-tune.sh) continue ;; esac
  # What its header promises is where the header says, and not in a file for each rank.
  out=$(sed -n 's/^# Gives:  \([^ ]*\)JOBID.*/\1/p' "$script")
  ran=$(cat "$job/${out}1.out") || { fail "$script: there is no ${out}1.out"; continue; }
  [[ $ran == *"report: $job/hopbine-report.%j; threads: "[1-9]* ]] || fail "$script: $ran"
  [[ $ran == *"/system/libpmix.so"* ]] || fail "$script drops what the batch system preloads: $ran"
  [[ $script != *-preload.sh || $ran == *"libpmix.so:$(realpath "$prefix")/lib/libhopbine_preload.so;"* ]] ||
    fail "$script does not preload hopbine: $ran"
  rm -r "$job/${out}1.out" "$job"/output.*
done

# Where the user has no LD_LIBRARY_PATH, the script's has no empty element, which would be the working directory.
while IFS=: read -r script line; do
  path=$(unset LD_LIBRARY_PATH; eval "$line"; echo "$LD_LIBRARY_PATH")
  [ "$path" = "$prefix/lib" ] || fail "$script: LD_LIBRARY_PATH is $path"
done < <(grep '^export LD_LIBRARY_PATH=' jobscripts/*.sh)

# The stand-in refuses what the machine would refuse.
wrong=$work/wrong
for change in 's/node=4x6x4:torus/node=4x6xfour/' 's/max-proc-per-node=4/max-proc-per-node=64/' \
  's/^#PJM -j/#PJM -Q/' 's/mpiexec -n 384/mpiexec -n 383/' '/elapse/d' '/--purge/d' \
  's,"$prefix"/lib/libhopbine.so\*,"$prefix"/lib/libhopbine.so,' 's/^#PJM -j/#PJM -x PJM_LLIO_GFSCACHE=\/vol0004/'; do
  sed "$change" jobscripts/fugaku-preload.sh >"$wrong"
  ! cmp -s "$wrong" jobscripts/fugaku-preload.sh || fail "$change changes nothing"
  ! submit "$wrong" "${listed[@]}" >/dev/null || fail "the stand-in for pjsub takes a script after $change"
done
! submit "$root/jobscripts/fugaku-preload.sh" -g GROUP >/dev/null || fail "the stand-in takes a job without volumes"

# The native build as far as it goes without a compute node: it calls install.sh with its compilers.
printf '#!/bin/sh\necho "installs with $MPICC and $FC to $PREFIX"\n' >"$job/install.sh"
chmod +x "$job/install.sh"
said=$(submit "$root/jobscripts/fugaku-build-native.sh" "${listed[@]}")
[ "$said" = "installs with mpifcc and frt to $prefix" ] || fail "the native build: $said"

# Slurm's script says what it needs, and how many ranks (ci/slurm.sh runs it).
grep -q '^# Submit: sbatch' jobscripts/slurm.sh || fail "slurm.sh does not say how to submit it"
for option in nodes ntasks-per-node time; do
  grep -q "^#SBATCH --$option=" jobscripts/slurm.sh || fail "slurm.sh does not say --$option"
done

if command -v shellcheck >/dev/null; then
  mapfile -t scripts < <(git ls-files -z |
    xargs -0 awk 'FILENAME ~ /\.sh$/ || /^#!.*[\/ ](ba|da)?sh( |$)/ { print FILENAME } { nextfile }')
  [ ${#scripts[@]} -gt 50 ] || fail "only ${#scripts[@]} shell scripts were found"
  shellcheck -S warning "${scripts[@]}" || failed=1
else
  [ $failed = 0 ] || exit 1
  echo "ci/jobscripts.sh: there is no shellcheck" >&2
  exit 3
fi
exit $failed
