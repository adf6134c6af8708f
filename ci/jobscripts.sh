#!/usr/bin/env bash
# The job scripts: their options are read and their bodies run, by a stand-in for pjsub;
# and a linter looks at them and at the other scripts: shellcheck, where there is one.
#
#   ci/jobscripts.sh      seconds; test.sh runs this
#
# Exit code: 0 well, 1 something is wrong, 3 there is no shellcheck.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD failed=0
fail() { echo "$*" >&2; failed=1; }

for script in jobscripts/fugaku-*.sh; do
  grep -q '^# Needs: ' "$script" || fail "$script does not say what it needs"
  grep -q '^#PJM' "$script" || continue
  grep -q '^# Submit: pjsub' "$script" || fail "$script does not say how to submit it"
  [ "$script" != jobscripts/fugaku-build-native.sh ] || continue
  said=$(HOME=/nowhere ci/jobscripts/pjsub "$root/$script" 2>&1) || { fail "$script: $said"; continue; }
  [[ $said == *"llio_transfer of"* && $said == *"mpiexec of"* ]] || fail "$script runs nothing: $said"
  echo "$script: $(grep -c '^mpiexec of' <<<"$said") run(s) of ${said##*mpiexec of }"
done

# The stand-in refuses what the machine would refuse.
wrong=$(mktemp)
trap 'rm -f "$wrong"' EXIT
for change in 's/node=4x4x4:torus/node=4x4xfour/' 's/max-proc-per-node=1/max-proc-per-node=64/' \
  's/^#PJM -j/#PJM -Q/' 's/mpiexec -n 64/mpiexec -n 63/' '/elapse/d'; do
  sed "$change" jobscripts/fugaku-preload.sh >"$wrong"
  ! ci/jobscripts/pjsub "$wrong" >/dev/null 2>&1 || fail "the stand-in for pjsub takes a script after $change"
done

# The native build as far as it goes without a compute node: it calls install.sh with its compilers.
work=$(mktemp -d)
trap 'rm -rf "$wrong" "$work"' EXIT
printf '#!/bin/sh\necho "installs with $MPICC and $FC to $PREFIX"\n' >"$work/install.sh"
chmod +x "$work/install.sh"
said=$(PJSUB_DIR=$work HOME=/nowhere ci/jobscripts/pjsub "$root/jobscripts/fugaku-build-native.sh")
[ "$said" = "installs with mpifcc and frt to /nowhere/hopbine" ] || fail "the native build: $said"

# Slurm's script says what it needs, and how many ranks (ci/slurm.sh runs it).
grep -q '^# Submit: sbatch' jobscripts/slurm.sh || fail "slurm.sh does not say how to submit it"
for option in nodes ntasks-per-node time; do
  grep -q "^#SBATCH --$option=" jobscripts/slurm.sh || fail "slurm.sh does not say --$option"
done

if command -v shellcheck >/dev/null; then
  shellcheck -S warning jobscripts/*.sh ci/*.sh ci/jobscripts/pjsub install.sh test.sh || failed=1
else
  [ $failed = 0 ] || exit 1
  echo "ci/jobscripts.sh: there is no shellcheck" >&2
  exit 3
fi
exit $failed
