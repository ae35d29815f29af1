"""Read the CPU quota of this process, and how often the quota has stopped the process.

A CPU quota is an amount of CPU time per period, usually per 100 ms. When the processes of a control
group have used this amount, the kernel stops them until the next period. The CPU quota of a
container comes from the option `--cpus` of Docker or from the CPU limit of Kubernetes
(docs.kernel.org/admin-guide/cgroup-v2.html and docs.kernel.org/scheduler/sched-bwc.html).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perseus.host.control_groups import GROUPS, OWN_GROUPS, folders, read


@dataclass(frozen=True)
class Throttling:
    """Counters of a control group since its start.

    `periods` is the number of quota periods. `throttled` is the number of quota periods in which
    the kernel stopped the group.
    """

    periods: int
    throttled: int

    def share_since(self, before: Throttling) -> float:
        """Return the share (0..1) of quota periods in which the kernel stopped the group.

        Only the quota periods after the earlier reading `before` count.
        """
        periods = self.periods - before.periods
        return (self.throttled - before.throttled) / periods if periods > 0 else 0.0


@dataclass(frozen=True)
class CpuQuota:
    """A CPU quota.

    `cores` is the quota in seconds of CPU time per second. `group` is the folder of the control
    group with this quota.
    """

    cores: float
    group: Path

    @property
    def whole_cores(self) -> int:
        """Number of cores that the control group can keep busy all the time; at least 1."""
        return max(1, int(self.cores))

    def throttling(self) -> Throttling:
        """Return the current counters of the control group; 0 if they are not readable."""
        values = dict(line.split() for line in read(self.group / "cpu.stat").splitlines())
        return Throttling(int(values.get("nr_periods", 0)), int(values.get("nr_throttled", 0)))


def read_quota(groups: Path = GROUPS, own_groups: Path = OWN_GROUPS) -> CpuQuota | None:
    """Return the CPU quota that limits this process; None without a quota.

    The process belongs to a control group, which may lie inside other control groups. If several of
    these groups have a quota, the smallest quota limits the process.
    """
    quotas = [
        CpuQuota(cores, folder)
        for folder in dict.fromkeys(folders("cpu", groups, own_groups))
        if (cores := _cores(folder)) is not None
    ]
    return min(quotas, key=lambda quota: quota.cores, default=None)


def _cores(folder: Path) -> float | None:
    """Return the CPU quota of a control group in cores; None without a quota."""
    quota, _, period = read(folder / "cpu.max").partition(" ")
    if not quota:
        quota, period = (read(folder / f"cpu.cfs_{each}_us") for each in ("quota", "period"))
    limited = quota.isdecimal() and period.isdecimal() and int(quota) > 0 and int(period) > 0
    return int(quota) / int(period) if limited else None
