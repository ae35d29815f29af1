"""Read the windows that the tables need, from the files windows.parquet of many cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from perseus.measurement.raw_results import WINDOWS_SCHEMA
from perseus.peak.window import Phase
from perseus.results.records import PeakRecord, Row


def certified(records: Sequence[PeakRecord]) -> dict[Path, list[Row]]:
    """For each cell, return the windows that describe the server at the certified rate, by the
    folder of the cell.

    The list of each cell contains the last certification window that passed, and the windows in
    which a single tenant has its certified rate and the other tenants have no load. The rows are in
    the order of windows.parquet. If the search of a cell certified no rate, the list of the cell is
    empty.
    """

    def wanted(windows: pa.Table, record: PeakRecord) -> pa.ChunkedArray:
        own = pc.equal(windows["window"], record.certified_window)
        return pc.or_(own, pc.equal(windows["phase"], Phase.ALONE))

    return {
        record.folder: _read(record, wanted, WINDOWS_SCHEMA.names)
        if record.certified_window >= 0
        else []
        for record in records
    }


def of_speed(records: Sequence[PeakRecord]) -> dict[Path, list[Row]]:
    """For each cell, return the windows of its saturation probes, by the folder of the cell.

    Each row has the index of the window, the tenant, the number of requests and the start time. The
    rows are in the order of windows.parquet.
    """

    def wanted(windows: pa.Table, _: PeakRecord) -> pa.ChunkedArray:
        return pc.equal(windows["phase"], Phase.PROBE)

    return {
        record.folder: _read(record, wanted, ("window", "tenant", "requests", "start_ns"))
        for record in records
    }


def _read(
    record: PeakRecord,
    wanted: Callable[[pa.Table, PeakRecord], pa.ChunkedArray],
    columns: Sequence[str],
) -> list[Row]:
    """Return the rows of windows.parquet that `wanted` selects, only for the attempt that the
    record describes. If the file lacks a column of `columns`, its value is None in all rows.

    For a small file, `pyarrow.dataset` and `read_table` take 1.5 times as long as `ParquetFile`.
    """
    with pq.ParquetFile(record.folder / "windows.parquet") as file:
        windows = file.read([*columns, "attempt", "phase"], use_threads=False)
    mine = pc.and_(wanted(windows, record), pc.equal(windows["attempt"], record.attempt))
    return [{name: row.get(name) for name in columns} for row in windows.filter(mine).to_pylist()]
