"""Remove processes, shared memory and folders that a killed server or job has left on its host.

The name of each folder and each region of shared memory contains the identity of its owner, the
process that created it. From the identity, a later job finds out whether the owner still runs. The
module removes nothing that belongs to other programs.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from perseus.host.identity import PATTERN, identity, is_gone

_PREFIX = "perseus-triton"
SHM = Path("/dev/shm")
_PLACES = (Path("/tmp"), Path("/var/tmp"))
_REMOVE_S = 15.0
_POLL_S = 0.01


def place() -> Path:
    """Return the folder in which Perseus creates temporary folders: TMPDIR or, by default, /tmp.

    If Perseus may not write to this folder, or if the path is not plain (see `is_plain`), the
    function returns /tmp or /var/tmp if possible.
    """
    wanted = Path(tempfile.gettempdir())
    plain = (each for each in (wanted, *_PLACES) if is_plain(each) and os.access(each, os.W_OK))
    return next(plain, wanted)


def is_plain(path: Path) -> bool:
    """Return whether a path has only letters, digits and `_./-`.

    Triton's Python backend may change a path with other characters.
    """
    return re.fullmatch(r"[\w./-]+", str(path), re.ASCII) is not None


def make_folder() -> Path:
    """Create the temporary folder of a server or job.

    The name of the folder is a `unique_name`. The names of the server's regions of shared memory
    begin with the name of the folder, so that `remove` finds them.
    """
    folder = place() / unique_name()
    folder.mkdir(mode=0o700)
    return folder


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a temporary folder. If this process is killed, a later job removes the folder."""
    folder = make_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def unique_name() -> str:
    """Return a unique name for a folder or server of this process.

    The name of a region of shared memory (a file in /dev/shm) begins with such a name and "-".
    """
    return f"{_PREFIX}-{identity()}-{secrets.token_hex(4)}"


def sweep_dead_owners() -> None:
    """Remove what ended processes of Perseus have left: servers, shared memory and folders."""
    temporary = place()
    found = [path.name for place in (temporary, SHM) for path in place.glob(f"{_PREFIX}-*")]
    for name in names_of_dead_owners(found):
        remove(temporary / name)


def names_of_dead_owners(found: Iterable[str]) -> list[str]:
    """Return the unique name in each name of `found` whose owner process has ended.

    `found` has names of folders and of regions of shared memory (see `unique_name`).
    """
    pattern = re.compile(rf"({_PREFIX}-({PATTERN})-[0-9a-f]{{8}})(-.*)?")
    matches = filter(None, map(pattern.fullmatch, found))
    return sorted({m[1] for m in matches if is_gone(m[2])})


def unlink_memory(name: str) -> None:
    """Remove the files of a server's shared memory from /dev/shm. `name` is the name of the server.

    Call this function as soon as the server is ready. The processes of a ready server no longer
    need the files, because they have already mapped the memory. The kernel frees shared memory
    without a file when the last process that uses the memory ends. Therefore no memory remains,
    even if a cluster kills the whole job at once.
    """
    for region in SHM.glob(f"{name}-*"):
        with contextlib.suppress(OSError):
            region.unlink()


def remove(folder: Path) -> None:
    """Kill the remaining processes of a server, and remove its shared memory and its folder."""
    deadline = time.monotonic() + _REMOVE_S
    while (left := _processes_of(folder)) and time.monotonic() < deadline:
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(_POLL_S)
    unlink_memory(folder.name)
    shutil.rmtree(folder, ignore_errors=True)


def _processes_of(folder: Path) -> list[psutil.Process]:
    """Return the running processes of the server whose temporary folder is `folder`.

    The name of the folder occurs in the command lines of the server and of its Python stub
    processes: in the path of the backends or, in a container, in the prefix of the shared memory.
    """
    marks = (f"{folder.name}/backends", f"{folder.name}-")
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if process.pid != os.getpid()
        and any(mark in argument for argument in process.info["cmdline"] or () for mark in marks)
    ]
