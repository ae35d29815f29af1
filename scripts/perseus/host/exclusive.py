"""What one measurement at a time may use of this machine, whoever started it: cores and GPUs.

A lock is a file that its measurement holds with flock(2), so that the kernel lets go of it however
the process ends. The files lie in /tmp itself, whatever TMPDIR says: there every user of a machine
finds the same ones, and its sticky bit lets nobody remove another's. Containers with a /tmp of
their own do not see them.
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
MOST_BYTES = 200  # of what a file says of its owner


class LockError(RuntimeError):
    """The file of a lock cannot be used; says what to do."""


@contextmanager
def exclusive(
    names: Collection[str], owner: str, say: Callable[[str], None], folder: Path = FOLDER
) -> Iterator[None]:
    """Hold the locks of these names, and wait for those that another process holds.

    All processes take them in the same order, so that no two wait for each other. `owner` is what
    the others read while they wait, `say` hears whom this one waits for. Raises LockError.
    """
    said: list[str] = []

    def say_once(message: str) -> None:
        if message not in said:
            said.append(message)
            say(message)

    with ExitStack() as stack:
        for name in sorted(set(names)):
            stack.enter_context(_held(name, owner, say_once, folder))
        yield


@contextmanager
def exclusive_if_free(name: str, owner: str, folder: Path = FOLDER) -> Iterator[bool]:
    """Hold a lock unless another process does; yields whether it is held. Raises LockError."""
    with _opened(folder / f"{name}.lock") as descriptor:
        free = _locked_now(descriptor) and _still_is(folder / f"{name}.lock", descriptor)
        if free:
            _tell(descriptor, owner)
        yield free


@contextmanager
def _held(name: str, owner: str, say: Callable[[str], None], folder: Path) -> Iterator[None]:
    path = folder / f"{name}.lock"
    while True:
        with _opened(path) as descriptor:
            if not _locked_now(descriptor):
                say(f"waiting for the measurement of {_told(descriptor)}")
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _still_is(path, descriptor):
                _tell(descriptor, owner)
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
    """The file of a lock, made where it is missing.

    Anybody may have put something of this name there: no link is followed, and only a plain file of
    one name is written to.
    """
    try:
        descriptor = _open(path)
    except OSError as error:
        raise LockError(_unusable(path, error.strerror)) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise LockError(_unusable(path, "it is no plain file"))
        yield descriptor
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    while True:
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            previous = os.umask(0)  # the measurements of all users write to it
            try:
                return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
            except FileExistsError:
                continue
            finally:
                os.umask(previous)


def _unusable(path: Path, why: str | None) -> str:
    cannot, remedy = "made", f"see to it that files can be made in {path.parent}"
    if os.path.lexists(path):
        cannot, remedy = "used", "remove it, or have its owner remove it"
    return (
        f"{path}, with which measurements on this machine wait for each other, cannot be {cannot}"
        f" ({why}): {remedy}"
    )


def _still_is(path: Path, descriptor: int) -> bool:
    """Whether the file was not removed while it was waited for: others would lock a new one."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _tell(descriptor: int, owner: str) -> None:
    with suppress(OSError):  # a full disk: who waits does not hear for whom, and waits all the same
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"pid {os.getpid()} ({owner})\n".encode()[:MOST_BYTES], 0)


def _told(descriptor: int) -> str:
    """What the owner wrote; anybody can, so that it is only shown, and only what is printable."""
    text = os.pread(descriptor, MOST_BYTES, 0).decode(errors="replace")
    return "".join(filter(str.isprintable, text)) or "another process"
