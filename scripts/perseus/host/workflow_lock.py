"""Snakemake's lock of a folder, where the Snakemake that made it was killed.

Its files in .snakemake/locks do not tell their owner, and stop every later run. So each run of this
workflow holds a lock of the kernel's beside them, which ends with its process however that ends.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

LOCKS: Final = Path(".snakemake/locks")
LIVE: Final = Path(".snakemake/perseus.live")


def hold(folder: Path) -> None:
    """Say that a run lives in this folder, until this process ends; several may at once.

    Nothing is said where the file system has no locks, and nothing will be removed there. The file
    is on the disk before Snakemake makes its lock, so that no power failure leaves that alone. It
    is held for reading, which everybody can who shares the folder, whoever has made it.
    """
    live = folder / LIVE
    with suppress(OSError):
        live.parent.mkdir(exist_ok=True)
        descriptor = os.open(live, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        for path in (live, live.parent, folder):
            _bring_to_disk(path)


def is_live(folder: Path) -> bool:
    """Whether a run lives in this folder, or may: not every file system tells. To be called before
    `hold`."""
    with _is_free(folder) as free:
        return not free


def remove_dead(folder: Path) -> bool:
    """Remove Snakemake's lock unless a run lives in this folder; whether there was one to remove.

    To be called before `hold`, where a run that begins meanwhile waits: it makes its lock later.
    """
    with _is_free(folder) as free:
        if not (free and (folder / LIVE).exists()):
            return False
        try:
            dead = list((folder / LOCKS).glob("*.lock"))
            for path in dead:
                path.unlink(missing_ok=True)
        except OSError:
            return False
        return bool(dead)


def _bring_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _is_free(folder: Path) -> Iterator[bool]:
    """Whether no run lives in this folder, for all that can be told; then none does meanwhile.

    That of another user may, who keeps the file from being written: on some file systems nobody
    else can lock it.
    """
    try:
        descriptor = os.open(folder / LIVE, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        yield isinstance(error, FileNotFoundError | NotADirectoryError)
        return
    try:
        yield _locked_now(descriptor)
    finally:
        os.close(descriptor)


def _locked_now(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
