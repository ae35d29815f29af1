"""What a log says at its end."""

from __future__ import annotations

import re
from pathlib import Path

_ERROR_LINES = 20


def last_lines(log_path: Path) -> str:
    """The last lines of a server log that say something.

    Left out are tables, notes of success, the absence of a GPU, and what another instance of the
    model has said already.
    """
    lines = [line.rstrip() for line in log_path.read_text(errors="replace").splitlines()]
    noise = re.compile(r"^I\d{4} |^[+|]|^$|NVML|DCGM|CudaDriverHelper|pinned_memory_manager")
    telling = {line.partition("] ")[2] or line: line for line in lines if not noise.search(line)}
    return "\n".join((list(telling.values()) or lines)[-_ERROR_LINES:])
