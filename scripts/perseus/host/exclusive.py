"""Lock cores and GPUs of this machine, so that one measurement at a time uses them.

A lock is a file that its measurement holds with flock(2); the kernel releases it however the
process ends. The files are in /tmp, whatever TMPDIR says: all users of a machine find the same
files there, and the sticky bit protects them. Containers with their own /tmp do not see them.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

FOLDER: Final = Path("/tmp")
MAX_BYTES = 200  # of the owner in a lock file


class LockError(RuntimeError):
    """The file of a lock cannot be used. The message says what to do."""


@contextmanager
def exclusive(
    names: Collection[str], owner: str, say: Callable[[str], None], folder: Path = FOLDER
) -> Iterator[None]:
    """Hold the locks of these names; wait for those that other processes hold.

    All processes take locks in the same order, so there is no deadlock. Waiting processes read
    `owner`; `say` gets the owner that this process waits for. Raises LockError.
    """
    messages: list[str] = []

    def say_once(message: str) -> None:
        if message not in messages:
            messages.append(message)
            say(message)

    with ExitStack() as stack:
        for name in sorted(set(names)):
            stack.enter_context(_exclusive(name, owner, say_once, folder))
        yield


@contextmanager
def exclusive_if_free(name: str, owner: str, folder: Path = FOLDER) -> Iterator[bool]:
    """Hold a lock unless another process holds it; yield whether it is held. Raises LockError."""
    with _opened(folder / f"{name}.lock") as descriptor:
        free = _locked_now(descriptor) and _still_is(folder / f"{name}.lock", descriptor)
        if free:
            _write_owner(descriptor, owner)
        yield free


@contextmanager
def _exclusive(name: str, owner: str, say: Callable[[str], None], folder: Path) -> Iterator[None]:
    path = folder / f"{name}.lock"
    while True:
        with _opened(path) as descriptor:
            if not _locked_now(descriptor):
                say(f"waiting for the measurement of {_read_owner(descriptor)}")
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _still_is(path, descriptor):
                _write_owner(descriptor, owner)
                yield
                return


def _locked_now(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open the file of a lock, and create it if it is missing.

    Another user may have created the name: links are not followed, and only a regular file without
    further hard links is written to.
    """
    try:
        descriptor = _open(path)
    except OSError as error:
        raise LockError(_unusable(path, error.strerror)) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise LockError(_unusable(path, "it is not a regular file"))
        yield descriptor
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    while True:
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            previous = os.umask(0)  # measurements of all users write to the file
            try:
                return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
            except FileExistsError:
                continue
            finally:
                os.umask(previous)


def _unusable(path: Path, why: str | None) -> str:
    action, remedy = "created", f"allow this user to create files in {path.parent}"
    if os.path.lexists(path):
        action, remedy = "used", "remove it, or ask its owner to remove it"
    return f"the lock file {path} for measurements cannot be {action} ({why}): {remedy}"


def _still_is(path: Path, descriptor: int) -> bool:
    """Return whether the path still names the opened file; others would lock a new file."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _write_owner(descriptor: int, owner: str) -> None:
    with suppress(OSError):  # on a full disk, others wait without the name of the owner
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"pid {os.getpid()} ({owner})\n".encode()[:MAX_BYTES], 0)


def _read_owner(descriptor: int) -> str:
    """Read the owner. Any user can write it, so only printable characters are kept."""
    text = os.pread(descriptor, MAX_BYTES, 0).decode(errors="replace")
    return "".join(filter(str.isprintable, text)) or "another process"
