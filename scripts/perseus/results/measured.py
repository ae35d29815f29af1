"""Lists of cells that were measured, of one kind of experiment each.

What is made of all cells has such lists as its input, not the cells, which may be ten thousand. A
list lies in results/<study>/measured, and its cells' raw results in results/<study>/raw.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel

from perseus.host.files import arrived, write_json
from perseus.study.raw_files import RECORD


class MeasuredCell(BaseModel):
    """A cell by its name, and what its record was: it is another one, when the cell is measured
    again, and so is the list, by which Snakemake tells that what rests on it is out of date."""

    cell: str
    record_sha256: str


class Measured(BaseModel):
    """The cells in the order of the study."""

    cells: tuple[MeasuredCell, ...]


def write(path: Path, cells: Iterable[Path]) -> None:
    """Write the list of these cells, of each the folder of its raw results."""
    found = tuple(
        MeasuredCell(
            cell=cell.name,
            record_sha256=hashlib.sha256(arrived(cell / RECORD).read_bytes()).hexdigest(),
        )
        for cell in cells
    )
    write_json(path, Measured(cells=found).model_dump())


def folders(lists: Iterable[str]) -> list[Path]:
    """The folders of raw results of all cells in these lists."""
    return [cell for path in map(Path, lists) for cell in _cells(path)]


def has_lost_a_cell(path: Path) -> bool:
    """Whether a list is there, and the raw results of a cell that it names are not."""
    try:
        return not all(cell.exists() for cell in _cells(path))
    except (OSError, ValueError):  # there is none, or none that can be read
        return False


def _cells(path: Path) -> list[Path]:
    raw = path.parents[1] / "raw"
    return [raw / of.cell for of in Measured.model_validate_json(path.read_bytes()).cells]
