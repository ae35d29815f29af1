#!/bin/sh
# own_world.sh COMMAND...: run a command in a world of its own, in which it may start a Slurm.
#
# Its network is a loopback, its /etc/slurm and /dev/shm are empty, and whatever it starts ends
# with it: nothing of this machine is changed but control groups, so that a machine with a Slurm of
# its own is refused. Exit code 3: not on this machine, for the reason that is said.
set -eu
refuse() {
  echo "$1" >&2
  exit 3
}
[ "$(id -u)" = 0 ] || refuse "Only root may start Slurm's daemons: use sudo, or a container."
[ ! -e /etc/slurm/slurm.conf ] || refuse "/etc/slurm/slurm.conf: this machine has a Slurm; test on another."
[ -w /sys/fs/cgroup/freezer ] || refuse "No control groups v1 that may be written: no other kind was tried."
for program in unshare ip munged slurmctld slurmd; do
  command -v $program >/dev/null ||
    refuse "No $program: apt-get install --no-install-recommends slurm-wlm munge iproute2"
done
unshare --mount --net --ipc --pid --fork true || refuse "No right to make namespaces."
# The shell stays as the first process, which buries the orphans.
exec unshare --mount --net --ipc --pid --fork --kill-child --mount-proc sh -euc '
  ip link set lo up
  ip address add 127.0.0.2/8 dev lo  # with 127.0.0.1 alone, Slurm resolves no name at all
  mount -t tmpfs slurm /etc/slurm
  mount -t tmpfs shm /dev/shm
  "$@" || exit $?
' sh "$@"
