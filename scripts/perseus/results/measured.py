"""Write and read the lists of measured cells, one list for each kind of experiment.

The Snakemake inputs of a job that depends on all cells are the lists, not the cells, because a
study may have ten thousand cells. The lists are in results/<study>/measured, and the raw results of
the cells are in results/<study>/raw.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel

from perseus.host.files import arrived, write_json
from perseus.study.raw_files import RECORD


class MeasuredCell(BaseModel):
    """A measured cell, with the hash of its record.json.

    A new measurement changes the hash, so that Snakemake remakes all files that depend on the cell.
    """

    cell: str
    record_sha256: str


class Measured(BaseModel):
    """List of measured cells, in the order of the study."""

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
    """Return the folders of the raw results of all cells in these lists."""
    return [cell for path in map(Path, lists) for cell in _cells(path)]


def has_lost_a_cell(path: Path) -> bool:
    """Return whether the file `path` lists a cell whose raw results are missing."""
    try:
        return not all(cell.exists() for cell in _cells(path))
    except (OSError, ValueError):  # the list does not exist or is not readable
        return False


def _cells(path: Path) -> list[Path]:
    raw = path.parents[1] / "raw"
    return [raw / of.cell for of in Measured.model_validate_json(path.read_bytes()).cells]
