"""Read how much memory the memory limits of this process leave, for example in a container."""

from __future__ import annotations

from pathlib import Path

from perseus.host.control_groups import GROUPS, OWN_GROUPS, folders, read

FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""For cgroup version 2 and version 1: the file with the limit, the file with the used memory, and
the key in memory.stat of cached files that the kernel can drop."""


def free_bytes(groups: Path = GROUPS, own_groups: Path = OWN_GROUPS) -> int | None:
    """Return the memory that the control group of this process and its parent groups leave; None
    without a memory limit."""
    left = map(_free_bytes, folders("memory", groups, own_groups))
    return min((each for each in left if each is not None), default=None)


def _free_bytes(folder: Path) -> int | None:
    for of_limit, of_used, of_cache in FILES:
        limit, used = read(folder / of_limit), read(folder / of_used)
        if limit.isdecimal() and used.isdecimal():
            stat = dict(line.split() for line in read(folder / "memory.stat").splitlines())
            return int(limit) - int(used) + int(stat.get(of_cache, 0))
    return None
