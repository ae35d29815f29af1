"""Evict files from the page cache (the system's cache of files in memory), and check the result."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from pathlib import Path


def evict(paths: Sequence[Path]) -> None:
    """Ask the system to evict files from the page cache, so that the next read comes from the disk.

    The system may keep some pages. To check which share of the files is still in the cache, call
    `resident_share`. The function needs no privileges, and affects no other file (posix_fadvise(2),
    POSIX_FADV_DONTNEED). The system does not evict modified pages, so the function first syncs the
    files to the disk.
    """
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def resident_share(paths: Sequence[Path]) -> float:
    """Return the share (0..1) of the pages of these files that the page cache has (mincore(2))."""
    pages = [_resident(path) for path in paths]
    total = sum(map(len, pages))
    return sum(map(sum, pages)) / total if total else 0.0


def _resident(path: Path) -> list[int]:
    """Return one number for each page of a file: 1 if the page is in the page cache, else 0."""
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
            del start  # the memory map cannot be closed while `start` refers to it
    return [flag & 1 for flag in flags]
