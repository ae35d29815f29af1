"""Remove the lock files that a killed Snakemake has left in the folder of a workflow.

The lock files in .snakemake/locks block every later run, even after Snakemake has been killed.
Therefore each run of this workflow also takes a lock of the kernel (flock) on the file
.snakemake/perseus.live (LIVE). The kernel releases this lock when the process ends for any reason.
If the lock is free, no other run uses the folder, and a later run removes Snakemake's lock files.
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
    """Mark that this run uses a folder. The mark disappears when this process ends.

    The mark is a shared lock (flock) on the file LIVE, so several runs can mark the folder at once.
    On a file system without flock, the function marks nothing, and later runs do not remove
    Snakemake's lock files. The function syncs the file LIVE to the disk before Snakemake creates
    its lock files. Otherwise, after a power failure, LIVE could be missing beside the lock files.
    """
    live = folder / LIVE
    with suppress(OSError):
        live.parent.mkdir(exist_ok=True)
        descriptor = os.open(live, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        for path in (live, live.parent, folder):
            _bring_to_disk(path)


def is_live(folder: Path) -> bool:
    """Return whether another run uses this folder; True if unknown.

    Call this function before `hold`.
    """
    with _is_free(folder) as free:
        return not free


def remove_dead(folder: Path) -> bool:
    """Remove Snakemake's lock files unless another run uses this folder.

    The function returns whether it removed a lock file. Call this function before `hold`. If
    another run starts while this function removes lock files, the other run waits in `hold`, and
    has no lock files yet. Therefore this function removes no lock file of the other run.
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
    """Yield True if no run uses this folder, else False.

    If the result is True and the file LIVE exists, no run can start in the folder until the context
    ends.

    If this user may not write to the file LIVE, some file systems refuse locks on the file. In this
    case, the function yields False, because it cannot find out whether a run uses the folder.
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
