#!/bin/sh
# own_world.sh COMMAND...: run a command in new namespaces, in which the command can start a Slurm.
#
# The command has only a loopback network, and empty /etc/slurm and /dev/shm. All its processes end
# with it. It changes control groups of this machine, so the script refuses a machine that runs a
# Slurm. Exit code 3: this machine is unsuitable, and the script prints the reason.
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
# The shell stays the first process, and reaps orphaned processes.
exec unshare --mount --net --ipc --pid --fork --kill-child --mount-proc sh -euc '
  ip link set lo up
  ip address add 127.0.0.2/8 dev lo  # with only 127.0.0.1, Slurm resolves no names
  mount -t tmpfs slurm /etc/slurm
  mount -t tmpfs shm /dev/shm
  "$@" || exit $?
' sh "$@"
