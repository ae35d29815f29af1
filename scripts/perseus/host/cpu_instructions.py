"""Detect special instructions of this host's processors."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

CPUINFO: Final = Path("/proc/cpuinfo")
BF16: Final = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
"""Names of the processor flag for bfloat16 on x86 and on ARM."""


@functools.cache
def has_bf16() -> bool:
    """Return whether the processors of this host compute in bfloat16."""
    return not BF16.isdisjoint(CPUINFO.read_text("utf-8", errors="replace").split())
