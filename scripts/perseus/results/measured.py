"""Lists of measured cells, one for each kind of experiment.

An output that depends on all cells has these lists as inputs, since there may be ten thousand
cells. A list lies in results/<study>/measured, and the raw results of its cells in
results/<study>/raw.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel

from perseus.host.files import arrived, write_json
from perseus.study.raw_files import RECORD


class MeasuredCell(BaseModel):
    """A cell with the hash of its record.

    A new measurement changes the hash, so Snakemake makes the dependent files again.
    """

    cell: str
    record_sha256: str


class Measured(BaseModel):
    """The cells in the order of the study."""

    cells: tuple[MeasuredCell, ...]


def write(path: Path, cells: Iterable[Path]) -> None:
    """Write the list of these cells, given the folders of their raw results."""
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
    """Return whether the list exists, but the raw results of one of its cells do not."""
    try:
        return not all(cell.exists() for cell in _cells(path))
    except (OSError, ValueError):  # the list does not exist or is not readable
        return False


def _cells(path: Path) -> list[Path]:
    raw = path.parents[1] / "raw"
    return [raw / of.cell for of in Measured.model_validate_json(path.read_bytes()).cells]
