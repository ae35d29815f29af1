"""Remove the lock that a killed Snakemake has left in a folder.

Snakemake's files in .snakemake/locks do not name their owner and block every later run. So each run
of this workflow also holds a kernel lock, which ends with its process however that ends.
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
    """Mark this folder as used by a run until this process ends; several runs may hold it.

    On file systems without locks nothing is marked, and later nothing is removed. The file is
    synced before Snakemake creates its lock, so that a power failure cannot leave only the latter.
    The lock is shared, so that every user of the folder can hold it.
    """
    live = folder / LIVE
    with suppress(OSError):
        live.parent.mkdir(exist_ok=True)
        descriptor = os.open(live, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        for path in (live, live.parent, folder):
            _bring_to_disk(path)


def is_live(folder: Path) -> bool:
    """Return whether a run uses this folder, or may use it. Call it before `hold`."""
    with _is_free(folder) as free:
        return not free


def remove_dead(folder: Path) -> bool:
    """Remove Snakemake's lock unless a run uses this folder; return whether one was removed.

    Call it before `hold`. A run that starts meanwhile waits in `hold`, before it makes its lock.
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
    """Yield whether no run uses this folder; while it is free, no run can start.

    It counts as used if the file of another user is not writable: some file systems then refuse the
    lock.
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
