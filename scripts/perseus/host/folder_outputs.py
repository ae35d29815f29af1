"""Outputs that are folders, and have lost some of what was in them.

Snakemake looks at the folder alone: one that is there is whole and up to date.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from perseus.host.cut_files import recorded

UNFINISHED: Final = Path(".snakemake/incomplete")
"""Snakemake's marks of outputs whose job runs, or did not end, named as its records are."""

TIME_STAMP: Final = ".snakemake_timestamp"
"""What Snakemake leaves in a folder that a job has made."""


def unfinished(folder: Path) -> set[str]:
    """The outputs that Snakemake has marked in a workflow's folder, and makes again by itself."""
    marks = folder / UNFINISHED
    return {recorded(path.relative_to(marks)) for path in marks.rglob("*") if path.is_file()}


def files_lost(folders: Iterable[str], names: Iterable[str]) -> Iterator[str]:
    """The files of these names that are not in these folders, where the folder is."""
    expected = tuple(names)
    for folder in folders:
        with suppress(OSError):
            there = set(os.listdir(folder))  # noqa: PTH208, of every cell at every start
            yield from (f"{folder}/{name}" for name in expected if name not in there)
