#!/usr/bin/env bash
# Several hosts on this one, for as long as a command runs: h1, h2, ..., each with a name, processes,
# shared memory, /tmp and a network interface of its own, joined by a bridge. So no rank can see the
# processes or the memory of another host, as between machines. The command runs on one host more, head.
#
#   ci/cluster.sh HOSTS COMMAND [ARGUMENT]...
#
# The command finds
#   $CLUSTER_HOSTS    the names: "h1 h2 ..."
#   $CLUSTER_AGENT    in place of ssh: $CLUSTER_AGENT h2 COMMAND [ARGUMENT]...
#   $CLUSTER_SUBNET   the network's addresses
# and may cut a host off with `ip link set h2 down`. All files but those in /tmp, /run and /dev/shm are
# the same on all hosts; so are this tree and $CARGO_TARGET_DIR, wherever they are.
#
# Needs unshare and nsenter (util-linux), ip (iproute2), and a system that allows namespaces, to root at least.
# Exit code: that of the command; 3 if there can be no such hosts here, with the reason.
set -euo pipefail

if [ -z "${CLUSTER_INSIDE:-}" ]; then
  [ $# -ge 2 ] || { sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 2; }
  for tool in unshare nsenter ip; do
    command -v $tool >/dev/null || { echo "ci/cluster.sh: there is no $tool" >&2; exit 3; }
  done
  own=(--mount --uts --ipc --net --pid --fork --kill-child --mount-proc)
  [ "$(id -u)" = 0 ] || own+=(--map-root-user)
  why=$(unshare "${own[@]}" sh -c 'hostname head && ip link add try type bridge && mount -t tmpfs none /tmp' 2>&1) ||
    { echo "ci/cluster.sh: no namespaces here: $why" >&2; exit 3; }
  export CLUSTER_INSIDE=yes CLUSTER_ROOT
  CLUSTER_ROOT=$(cd "$(dirname "$0")/.." && pwd)
  exec unshare "${own[@]}" bash "$0" "$@"
fi

n=$1
shift
hostname head
# What is only here: the names of hosts, the agent, where their processes are.
mount -t tmpfs none /mnt
export CLUSTER_SUBNET=10.77.0.0/24 CLUSTER_AGENT=/mnt/agent CLUSTER_HOSTS=""
{
  echo "127.0.0.1 localhost"
  echo "10.77.0.254 head"
  for i in $(seq "$n"); do echo "10.77.0.$i h$i"; done
} >/mnt/hosts
mount --bind /mnt/hosts /etc/hosts
cat >$CLUSTER_AGENT <<'AGENT'
#!/bin/sh
# Options of ssh are of no use here.
while case $1 in -*) true ;; *) false ;; esac; do shift; done
pid=$(cat "/mnt/pid.$1") || exit 255
shift
exec nsenter --target "$pid" --mount --uts --ipc --net --pid --wd="$PWD" sh -c "$*"
AGENT
chmod +x $CLUSTER_AGENT

ip link set lo up
ip link add bridge type bridge
ip addr add 10.77.0.254/24 dev bridge
ip link set bridge up
# What is in /tmp on all hosts, too.
kept=()
for directory in "$CLUSTER_ROOT" "$(realpath -m "${CARGO_TARGET_DIR:-$CLUSTER_ROOT/target}")"; do
  [[ $directory != /tmp/* || ! -d $directory ]] || kept+=("$directory")
done
# The first process of each host waits for whatever is left to it.
cat >/mnt/first <<'FIRST'
name=$1
shift
hostname "$name"
mount -t tmpfs none /srv
for kept; do
  mkdir -p "/srv$kept"
  mount --bind "$kept" "/srv$kept"
done
mount -t tmpfs none /tmp
for kept; do
  mkdir -p "$kept"
  mount --bind "/srv$kept" "$kept"
done
cd "$CLUSTER_ROOT"
mount -t tmpfs none /run
mount -t tmpfs none /dev/shm
chmod 1777 /tmp /dev/shm
echo "$name" >"/mnt/ready.$name"
while :; do sleep 1000 & wait; done
FIRST
for i in $(seq "$n"); do
  unshare --mount --uts --ipc --net --pid --fork --kill-child --mount-proc bash -eu /mnt/first "h$i" "${kept[@]}" &
  outer=$!
  until [ -s "/mnt/ready.h$i" ]; do
    kill -0 $outer || { echo "ci/cluster.sh: h$i cannot be made" >&2; exit 3; }
    sleep 0.02
  done
  pid=$(cat "/proc/$outer/task/$outer/children")
  echo "${pid% }" >"/mnt/pid.h$i"
  ip link add "h$i" type veth peer name eth0 netns "${pid% }"
  ip link set "h$i" master bridge up
  $CLUSTER_AGENT "h$i" "ip link set lo up; ip addr add 10.77.0.$i/24 dev eth0; ip link set eth0 up"
  CLUSTER_HOSTS+="${CLUSTER_HOSTS:+ }h$i"
done
"$@"
