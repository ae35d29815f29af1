"""Files that have lost their end since they were written, as when a machine goes down.

Snakemake takes a file that is there for whole, and the job that would make it for done.
"""

from __future__ import annotations

import json
import os
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from perseus.host import file_ends
from perseus.host.files import HEAD_BYTES, WRITTEN

RECORDS: Final = Path(".snakemake/metadata")
"""Snakemake's records of how files were made, one of each: without it no edit is seen to concern
the file. They are named after the path in base64, in folders where that is long."""

SAID: Final = "{} has lost its end since it was written: it is made again."


def find(places: Iterable[str]) -> list[str]:
    """Those of these files, and of all in these folders, that are cut."""
    return [path for place in places for path in _files(place) if is_cut(path)]


def is_cut(path: str) -> bool:
    """Whether a file has lost its end, or all that was in it, since it was written.

    Its end tells, if that of its format does (`host.file_ends`): also of one that somebody copied
    over ours. Else what was noted (`host.files.seal`) does: it is shorter, or begins with zeros;
    one that somebody has written anew begins otherwise, and is not cut.
    """
    try:
        told = file_ends.is_without_its_end(Path(path))
        if told is not None or (noted := _noted(path)) is None:
            return bool(told)
        size_bytes, head = noted
        with Path(path).open("rb") as file:
            begins = file.read(HEAD_BYTES)
            is_shorter = os.fstat(file.fileno()).st_size < size_bytes
    except OSError:  # it has gone
        return False
    return (is_shorter and head.startswith(begins)) or (any(head) and not any(begins))


def _noted(path: str) -> tuple[int, bytes] | None:
    """How long a file was and how it began when it was written."""
    try:
        size_bytes, head = os.getxattr(path, WRITTEN).split(b" ", 1)
    except OSError:
        return None
    return int(size_bytes), head


def with_cut_record(folder: Path, places: Iterable[str]) -> list[str]:
    """Those of these files, and of all in these places, whose record in a workflow's folder is cut.

    One that a run which lives there is about to write looks as if it were.
    """
    records, starts = folder / RECORDS, tuple(f"{place}/" for place in places)
    each = ((recorded(Path(path).relative_to(records)), path) for path in _files(str(records)))
    return [
        path
        for path, record in each
        if f"{path}/".startswith(starts)
        and _is_cut_record(Path(record))
        and (folder / path).exists()
    ]


def _is_cut_record(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except ValueError:
        return True
    except OSError:  # it has gone
        return False
    return False


def recorded(name: Path) -> str:
    """The file that a record of Snakemake's is of, by its name; "" where that cannot be told."""
    try:
        return urlsafe_b64decode("".join(part.removeprefix("@") for part in name.parts)).decode()
    except ValueError:
        return ""


def _files(place: str) -> Iterator[str]:
    """Also of folders that are links, as to a disk with more room; of each once."""
    yield place
    seen: set[tuple[int, int]] = set()
    for folder, folders, names in os.walk(place, followlinks=True):
        try:
            found = os.stat(folder)  # noqa: PTH116, of every cell at every start
        except OSError:  # it has gone
            continue
        if (here := (found.st_dev, found.st_ino)) in seen:
            folders.clear()
            continue
        seen.add(here)
        yield from (f"{folder}/{name}" for name in names)
