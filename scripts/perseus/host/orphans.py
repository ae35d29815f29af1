"""What a server or a job leaves on its host, found by name: processes, shared memory, folders.

All of it carries one name, which tells the process that owns it. So what belongs to an owner that
was killed can be told from what is in use, and nobody else's is ever touched.
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
_REMOVE_S = 15.0
_POLL_S = 0.01


def make_folder() -> Path:
    """Make a temporary folder that tells its owner, of one server or job.

    Its name is unique on the host and also the prefix of the server's shared memory.
    """
    folder = Path(tempfile.gettempdir()) / unique_name()
    folder.mkdir(mode=0o700)
    return folder


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder while the context is open; it is swept later if this process is killed."""
    folder = make_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def unique_name() -> str:
    """A name for what this process owns; in /dev/shm it is to be followed by a dash and a word."""
    return f"{_PREFIX}-{identity()}-{secrets.token_hex(4)}"


def sweep_dead_owners() -> None:
    """Remove servers, shared memory and folders whose measuring process is gone."""
    temporary = Path(tempfile.gettempdir())
    found = [path.name for place in (temporary, SHM) for path in place.glob(f"{_PREFIX}-*")]
    for name in names_of_dead_owners(found):
        remove(temporary / name)


def names_of_dead_owners(found: Iterable[str]) -> list[str]:
    """Those of `unique_name` whose process is gone, each once; `found` may hold anything.

    What a name is followed by, a dash and a word, is cut off.
    """
    pattern = re.compile(rf"({_PREFIX}-({PATTERN})-[0-9a-f]{{8}})(-.*)?")
    matches = filter(None, map(pattern.fullmatch, found))
    return sorted({m[1] for m in matches if is_gone(m[2])})


def unlink_memory(name: str) -> None:
    """Take the names off the shared memory of a server that is ready.

    Those that share it have it mapped by then, and grow it without its name. The memory goes with
    the last of them, however they end: a cluster may kill a whole job at once.
    """
    for region in SHM.glob(f"{name}-*"):
        with contextlib.suppress(OSError):
            region.unlink()


def remove(folder: Path) -> None:
    """Remove what a server or a job leaves on the host, after its last process has gone."""
    deadline = time.monotonic() + _REMOVE_S
    while (left := _processes_of(folder)) and time.monotonic() < deadline:
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(_POLL_S)
    unlink_memory(folder.name)
    shutil.rmtree(folder, ignore_errors=True)


def _processes_of(folder: Path) -> list[psutil.Process]:
    """Living processes of the server that a folder belongs to.

    Both the server and its stubs carry the folder's unique name in their command line: as the place
    of their backends, or (in a container) as the beginning of their shared memory's name.
    """
    marks = (f"{folder.name}/backends", f"{folder.name}-")
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if process.pid != os.getpid()
        and any(mark in argument for argument in process.info["cmdline"] or () for mark in marks)
    ]
