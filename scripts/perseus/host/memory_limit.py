"""Read how much more memory this process may use under a memory limit, as in a container."""

from __future__ import annotations

from pathlib import Path

from perseus.host.control_groups import GROUPS, OWN_GROUPS, folders, read

FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Names in the folder of a control group, for cgroup version 2 and for version 1.

The first name is the file with the memory limit. The second name is the file with the used memory.
The third name is a key in the file memory.stat. The value of this key is the memory of cached
files, which the kernel can free at any time.
"""


def free_bytes(groups: Path = GROUPS, own_groups: Path = OWN_GROUPS) -> int | None:
    """Return how many more bytes of memory this process may use; None without a memory limit.

    The memory limit may be that of the control group of this process, or that of a group above it.
    """
    left = map(_free_bytes, folders("memory", groups, own_groups))
    return min((each for each in left if each is not None), default=None)


def _free_bytes(folder: Path) -> int | None:
    for of_limit, of_used, of_cache in FILES:
        limit, used = read(folder / of_limit), read(folder / of_used)
        if limit.isdecimal() and used.isdecimal():
            stat = dict(line.split() for line in read(folder / "memory.stat").splitlines())
            return int(limit) - int(used) + int(stat.get(of_cache, 0))
    return None
