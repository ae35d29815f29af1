"""Windows of many cells, read as Arrow datasets of their windows.parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from perseus.measurement.raw_results import WINDOWS_SCHEMA
from perseus.peak.window import Phase
from perseus.results.records import PeakRecord, Row

_CELL, _STANDS, _CERTIFIED = "cell", "attempt_that_stands", "certified_window"
"""What each row is told of its cell: its place among the records, and two numbers of its record."""
_SCHEMA = pa.schema(
    [*WINDOWS_SCHEMA, *(pa.field(name, pa.int64()) for name in (_CELL, _STANDS, _CERTIFIED))]
)

FILES = 50
"""In one dataset, which keeps the metadata of each in memory, some 0.2 MB."""


def certified(records: Sequence[PeakRecord]) -> dict[Path, list[Row]]:
    """By folder the last certified window and each tenant alone, in the order of the file; nothing
    where none was certified."""
    with_one = [record for record in records if record.certified_window >= 0]
    own = ds.field("window") == ds.field(_CERTIFIED)
    found = _read(with_one, own | (ds.field("phase") == Phase.ALONE), WINDOWS_SCHEMA.names)
    return {record.folder: found.get(record.folder, []) for record in records}


def of_speed(records: Sequence[PeakRecord]) -> dict[Path, list[Row]]:
    """By folder tenant, requests and start_ns of the windows in which the server's speed was looked
    at, in the order of the file."""
    columns = ["tenant", "requests", "start_ns"]
    return _read(records, ds.field("phase") == Phase.SPEED, columns)


def _read(
    records: Sequence[PeakRecord], wanted: ds.Expression, columns: Sequence[str]
) -> dict[Path, list[Row]]:
    """Those rows of the attempts that stand."""
    mine = wanted & (ds.field("attempt") == ds.field(_STANDS))
    found: dict[Path, list[Row]] = {record.folder: [] for record in records}
    for start in range(0, len(records), FILES):
        some = records[start : start + FILES]
        for row in _dataset(some).to_table(columns=[_CELL, *columns], filter=mine).to_pylist():
            found[some[row.pop(_CELL)].folder].append(row)
    return found


def _dataset(records: Sequence[PeakRecord]) -> ds.Dataset:
    told = [
        (ds.field(_CELL) == place)
        & (ds.field(_STANDS) == record.attempt)
        & (ds.field(_CERTIFIED) == record.certified_window)
        for place, record in enumerate(records)
    ]
    return ds.FileSystemDataset.from_paths(
        [str(record.folder / "windows.parquet") for record in records],
        schema=_SCHEMA,
        format=ds.ParquetFileFormat(),
        filesystem=LocalFileSystem(),
        partitions=told,
    )
