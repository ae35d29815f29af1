"""Files that appear whole or not at all."""

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
"""An extended attribute of a file: its bytes when it was written, and the first of them."""

HEAD_BYTES: Final = 16

PARTIAL: Final = re.compile(rf"\.(.+)\.({PATTERN})\.partial")
"""The name of a `partial_path`: of what it is to become, and of its process."""


LATE_S: Final = 30.0
"""As long as the profiles of clusters have Snakemake wait for an output."""


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A path to write to; it becomes `path` when the body ends without an exception.

    It stands in the same folder, as `partial_path` says, and is on the disk before it has its name.
    """
    partial = partial_path(path)
    try:
        yield partial
        seal(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def partial_path(path: Path) -> Path:
    """Where this process may write what is to become `path`; its folder is made.

    The name is no other process's, and begins with a dot, which Triton ignores. What processes that
    were killed left of the same file is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for other in path.parent.iterdir():
        match = PARTIAL.fullmatch(other.name)
        if match and match[1] == path.name and is_gone(match[2]):
            other.unlink(missing_ok=True)
    return path.with_name(f".{path.name}.{identity()}.partial")


def seal(path: Path) -> None:
    """Bring a file to the disk, and note how long it is and how it begins (`host.cut_files`).

    Nothing is noted where the file system has no extended attributes.
    """
    with path.open("rb") as file:
        os.fsync(file.fileno())
        size = os.fstat(file.fileno()).st_size
        with suppress(OSError):
            os.setxattr(file.fileno(), WRITTEN, b"%d " % size + file.read(HEAD_BYTES))


def arrived(path: Path) -> Path:
    """A path, once something is there, or after LATE_S.

    On a file system that several machines share, a folder may be seen before what another one wrote
    into it, and Snakemake waits for an output that is a folder alone.
    """
    deadline_s = time.monotonic() + LATE_S
    while not path.exists() and time.monotonic() < deadline_s:
        time.sleep(0.2)
        with suppress(OSError):
            os.listdir(path.parent)  # noqa: PTH208, so that a network file system looks again
    return path


def write_json(path: Path, value: Mapping[str, Any] | Sequence[Any]) -> None:
    """NaN and infinity, which JSON does not have, become null."""
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
