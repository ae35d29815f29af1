"""Find the control groups of this process, which limit its CPU time and its memory.

The limits of a container come from the options `--cpus` and `--memory` of Docker or from the limits
of Kubernetes (docs.kernel.org/admin-guide/cgroup-v2.html).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

GROUPS, OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def folders(
    controller: str, groups: Path = GROUPS, own_groups: Path = OWN_GROUPS
) -> Iterator[Path]:
    """Yield the folder of this process's control group, and the folders of all groups above it.

    A limit of any of these groups also limits this process. `controller` is the name of a
    controller, such as "cpu" or "memory". The function supports cgroup version 2 and version 1.

    The function may yield a folder twice, and may yield folders that do not exist. In a container,
    the path in /proc/self/cgroup may be valid only on the host. In this case, only the last folder
    exists: the folder of the container's own control group.
    """
    for line in read(own_groups).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = groups / controller if controllers else groups
        group = PurePosixPath(path.lstrip("/"))
        if ".." not in group.parts:
            yield from (root / each for each in (group, *group.parents))
        yield root


def read(path: Path) -> str:
    """Return the text in a file without surrounding spaces; empty if the file is not readable."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
