"""Give each process a unique name, from which other processes can find out whether it has ended."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Final

from perseus.host.procfs import start_ticks

PATTERN: Final = r"[0-9a-f]{8}-\d+-\d+"
"""Regular expression that matches each result of `identity`."""


def identity(pid: int | None = None) -> str:
    """Return a unique name of the process `pid`, by default of this process.

    No other process on this or another host ever has the same name.
    """
    pid = os.getpid() if pid is None else pid
    return f"{_scope()}-{pid}-{start_ticks(pid)}"


def is_gone(name: str) -> bool:
    """Return whether the process with the `identity` `name` has ended; False if unknown.

    This process cannot see a process on another host, in another container or from an earlier boot,
    so the result for such a process is always False.
    """
    if not re.fullmatch(PATTERN, name):
        return False
    scope, pid, start = name.split("-")
    if scope != _scope():
        return False
    return start_ticks(int(pid)) != int(start) and not _is_hidden(int(pid))


def _is_hidden(pid: int) -> bool:
    """Return whether a process exists although /proc does not show it.

    For example, /proc shows no processes of other users if it is mounted with the option hidepid.
    """
    if Path(f"/proc/{pid}").exists():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _scope() -> str:
    """Return a hash of the boot id and the pid namespace of this process."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    namespace = Path("/proc/self/ns/pid").readlink()
    return hashlib.sha256(f"{boot} {namespace}".encode()).hexdigest()[:8]
