"""Lock cores and GPUs of this machine, so that only one measurement at a time uses a core or GPU.

For each core and GPU, a measurement calls flock(2) on a lock file. The kernel releases the lock
when the measuring process ends for any reason. The lock files are always in /tmp, even if TMPDIR
names another folder: all users of a machine find the same files in /tmp, and because of the sticky
bit of /tmp, no user can remove the files of another user. A container with its own /tmp does not
contain the lock files of the host, so the locks do not work between container and host.
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
MAX_BYTES = 200  # a lock file contains at most this number of bytes: the name of the owner


class LockError(RuntimeError):
    """Error: a lock file is unusable. The message says what to do."""


@contextmanager
def exclusive(
    names: Collection[str], owner: str, say: Callable[[str], None], folder: Path = FOLDER
) -> Iterator[None]:
    """Hold the locks with these names while the context is open. Wait if other processes hold them.

    All processes take locks in the same order, so no deadlock is possible. `owner` is the name of
    this process in the messages of waiting processes. If this process must wait, the function calls
    `say` with a message that names the owner of the lock. Raises LockError if a lock file is
    unusable.
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
    """Hold the lock with this name while the context is open, unless another process holds it.

    The function does not wait. It yields True if this process has the lock, and False if another
    process holds the lock. Raises LockError if the lock file is unusable.
    """
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
                say(f"waiting for cores, a GPU or a server that {_read_owner(descriptor)} uses")
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
    """Open the file of a lock, and create the file if it is missing.

    Another user may have put a link in place of the lock file, so that Perseus would overwrite
    another file. Therefore the function follows no symbolic links, and accepts only a regular file
    with a single hard link.
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
            previous = os.umask(0)  # the measurements of all users write to the same file
            try:
                return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
            except FileExistsError:
                continue
            finally:
                os.umask(previous)


def _unusable(path: Path, why: str | None) -> str:
    action, remedy = "created", f"allow this user to create files in {path.parent}"
    if os.path.lexists(path):
        action, remedy = "used", "remove this file, or ask its owner to remove it"
    return (
        f"the lock file {path}, with which measurements reserve cores and GPUs, cannot be {action}"
        f" ({why}): {remedy}"
    )


def _still_is(path: Path, descriptor: int) -> bool:
    """Return whether the opened file is still the lock file at this path.

    If another process has removed or replaced the lock file, later processes lock a new file. Then
    the lock on the opened file has no effect.
    """
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _write_owner(descriptor: int, owner: str) -> None:
    with suppress(OSError):  # on a full disk, the lock works without the owner's name
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"pid {os.getpid()} ({owner})\n".encode()[:MAX_BYTES], 0)


def _read_owner(descriptor: int) -> str:
    """Return the name of the process that holds a lock.

    The function drops unprintable characters, because any user can write into the lock file.
    """
    text = os.pread(descriptor, MAX_BYTES, 0).decode(errors="replace")
    return "".join(filter(str.isprintable, text)) or "another process"
