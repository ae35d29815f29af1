"""Files in the page cache: taking them out, and how much of them is in."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from pathlib import Path


def evict(paths: Sequence[Path]) -> None:
    """Ask the system to take files out of the page cache; `resident_share` says whether it did.

    Needs no privileges, and touches no other file (posix_fadvise(2), POSIX_FADV_DONTNEED, which
    leaves out pages that are still to be written: they are written first).
    """
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def resident_share(paths: Sequence[Path]) -> float:
    """The share (0..1) of the pages of files that lie in memory, by mincore(2); 0 of no pages."""
    pages = [_resident(path) for path in paths]
    total = sum(map(len, pages))
    return sum(map(sum, pages)) / total if total else 0.0


def _resident(path: Path) -> list[int]:
    """For each page of a file, whether it lies in memory."""
    size = path.stat().st_size
    if not size:
        return []
    with path.open("rb") as file, mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE) as mapped:
        flags = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        start = ctypes.c_char.from_buffer(mapped)
        try:
            address = ctypes.c_void_p(ctypes.addressof(start))
            if ctypes.CDLL(None, use_errno=True).mincore(address, ctypes.c_size_t(size), flags):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        finally:
            del start  # or the map cannot be closed
    return [flag & 1 for flag in flags]
