"""Write and read the files results/<study>/measured/<kind>.json. Each file lists the measured cells
of one kind of experiment.

A study may have ten thousand cells. Snakemake jobs that need all cells therefore have these few
files as their inputs, and not the folders of the cells in results/<study>/raw.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel

from perseus.host.files import arrived, write_json
from perseus.study.raw_files import RECORD


class MeasuredCell(BaseModel):
    """A measured cell, with the SHA-256 of its record.json.

    A new measurement changes the SHA-256 and therefore the list, so that Snakemake makes all files
    again that depend on the list.
    """

    cell: str
    record_sha256: str


class Measured(BaseModel):
    """Content of a list: the measured cells, in the order of the study."""

    cells: tuple[MeasuredCell, ...]


def write(path: Path, cells: Iterable[Path]) -> None:
    found = tuple(
        MeasuredCell(
            cell=cell.name,
            record_sha256=hashlib.sha256(arrived(cell / RECORD).read_bytes()).hexdigest(),
        )
        for cell in cells
    )
    write_json(path, Measured(cells=found).model_dump())


def folders(lists: Iterable[str]) -> list[Path]:
    """Return the folders with the raw results of all cells in the files `lists`."""
    return [cell for path in map(Path, lists) for cell in _cells(path)]


def has_lost_a_cell(path: Path) -> bool:
    """Return whether the file `path` lists a cell without raw results; false if the file does not
    exist or is not readable."""
    try:
        return not all(cell.exists() for cell in _cells(path))
    except (OSError, ValueError):  # the list does not exist or is not readable
        return False


def _cells(path: Path) -> list[Path]:
    raw = path.parents[1] / "raw"
    return [raw / of.cell for of in Measured.model_validate_json(path.read_bytes()).cells]
