#!/usr/bin/env bash
# Ranks on several hosts, under both MPIs: every collective by every algorithm, the C and Fortran examples
# and an unmodified program, equal to pure MPI; what is said of hosts and wires; ranks that die on another
# host, and a host that is cut off. The hosts are ci/cluster.sh's. By hand; four minutes, after
#
#   ci/mpi.sh --build --long
#   ci/hosts.sh [openmpi] [mpich]
#
# Exit code: 0 well, 1 something failed, 3 there can be no hosts here, or nothing was built.
#
# MPICH 4.0 over UCX's TCP hangs in its own MPI_Finalize now and then: on three hosts the heat example
# did so in 6 of 10 runs without hopbine, in 3 of 10 with it, and calls-hb and requests in 9 of 16. Each
# time all ranks were in PMPI_Finalize, some in PMI's barrier, where nothing moves UCX on, the others in
# ucp_worker_progress, waiting for connections to close. So with MPICH a program that has printed what
# it should is given two seconds more to end.
# shellcheck disable=SC2154 # use_mpi sets mpi, launcher and MPIEXEC
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${CLUSTER_HOSTS:-}" ]; then
  [ $# != 0 ] || set -- openmpi mpich
  status=0
  for mpi in "$@"; do
    [ -x "${CARGO_TARGET_DIR:-target}/$mpi/programs/mpi" ] ||
      { echo "ci/hosts.sh needs: ci/mpi.sh --build --long $mpi" >&2; exit 3; }
    for n in 2 3; do
      echo "== $mpi, $n hosts"
      ci/cluster.sh "$n" ci/hosts.sh "$mpi" || { status=$?; [ $status != 3 ] || exit 3; }
    done
  done
  exit $status
fi

# shellcheck source=/dev/null
. ci/mpi/launch.sh
use_mpi "$1"
programs=$(realpath "${CARGO_TARGET_DIR:-target}")/$mpi/programs
read -ra hosts <<<"$CLUSTER_HOSTS"
n_hosts=${#hosts[@]}
export HOPBINE_TIMEOUT=${HOPBINE_TIMEOUT:-30} RUST_BACKTRACE=0
failed=0

# PER_HOST PROGRAM [ARGUMENT]...: on so many ranks per host, or FIRST+OTHERS. In $options what the launcher
# shall do besides, in $within what it is started by.
options=() within=()
launch() {
  local first=${1%+*} others=${1#*+} host list
  list=${hosts[0]}:$first
  for host in "${hosts[@]:1}"; do list+=,$host:$others; done
  shift
  # shellcheck disable=SC2086
  case $launcher in
    openmpi)
      exec "${within[@]}" $MPIEXEC --allow-run-as-root --bind-to none --mca mpi_yield_when_idle 1 \
        --mca plm_rsh_agent "$CLUSTER_AGENT" --mca oob_tcp_if_include "$CLUSTER_SUBNET" \
        --mca btl_tcp_if_include "$CLUSTER_SUBNET" --mca btl_base_warn_component_unused 0 \
        "${options[@]}" --host "$list" "$@" ;;
    hydra)
      exec "${within[@]}" $MPIEXEC -n $((first + others * (${#hosts[@]} - 1))) -launcher ssh \
        -launcher-exec "$CLUSTER_AGENT" "${options[@]}" -hosts "$list" "$@" ;;
  esac
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Whether a program that has printed what it should ends by itself.
ends=yes
[ "$mpi" = openmpi ] || ends=no
# Starts it; what it prints goes to $work/said.
begin() {
  : >"$work/said"
  (launch "$@" </dev/null >"$work/said" 2>&1) &
  job=$!
}
# SECONDS PATTERN: waits for the end, or, if programs do not end, for what is to be said. $hangs: it had to be ended.
# $status: its exit status.
await() {
  local end=$((SECONDS + $1)) said_at=0
  hangs=no status=0
  while kill -0 "$job" 2>/dev/null && [ $SECONDS -lt $end ]; do
    # shellcheck disable=SC2053
    if [ $ends = no ] && [ $said_at = 0 ] && [[ $(<"$work/said") == $2 ]]; then
      said_at=$SECONDS
      end=$((SECONDS + 2))
    fi
    sleep 0.05
  done
  ! kill "$job" 2>/dev/null || hangs=yes
  wait "$job" 2>/dev/null || status=$?
}
# NAME PATTERN PER_HOST [NAME=VALUE]... PROGRAM ...: what it prints must fit the pattern. If it ends by itself, its exit
# status is 0; another one if $fails is yes; either if that is maybe.
expect() {
  local name=$1 pattern=$2 per_host=$3 variables=() started=$SECONDS
  shift 3
  while [[ $1 == *=* ]]; do
    variables+=("$1")
    shift
  done
  [ ${#variables[@]} = 0 ] || set -- env "${variables[@]}" "$@"
  begin "$per_host" "$@"
  await 60 "$pattern"
  judge "$name" "$pattern" "$started"
}
ended_well() {
  case ${fails:-no} in no) [ "$1" = 0 ] ;; yes) [ "$1" != 0 ] ;; esac
}
judge() {
  # shellcheck disable=SC2053
  if [[ $(<"$work/said") == $2 ]] && { [ $ends = no ] || { [ $hangs = no ] && ended_well "$status"; }; }; then
    printf '   %3s s  %s\n' "$((SECONDS - $3))" "$1"
  else
    printf 'FAILED: %s (%s s, exit status %s, hangs: %s)\n' "$1" "$((SECONDS - $3))" "$status" $hangs
    cat "$work/said"
    failed=1
  fi
}

preload=LD_PRELOAD=$programs/libhopbine_preload.so
far=$((2 * (n_hosts - 1))) all=$((2 * n_hosts))
line=$n_hosts
other=h$n_hosts

# -- What is found.
expect "info: hosts are nodes, wires are told" \
  "*torus         $line+2 at*messages      shared memory with 1 rank, mpi with $far ranks, on $n_hosts hosts*" \
  2 "$programs/bin/hopbine" info
expect "info without shared memory" "*messages      mpi with $((all - 1)) ranks, on $n_hosts hosts*" \
  2 HOPBINE_SHM=off "$programs/bin/hopbine" info
fails=yes expect "shared memory alone is refused" "*the ranks are on several hosts*" 2 HOPBINE_BACKEND=shm "$programs/bin/hopbine" info

# -- Every collective by every algorithm.
expect "matrix" "*algorithms on $all ranks over mpi*" 2 "$programs/mpi" matrix
expect "matrix, another torus" "*algorithms on $all ranks over mpi*" 2 HOPBINE_TORUS="${n_hosts}x2" HOPBINE_RANK_MAP=hosts \
  "$programs/mpi" matrix
expect "run on a torus of processes" "*verified*yes*yes*" 2 "$programs/bin/hopbine" run allreduce \
  --torus "${n_hosts}x2" --bytes 8..64KiB:x8192 --iterations 3 --map hosts
expect "run with nodes" "*verified*yes*yes*" 2 "$programs/bin/hopbine" run alltoall \
  --torus "$n_hosts" --per-node 2 --bytes 8..64KiB:x8192 --iterations 3
# Ranks in turn: those of a node, as the variable says, are on different hosts then.
case $launcher in openmpi) options=(--map-by node) ;; hydra) options=(-ppn 1) ;; esac
expect "ranks in turn" "*algorithms on $all ranks over mpi*" 2 HOPBINE_RANKS_PER_NODE=2 "$programs/mpi" matrix
options=()

# -- The interfaces for MPI programs.
expect "calls, unmodified" "*all correct*" 2 "$preload" "$programs/calls" wrong
expect "calls, renamed" "*all correct*" 1 "$programs/calls-hb" wrong
expect "requests, unmodified" "*every request is done*" 2 "$preload" "$programs/requests" wrong
expect "mpi_f08, unmodified" "*all correct*" 2 "$preload" "$programs/calls-mpi_f08"
# EXAMPLE ARGUMENT...: the same words from pure MPI, renamed, and under the library, C and Fortran.
same() {
  local example=$1 kind said
  shift
  for kind in "" -f; do
    begin 2 "$programs/$example$kind" "$@"
    await 60 "*[0-9]*"
    # Warnings of a launcher's begin with its place.
    said=$(sed -n '/^\[/!{p;q}' "$work/said")
    [[ $said == *[0-9]* ]] || { echo "FAILED: $example$kind without hopbine: $said"; failed=1; return; }
    expect "$example$kind, renamed: $said" "*$said*" 2 "$programs/$example-hb$kind" "$@"
    expect "$example$kind, unmodified" "*$said*" 2 "$preload" "$programs/$example$kind" "$@"
  done
}
same heat 24 20
same cg 12
# It wants a power of two.
[ "$n_hosts" != 2 ] || same fft 64
expect "the report names the wires" "*on $line+2; messages: shared memory with 1 rank, mpi with $far ranks, on $n_hosts hosts*allreduce*" \
  2 "$preload" HOPBINE_REPORT=1 "$programs/heat" 24 20

# -- Communicators of hosts and across them, long vectors, threads; hosts of different sizes.
expect "groups, unmodified" "*all groups are right*" 2 "$preload" "$programs/groups" 64
uneven=$((n_hosts + 2))
expect "uneven hosts: info" "*rank          *of $uneven*messages      *, on $n_hosts hosts*" 3+1 "$programs/bin/hopbine" info
expect "uneven hosts: matrix" "*algorithms on $uneven ranks over mpi*" 3+1 "$programs/mpi" matrix
expect "uneven hosts: groups, unmodified" "*all groups are right*" 2+1 "$preload" "$programs/groups" 4

# -- A torus that does not fit; a rank map that is right, that one host has otherwise, that it has not.
fails=yes expect "a torus that does not fit" "*HOPBINE_TORUS=5x3 is not valid; it must be of $all nodes*" 2 HOPBINE_TORUS=5x3 "$programs/bin/hopbine" info
for host in "${hosts[@]}"; do
  $CLUSTER_AGENT "$host" "for i in \$(seq $((all - 1)) -1 0); do echo \"(\$i)\"; done >/tmp/map"
done
mapped=(2 "HOPBINE_TORUS=$all" HOPBINE_RANK_MAP=/tmp/map "$programs/mpi" matrix)
expect "a rank map" "*algorithms on $all ranks over mpi*" "${mapped[@]}"
$CLUSTER_AGENT "$other" "tac /tmp/map >/tmp/turned; mv /tmp/turned /tmp/map"
fails=yes expect "another rank map on one host" "*HOPBINE_RANK_MAP=(a file of*all ranks need the same*" "${mapped[@]}"
$CLUSTER_AGENT "$other" "rm /tmp/map"
fails=yes expect "no rank map on one host" "*HOPBINE_RANK_MAP=(/tmp/map cannot be read*all ranks need the same*" "${mapped[@]}"

# -- Containers of sorts on one host: a space of process numbers for all ranks, without a /proc of its own;
# one for each; no /proc at all. MPI's own shared memory wants more, and MPICH over UCX does not start there.
one_host() {
  local hosts=(head) options=(--mca btl "self,tcp")
  expect "$@"
}
if [ "$mpi" = openmpi ]; then
  within=(unshare --pid --fork --kill-child)
  one_host "all ranks in a space of their own" "*shared memory with 2 ranks, on 1 host*" 3 "$programs/bin/hopbine" info
  one_host "all ranks in a space of their own: matrix" "*algorithms on 3 ranks over shm*" 3 "$programs/mpi" matrix
  within=()
  one_host "each rank in a space of its own" "*messages      mpi with 2 ranks, on 3 hosts*" 3 \
    unshare --pid --fork --kill-child "$programs/bin/hopbine" info
  one_host "no /proc: matrix" "*algorithms on 3 ranks over mpi*" 3 \
    unshare --mount sh -c "mount -t tmpfs none /proc; exec '$programs/mpi' matrix"
fi

# -- A host that is cut off for a moment, and for good.
cut() {
  local name=$1 pattern=$2 seconds=$3 started=$SECONDS tries=200
  shift 3
  begin 2 env "$@" "$programs/mpi" going 4
  until grep -q going "$work/said" || [ $((tries--)) = 0 ]; do sleep 0.05; done
  ip link set "$other" down
  sleep "$seconds"
  ip link set "$other" up
  await 40 "$pattern"
  judge "$name" "$pattern" "$started"
}
cut "cut off for 2 s: waited for" "*all calls are right*" 2 HOPBINE_TIMEOUT=30
# The first rank whose wait is too long says so, and ends. Launchers may then end the others before they speak.
fails=maybe cut "cut off for 8 s: a wait that is too long fails, if asked to" "*after*waited 3s for a message*" 8 \
  HOPBINE_TIMEOUT=3 HOPBINE_ON_TIMEOUT=fail

# -- The last rank dies, on another host.
fails=yes expect "a rank dies: the launcher ends the job" "*going*" 2 "$programs/mpi" going 30 100
# If the launcher lets the others go on, a rank of the same host finds it out and tells all. (Open MPI itself
# does not end then.) A rank that was alone on its host nobody can look at: waits become too long.
if [ "$mpi" = openmpi ]; then
  options=(--enable-recovery) ends=no
  expect "a rank dies: the others name it" "*rank 0 after*rank $((all - 1)) is gone*" 2 "$programs/mpi" going 30 100
  expect "a host dies: a wait that is too long fails, if asked to" "*rank 0 after*: rank 0*rank [1-9]*" \
    1 HOPBINE_TIMEOUT=3 HOPBINE_ON_TIMEOUT=fail "$programs/mpi" going 30 100
fi

[ $failed = 0 ] || exit 1
