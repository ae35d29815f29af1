"""Read the last lines of a server's log, for an error message."""

from __future__ import annotations

import re
from pathlib import Path

_ERROR_LINES = 20


def last_lines(log_path: Path) -> str:
    """Return the last informative lines of the log of a server, at most _ERROR_LINES lines.

    Tables, messages of the level info, and messages about NVIDIA's libraries are not informative:
    most messages about NVIDIA's libraries mean only that the machine has no GPU. If several model
    instances write the same message, the result contains this message once. If the log has no
    informative line, the function returns the last lines of the log.
    """
    lines = [line.rstrip() for line in log_path.read_text(errors="replace").splitlines()]
    noise = re.compile(r"^I\d{4} |^[+|]|^$|NVML|DCGM|CudaDriverHelper|pinned_memory_manager")
    telling = {line.partition("] ")[2] or line: line for line in lines if not noise.search(line)}
    return "\n".join((list(telling.values()) or lines)[-_ERROR_LINES:])
