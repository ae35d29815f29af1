"""Names of processes, by which somebody else can tell later whether they are gone."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Final

from perseus.host.procfs import start_ticks

PATTERN: Final = r"[0-9a-f]{8}-\d+-\d+"
"""What `identity` returns, as a regular expression."""


def identity(pid: int | None = None) -> str:
    """A name that no other process ever has: this one's, unless another is asked for."""
    pid = os.getpid() if pid is None else pid
    return f"{_world()}-{pid}-{start_ticks(pid)}"


def is_gone(name: str) -> bool:
    """Whether the process of an `identity` has ended; False for one that cannot be seen from here.

    A shared folder can show the files of other hosts and containers, and of earlier boots.
    """
    if not re.fullmatch(PATTERN, name):
        return False
    world, pid, start = name.split("-")
    if world != _world():
        return False
    return start_ticks(int(pid)) != int(start) and not _is_hidden(int(pid))


def _is_hidden(pid: int) -> bool:
    """Whether there is such a process, and /proc does not show it, as with hidepid."""
    if Path(f"/proc/{pid}").exists():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _world() -> str:
    """Name of the world in which our process ids mean something: this boot, this pid namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    namespace = Path("/proc/self/ns/pid").readlink()
    return hashlib.sha256(f"{boot} {namespace}".encode()).hexdigest()[:8]
