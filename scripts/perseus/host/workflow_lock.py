"""Remove the lock that a killed Snakemake has left in a folder.

Snakemake's lock files in .snakemake/locks do not name their owner, and block every later run.
Therefore each run of this workflow also takes a lock of the kernel. The kernel releases this lock
in any case when the process ends.
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
    """Mark this folder as used by a run until this process ends.

    The mark is a shared lock (flock) on the file LIVE, so several runs can hold it at once. On file
    systems without locks, the function marks nothing, and later runs do not remove Snakemake's
    lock. The function syncs the file LIVE before Snakemake creates its own lock. Otherwise,
    Snakemake's lock could survive a power failure without the file LIVE.
    """
    live = folder / LIVE
    with suppress(OSError):
        live.parent.mkdir(exist_ok=True)
        descriptor = os.open(live, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        for path in (live, live.parent, folder):
            _bring_to_disk(path)


def is_live(folder: Path) -> bool:
    """Return whether a run uses this folder; also true if this is unknown. Call this function
    before `hold`."""
    with _is_free(folder) as free:
        return not free


def remove_dead(folder: Path) -> bool:
    """Remove Snakemake's lock unless a run uses this folder; return whether a lock was removed.

    Call this function before `hold`. A run that starts meanwhile waits in `hold`, before Snakemake
    creates its lock.
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
    """Yield whether no run uses this folder. While the context is open, no run can start in a free
    folder.

    If this user may not write to the file LIVE of another user, the folder counts as used: some
    file systems then refuse the lock.
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
