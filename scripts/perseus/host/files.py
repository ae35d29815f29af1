"""Write files atomically: no process ever sees a partly written file."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from perseus.host.identity import PATTERN, identity, is_gone

WRITTEN: Final = "user.perseus.written"
"""Name of the extended attribute in which `seal` records the length and first bytes of a file."""

HEAD_BYTES: Final = 16

PARTIAL: Final = re.compile(rf"\.(.+)\.({PATTERN})\.partial")
"""Pattern of the names that `partial_path` gives to temporary files.

The groups of the pattern are the name of the final file and the identity of the process that writes
it.
"""

LATE_S: Final = 30.0
"""Longest wait in seconds for a file of another machine on a shared file system.

The cluster profiles set Snakemake's `latency-wait` to the same time.
"""


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path. The caller writes a file there, instead of at `path`.

    If the context ends without an exception, the function renames the temporary file to `path`. The
    temporary path is in the folder of `path` (see `partial_path`). The function syncs the temporary
    file to the disk before it renames the file, so that not even a power failure leaves a partly
    written file at `path`.
    """
    partial = partial_path(path)
    try:
        yield partial
        seal(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def partial_path(path: Path) -> Path:
    """Return the temporary path at which this process writes a file before renaming it to `path`.

    The function creates the folder of the file. The temporary name contains the identity of this
    process, so that no other process writes the same file. It begins with a dot, so that Triton
    ignores the file. The function also removes temporary files for `path` that killed processes
    have left.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for other in path.parent.iterdir():
        match = PARTIAL.fullmatch(other.name)
        if match and match[1] == path.name and is_gone(match[2]):
            other.unlink(missing_ok=True)
    return path.with_name(f".{path.name}.{identity()}.partial")


def seal(path: Path) -> None:
    """Sync a file to the disk, and record its length and its first bytes in an extended attribute.

    With this attribute, the module `host.truncated_files` later detects whether the file has been
    truncated. On file systems without extended attributes, the function records nothing.
    """
    with path.open("rb") as file:
        os.fsync(file.fileno())
        size = os.fstat(file.fileno()).st_size
        with suppress(OSError):
            os.setxattr(file.fileno(), WRITTEN, b"%d " % size + file.read(HEAD_BYTES))


def arrived(path: Path) -> Path:
    """Wait until a path exists, but at most LATE_S seconds. Return the path.

    On a shared file system, a folder may appear before the files that another machine wrote into
    this folder. Snakemake waits only for the folder, so a job must wait for the files itself.
    """
    deadline_s = time.monotonic() + LATE_S
    while not path.exists() and time.monotonic() < deadline_s:
        time.sleep(0.2)
        with suppress(OSError):
            os.listdir(path.parent)  # noqa: PTH208, refreshes a network file system
    return path


def write_json(path: Path, value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Write a value as a JSON file, atomically. NaN and infinite numbers become null."""
    with whole(path) as partial:
        partial.write_text(json.dumps(_finite(value), indent=1, sort_keys=True) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not (-float("inf") < value < float("inf")):
        return None
    return value
