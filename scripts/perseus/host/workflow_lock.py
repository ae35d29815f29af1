"""Remove the lock files that a killed Snakemake has left in the folder of a workflow.

Snakemake's lock files in .snakemake/locks do not name the process that made them, and block every
later run. Therefore each run of this workflow also takes a lock of the kernel (flock). The kernel
releases this lock when the process ends for any reason.
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

    The mark is a shared lock (flock) on the file LIVE, so several runs can mark the folder at once.
    On file systems without locks, the function marks nothing, and later runs do not remove
    Snakemake's lock files. The function syncs the file LIVE to the disk before Snakemake creates
    its lock files. Otherwise, Snakemake's lock files could survive a power failure without the file
    LIVE.
    """
    live = folder / LIVE
    with suppress(OSError):
        live.parent.mkdir(exist_ok=True)
        descriptor = os.open(live, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        for path in (live, live.parent, folder):
            _bring_to_disk(path)


def is_live(folder: Path) -> bool:
    """Return whether another run uses this folder; True if the function cannot find out. Call this
    function before `hold`."""
    with _is_free(folder) as free:
        return not free


def remove_dead(folder: Path) -> bool:
    """Remove Snakemake's lock files unless another run uses this folder. Return whether a lock file
    was removed.

    Call this function before `hold`. If another run starts meanwhile, that run waits in `hold`,
    before Snakemake creates its lock files.
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
    """Yield whether no run uses this folder (the folder is free). While the context is open, no run
    can start in a free folder.

    If this user may not write to the file LIVE of another user, the function treats the folder as
    used, because some file systems refuse locks on such a file.
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
