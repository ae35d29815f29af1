"""Read the end of a log."""

from __future__ import annotations

import re
from pathlib import Path

_ERROR_LINES = 20


def last_lines(log_path: Path) -> str:
    """Return the last informative lines of the log of a server.

    The result leaves out tables, messages about success, messages about missing GPUs, and lines
    that several model instances repeat.
    """
    lines = [line.rstrip() for line in log_path.read_text(errors="replace").splitlines()]
    noise = re.compile(r"^I\d{4} |^[+|]|^$|NVML|DCGM|CudaDriverHelper|pinned_memory_manager")
    telling = {line.partition("] ")[2] or line: line for line in lines if not noise.search(line)}
    return "\n".join((list(telling.values()) or lines)[-_ERROR_LINES:])
