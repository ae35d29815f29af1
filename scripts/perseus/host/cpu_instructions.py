"""Detect whether the processors of this host have instructions for bfloat16 arithmetic."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

CPUINFO: Final = Path("/proc/cpuinfo")
BF16: Final = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
"""Names of the processor flags for bfloat16 arithmetic on x86 and on ARM."""


@functools.cache
def has_bf16() -> bool:
    """Return whether the processors of this host have instructions for bfloat16."""
    return not BF16.isdisjoint(CPUINFO.read_text("utf-8", errors="replace").split())
