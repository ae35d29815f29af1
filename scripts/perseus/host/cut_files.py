"""Files that have lost their end since they were written, as when a machine goes down.

Snakemake takes a file that is there for whole, and the job that would make it for done.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from perseus.host.files import HEAD_BYTES, WRITTEN


def find(places: Iterable[str]) -> list[str]:
    """Those of these files, and of all in these folders, that are cut."""
    return [path for place in places for path in _files(place) if is_cut(path)]


def is_cut(path: str) -> bool:
    """Whether a file is shorter than when it was written.

    One that somebody has written anew begins otherwise, and is not. Where nothing was noted
    (`host.files.seal`), nothing is known.
    """
    try:
        size, head = os.getxattr(path, WRITTEN).split(b" ", 1)
        if os.stat(path).st_size >= int(size):  # noqa: PTH116, of every file at every start
            return False
        with Path(path).open("rb") as file:
            return head.startswith(file.read(HEAD_BYTES))
    except OSError:
        return False


def remove_link(path: str) -> None:
    """Where this is a link, remove it and what it leads to, from where it would be had again."""
    link = Path(path)
    if link.is_symlink():
        link.resolve().unlink(missing_ok=True)
        link.unlink()


def _files(place: str) -> Iterator[str]:
    yield place
    for folder, _, names in os.walk(place):
        yield from (f"{folder}/{name}" for name in names)
