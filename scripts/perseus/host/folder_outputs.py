"""Find output folders of jobs that lack files. Snakemake checks only whether the folder exists."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from perseus.host.truncated_files import recorded

UNFINISHED: Final = Path(".snakemake/incomplete")
"""Folder with Snakemake's marks of outputs whose job runs or was interrupted. The names of the
marks have the same form as the names of Snakemake's records."""

TIME_STAMP: Final = ".snakemake_timestamp"
"""File that Snakemake writes into a folder that a job has made."""


def unfinished(folder: Path) -> set[str]:
    """Return the outputs that Snakemake has marked as unfinished. Snakemake makes these outputs
    again."""
    marks = folder / UNFINISHED
    return {recorded(path.relative_to(marks)) for path in marks.rglob("*") if path.is_file()}


def files_lost(folders: Iterable[str], names: Iterable[str]) -> Iterator[str]:
    """Yield the files with these names that are missing in these folders. Missing folders do not
    count."""
    expected = tuple(names)
    for folder in folders:
        with suppress(OSError):
            present = set(os.listdir(folder))  # noqa: PTH208, fast: runs for every cell
            yield from (f"{folder}/{name}" for name in expected if name not in present)
