#!/usr/bin/env bash
# Slurm for as long as a command runs, on hosts of ci/cluster.sh: head controls, the others compute.
#
#   ci/slurm.sh [--hosts N] [COMMAND [ARGUMENT]...]
#
# Without a command: what ci/mpi.sh --build --long has built, by srun and sbatch; a minute.
# Needs Slurm and munge (Debian: slurm-wlm munge), as root.
# Exit code: 0 well, 1 something failed, 3 something is missing here.
set -euo pipefail
cd "$(dirname "$0")/.."

n=2
[ "${1:-}" != --hosts ] || { n=$2; shift 2; }
if [ -z "${CLUSTER_HOSTS:-}" ]; then
  for tool in slurmctld slurmd munged; do
    command -v $tool >/dev/null || { echo "ci/slurm.sh: there is no $tool" >&2; exit 3; }
  done
  [ "$(id -u)" = 0 ] || { echo "ci/slurm.sh: must be root" >&2; exit 3; }
  exec ci/cluster.sh "$n" ci/slurm.sh "$@"
fi

read -ra hosts <<<"$CLUSTER_HOSTS"
conf=/mnt/slurm
mkdir -p $conf/state
dd if=/dev/urandom of=$conf/munge.key bs=128 count=1 status=none
chmod 400 $conf/munge.key
cat >$conf/slurm.conf <<CONF
ClusterName=hosts
SlurmctldHost=head
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=/run/munge.socket
StateSaveLocation=$conf/state
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=$conf/slurmctld.log
SlurmdLogFile=$conf/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=1
MpiDefault=none
SwitchType=switch/none
SlurmdParameters=config_overrides
NodeName=h[1-${#hosts[@]}] CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$conf/slurm.conf
mount -t tmpfs none /run
munge="munged --key-file=$conf/munge.key --socket=/run/munge.socket --pid-file=/run/munged.pid --log-file=/run/munged.log --seed-file=/run/munged.seed --force"
$munge
slurmctld
for host in "${hosts[@]}"; do
  # More cores than there are: ranks give way to each other.
  $CLUSTER_AGENT "$host" "$munge && mkdir -p /run/slurmd && SLURM_CONF=$SLURM_CONF slurmd -N $host"
done
for _ in $(seq 100); do
  [[ $(sinfo -h -o %T 2>/dev/null) != idle ]] || break
  sleep 0.1
done
[[ $(sinfo -h -o %T) == idle ]] || { sinfo; tail $conf/*.log >&2; exit 3; }
[ $# = 0 ] || { "$@"; exit; }

# -- What ci/mpi.sh --build --long has built.
shopt -s nullglob
export HOPBINE_TIMEOUT=30 OMPI_MCA_btl_tcp_if_include=$CLUSTER_SUBNET OMPI_MCA_mpi_yield_when_idle=1
failed=0 ran=0
# NAME PATTERN COMMAND...: what the command prints must fit the pattern; its exit status is 0, or another one if $fails is
# yes. MPICH 4.0 over UCX's TCP hangs in
# its own MPI_Finalize more often than not, plain programs as well (ci/hosts.sh says how): with it,
# $ends is no, and a command that has printed what it should has two seconds more to end.
expect() {
  local name=$1 pattern=$2 started=$SECONDS job end status=0
  shift 2
  ran=$((ran + 1))
  : >$conf/said
  timeout -k 5 60 "$@" >$conf/said 2>&1 </dev/null &
  job=$!
  if [ $ends = no ]; then
    # shellcheck disable=SC2053
    while kill -0 $job 2>/dev/null && [[ $(<$conf/said) != $pattern ]]; do sleep 0.1; done
    end=$((SECONDS + 2))
    while kill -0 $job 2>/dev/null && [ $SECONDS -le $end ]; do sleep 0.1; done
    kill $job 2>/dev/null || true
  fi
  wait $job || status=$?
  # What hangs would keep the hosts from what comes next.
  [ -z "$(squeue -h)" ] || scancel --full --user=root
  for _ in $(seq 100); do
    [ -n "$(squeue -h)" ] || break
    sleep 0.1
  done
  # shellcheck disable=SC2053
  if [[ $(<$conf/said) == $pattern ]] && { [ $ends = no ] || ended_well $status; }; then
    printf '   %3s s  %s\n' "$((SECONDS - started))" "$name"
  else
    printf 'FAILED: %s (exit status %s)\n%s\n' "$name" "$status" "$(<$conf/said)"
    failed=1
  fi
}
# What has been ended by force has not refused anything.
ended_well() {
  case ${fails:-no}-$1 in no-0) ;; no-* | yes-0 | yes-124 | yes-137) false ;; esac
}
far=$((2 * (${#hosts[@]} - 1))) all=$((2 * ${#hosts[@]}))
target=$(realpath "${CARGO_TARGET_DIR:-target}")
for programs in "$target"/{openmpi,mpich}/programs; do
  [ -x "$programs/plain" ] || continue
  case $programs in *openmpi*) way=pmix ends=yes ;; *) way=pmi2 ends=no ;; esac
  every=(srun "--mpi=$way" -N "${#hosts[@]}" --ntasks-per-node=2)
  echo "== srun --mpi=$way"
  # Programs without MPI meet by themselves, on one host; on several they say what they need.
  expect "ranks of shared memory" "*allreduce 8*" srun "--mpi=$way" -N1 -n3 "$programs/plain" bench-rank allreduce 8 1
  HOPBINE_BACKEND=emu expect "ranks of the emulated device" "*allreduce 8*" \
    srun "--mpi=$way" -N1 -n3 "$programs/plain" bench-rank allreduce 8 1
  fails=yes expect "several hosts without MPI are refused" "*not all $all ranks are on this host*HOPBINE_RENDEZVOUS*" \
    "${every[@]}" "$programs/plain" bench-rank allreduce 8 1
  # Over MPI, and without the way by which MPI would meet.
  [ $way = pmix ] || fails=yes expect "ranks that MPI keeps apart are refused" "*$all ranks were started, but MPI sees 1*" \
    srun --mpi=none -N "${#hosts[@]}" --ntasks-per-node=2 "$programs/bin/hopbine" info
  expect "info" "*messages      shared memory with 1 rank, mpi with $far ranks, on ${#hosts[@]} hosts*" \
    "${every[@]}" "$programs/bin/hopbine" info
  expect "run on a torus" "*verified*yes*" \
    "${every[@]}" "$programs/bin/hopbine" run allreduce --torus "${#hosts[@]}x2" --bytes 64KiB --iterations 3
  expect "every collective by every algorithm" "*algorithms on $all ranks over mpi*" "${every[@]}" "$programs/mpi" matrix
  expect "the drop-in" "*messages: shared memory with 1 rank*allreduce*" \
    "${every[@]}" env LD_PRELOAD="$programs/libhopbine_preload.so" HOPBINE_REPORT=1 "$programs/heat" 20 20
  # The job script, as it is but for the numbers of hosts and ranks.
  work=$(mktemp -d -p "$target")
  mkdir "$work/lib"
  ln -s "$programs"/*.so* "$work/lib/"
  cp "$programs/heat-hb" "$work/heat"
  cp "$programs/heat" "$work/heat-mpi"
  # With MPICH only the first program: it may hang at its end.
  [ $way = pmix ] || rm "$work/heat-mpi"
  # `sbatch --wait` looks rarely.
  ends=no
  # shellcheck disable=SC2016
  expect "the job script, by sbatch" "*$([ $way = pmix ] && echo 'cells*')cells*" bash -c '
    touch "$2/out"
    sbatch --wait --nodes="$1" --ntasks-per-node=2 -D "$2" --output=out --export=ALL,HOPBINE_PREFIX="$2",SRUN_MPI="$3" \
      jobscripts/slurm.sh &
    tail --pid=$! -n +1 -f "$2/out"' job "${#hosts[@]}" "$work" "$way"
  rm -rf "$work"
done
[ $ran != 0 ] || { echo "ci/slurm.sh needs: ci/mpi.sh --build --long" >&2; exit 3; }
exit $failed
