"""Find missing files in the output folders of jobs.

Snakemake does not notice missing files, because it checks only whether an output folder exists.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from perseus.host.truncated_files import recorded

UNFINISHED: Final = Path(".snakemake/incomplete")
"""Folder in which Snakemake marks each output whose job is running or was interrupted.

Each output has one file in this folder. The name of the file encodes the path of the output.
"""

TIME_STAMP: Final = ".snakemake_timestamp"
"""File that Snakemake creates in each output folder, beside the files of the job."""


def unfinished(folder: Path) -> set[str]:
    """Return the paths of the unfinished outputs in `folder`, which Snakemake will make again."""
    marks = folder / UNFINISHED
    return {recorded(path.relative_to(marks)) for path in marks.rglob("*") if path.is_file()}


def files_lost(folders: Iterable[str], names: Iterable[str]) -> Iterator[str]:
    """Yield the path of each missing file. Each folder must contain files with all these names.

    The function ignores folders that do not exist.
    """
    expected = tuple(names)
    for folder in folders:
        with suppress(OSError):
            present = set(os.listdir(folder))  # noqa: PTH208, fast: runs for every cell
            yield from (f"{folder}/{name}" for name in expected if name not in present)
