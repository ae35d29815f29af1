"""Find files that were truncated after writing, for example by a power failure.

Snakemake assumes that every existing output file is complete. Without this module, Snakemake would
therefore use truncated files as inputs of later jobs.
"""

from __future__ import annotations

import json
import os
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from perseus.host import file_formats
from perseus.host.files import HEAD_BYTES, WRITTEN

RECORDS: Final = Path(".snakemake/metadata")
"""Folder with Snakemake's records. The record of an output file states how the file was made.
Without this record, Snakemake does not notice that the parameters or the code of the job have
changed.

The name of a record is the path of its output file in base64, split into folders if the name is
long.
"""

TRUNCATED: Final = "{} was truncated after it was written: Perseus makes the file again."
"""Message to the user about a truncated file; {} stands for the path of the file."""


def find(places: Iterable[str]) -> list[str]:
    """Return the paths of all truncated files in `places`, which are files or folders."""
    return [path for place in places for path in _files(place) if is_truncated(path)]


def is_truncated(path: str) -> bool:
    """Return whether a file has lost its end or its content, for example in a power failure.

    In some formats, the content shows whether the end of a file is missing (see
    `host.file_formats`). For a file in such a format, the function checks only the content. For any
    other file, the function compares the length and the first bytes of the file with the values
    that Perseus recorded after writing the file (see `host.files.seal`):

    - If the file is shorter than recorded and has the recorded first bytes, the result is True.
    - If the file begins with zeros instead of the recorded bytes, the result is True.
    - If the file has other first bytes, a user has replaced the file, and the result is False.
    """
    try:
        lacks_end = file_formats.lacks_end(Path(path))
        if lacks_end is not None or (recorded_start := _recorded_start(path)) is None:
            return bool(lacks_end)
        size_bytes, head = recorded_start
        with Path(path).open("rb") as file:
            begins = file.read(HEAD_BYTES)
            is_shorter = os.fstat(file.fileno()).st_size < size_bytes
    except OSError:  # another process removed the file
        return False
    return (is_shorter and head.startswith(begins)) or (any(head) and not any(begins))


def _recorded_start(path: str) -> tuple[int, bytes] | None:
    try:
        size_bytes, head = os.getxattr(path, WRITTEN).split(b" ", 1)
    except OSError:
        return None
    return int(size_bytes), head


def with_truncated_record(folder: Path, places: Iterable[str]) -> list[str]:
    """Return the paths of the existing output files whose Snakemake record is truncated.

    `places` has the files and folders to check. `folder` is the folder of the workflow, which
    contains the records. Do not call this function while a workflow runs in `folder`, because a
    record looks truncated while Snakemake writes it.
    """
    records, starts = folder / RECORDS, tuple(f"{place}/" for place in places)
    each = ((recorded(Path(path).relative_to(records)), path) for path in _files(str(records)))
    return [
        path
        for path, record in each
        if f"{path}/".startswith(starts)
        and _is_truncated_record(Path(record))
        and (folder / path).exists()
    ]


def _is_truncated_record(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except ValueError:
        return True
    except OSError:  # another process removed the record
        return False
    return False


def recorded(name: Path) -> str:
    """Return the path of the output file that a record of Snakemake describes.

    `name` is the name of the record. This name encodes the path of the output file. The result is
    "" if the name is invalid.
    """
    try:
        return urlsafe_b64decode("".join(part.removeprefix("@") for part in name.parts)).decode()
    except ValueError:
        return ""


def _files(place: str) -> Iterator[str]:
    """Yield `place`. If `place` is a folder, also yield each file in it and behind its links."""
    yield place
    seen: set[tuple[int, int]] = set()
    for folder, folders, names in os.walk(place, followlinks=True):
        try:
            found = os.stat(folder)  # noqa: PTH116, fast: runs for every cell
        except OSError:  # another process removed the folder
            continue
        if (here := (found.st_dev, found.st_ino)) in seen:
            folders.clear()
            continue
        seen.add(here)
        yield from (f"{folder}/{name}" for name in names)
